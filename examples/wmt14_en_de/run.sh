#!/usr/bin/env bash
# WMT'14 English-German, base and big (--arch tree_transformer_wmt_en_de_big).
set -euo pipefail
. "$(dirname "$0")/../lib/recipe.sh"

# Data: fetched where --data is an empty folder; cased Moses tokens, joint BPE
DATASET=wmt14 SOURCE=en TARGET=de FETCH=wmt14_en_de
SETS=(test=)
BPE_SIZE=32000

# Model: sizes come with the architecture
DEFAULT_ARCH=tree_transformer_wmt_en_de

# Nguyen et al. (2020): base 200K updates of 32K tokens, big 20K of 512K; the rest as in Ott et al. (2018), whose setting
# the paper follows: larger learning rate and dropout for the large batches of the big model
settings() {
    local rate=7e-4 dropout=0.1
    BATCH_TOKENS=32768 DEVICE_TOKENS=4096
    LIMITS=(--max-update 200000)
    case $ARCH in
        *big*)
            rate=1e-3 dropout=0.3
            BATCH_TOKENS=524288 DEVICE_TOKENS=4096
            LIMITS=(--max-update 20000)
            LIGHTCONV+=(--encoder-glu 1 --decoder-glu 1)
            ;;
    esac
    TRANSFORMER=(--share-all-embeddings --dropout "$dropout")
    LIGHTCONV+=(--share-all-embeddings)
    ADAM=(
        --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 0 --weight-decay 0
        --lr "$rate" --lr-scheduler inverse_sqrt --warmup-updates 4000 --warmup-init-lr 1e-7 --stop-min-lr 1e-9
    )
}

# Generation, from the average of the last epochs
AVERAGE=10 BEAM=4 LENPEN=0.6 GENERATE_TOKENS=4096

# Scores: the paper follows work that reports BLEU on tokens with compounds split
PRIMARY=compound_split_bleu
SCORE_FLAGS=(--compound-split)
LENGTH_BOUNDS=(10 20 30 40 50)

recipe "$@"; exit # on one line: bash reads no further, so that this file may change meanwhile
