#!/usr/bin/env bash
# Multi30k English-German: Tree-Transformer and stock transformer of equal size, small enough for two CPU cores; and Treeformer.
set -euo pipefail
. "$(dirname "$0")/../lib/recipe.sh"

# Data: the lower-cased, normalised, tokenised files; both Flickr test sets
DATASET=multi30k SOURCE=en TARGET=de
SETS=(test=2016 test1=2017)
BPE_SIZE=6000

# Model: 3+3 layers; the same flags for --arch transformer
DEFAULT_ARCH=tree_transformer
TRANSFORMER=(
    --encoder-layers 3 --decoder-layers 3 --encoder-embed-dim 256 --decoder-embed-dim 256
    --encoder-ffn-embed-dim 512 --decoder-ffn-embed-dim 512 --encoder-attention-heads 4 --decoder-attention-heads 4
    --share-all-embeddings --dropout 0.3
)

# Optimisation
ADAM=(--optimizer adam --adam-betas '(0.9, 0.98)' --lr 1e-3 --lr-scheduler inverse_sqrt --warmup-updates 1000)
BATCH_TOKENS=4096 DEVICE_TOKENS=4096
LIMITS=(--max-epoch 16)

# Generation, from the average of the last epochs
AVERAGE=8 BEAM=5 LENPEN=1 GENERATE_TOKENS=4096

# Scores; lengths in words, about a fifth of the sentences of 2016 each
PRIMARY=sacrebleu_2016
SCORE_FLAGS=(--lowercase)
LENGTH_BOUNDS=(9 11 13 16)
OWN_USAGE='  --setting S         treeformer: plain text, encoders of 6 layers, options of its own (--setting treeformer --help)'

# Without trees: the same sizes but for the encoder, the epoch that is best on the validation set
treeformer() {
    . "$LIBRARY/treeformer.sh"
    VARIANT=treeformer DEFAULT_ARCH=treeformer BASELINE=transformer LAYERS=6
    SETS=(test=2016 test1=2017)
    SUBWORDS=$BPE_SIZE SUBWORD_SIDES=("$SOURCE" "$TARGET") JOINED=yes
    TREEFORMER=("${TRANSFORMER[@]}")
    TRAINING=("${ADAM[@]}" --criterion label_smoothed_cross_entropy --label-smoothing 0.1)
    BATCH_SIZE=$BATCH_TOKENS DEVICE_BATCH_SIZE=$DEVICE_TOKENS
    GENERATION=(--beam "$BEAM" --lenpen "$LENPEN" --max-tokens "$GENERATE_TOKENS")
    scoring() {
        SCORING=(bleu --words "$WORDS" --source-lang "$SOURCE" --target-lang "$TARGET" "${SCORE_FLAGS[@]}" --length-bounds "${LENGTH_BOUNDS[@]}")
    }
}

case " $* " in *" --arch treeformer"* | *" --setting treeformer "*) treeformer ;; esac
recipe "$@"; exit # on one line: bash reads no further, so that this file may change meanwhile
