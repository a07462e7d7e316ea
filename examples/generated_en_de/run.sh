#!/usr/bin/env bash
# Generated English-German, the language of the quickstart: German words stand in another order than English ones. Small
# models, so that three seeds of every control take an hour on two CPU cores.
#
#   examples/generated_en_de/run.sh --out DIR [options] [-- flags of fairseq-train]
#
#   --out DIR        everything that is written, result.json among it; there is no --data, as the text is made here
#   --arch A         tree_transformer where not given; the baselines are transformer and transformer_distance_bias
#   --up-to N        train on pairs whose sources have at most N words; the other splits stay whole
#   --seed N         of training, 1 where not given
#   --parser P       stanza where not given; right-branching, balanced or random trees are controls
#   --workers N      processes for parsing, all cores where not given
#   --toy            tiny sizes and few sentences, to see that everything runs
#   --dry-run        print the commands, run none
: "${DATA:=}" "${ARCH:=tree_transformer}" "${SEED:=1}" "${UP_TO:=}" "${PARSER:=stanza}"
. "$(dirname "$0")/../lib/recipe.sh"; recipe "$@"
[[ ! $TOY ]] || PARSER=right-branching
WORDS=$OUT/words$(named UP_TO) BPE=$OUT/bpe$(named UP_TO) DATA_BIN=$OUT/data-bin$(named UP_TO PARSER)
RUN=$OUT/runs/$ARCH$(named UP_TO PARSER)-seed$SEED$FLAGS_NAME

step "$OUT/text" python -m preprocess.english_german --out "$OUT/text" ${TOY:+--train 120 --valid 12 --test 12}
step "$WORDS" python -m preprocess.own_text "$OUT/text" --out "$WORDS" --source en --target de \
    ${UP_TO:+--up-to "$UP_TO"}
step "$BPE/codes" subword-nmt learn-joint-bpe-and-vocab --input "$WORDS/train.en" "$WORDS/train.de" -s 2500 \
    -o "$BPE/codes" --write-vocabulary "$BPE/vocab.en" "$BPE/vocab.de"

# The bundled parser was trained on other sentences of the same grammar
STANZA=(); [[ $PARSER != stanza ]] || STANZA=(--parser-dir "$ROOT/examples/quickstart/stanza-en")
step "$DATA_BIN" fairseq-preprocess --user-dir "$ROOT/tree_fairseq" --task tree_translation -s en -t de \
    --trainpref "$WORDS/train" --validpref "$WORDS/valid" --testpref "$WORDS/test" --destdir "$DATA_BIN" \
    --joined-dictionary --bpe-codes "$BPE/codes" --workers "$WORKERS" --parse-cache "$OUT/parse-cache" \
    --tree-parser "$PARSER" --tree-lang en "${STANZA[@]}"

# Sizes and flags of the quickstart
DISTANCES=()
[[ $ARCH != transformer_distance_bias* ]] || DISTANCES=(--distance-bias linear)
step "$RUN/checkpoints/checkpoint_last.pt" fairseq-train "$DATA_BIN" --user-dir "$ROOT/tree_fairseq" \
    --task tree_translation \
    -s en -t de --arch "$ARCH" --encoder-layers 2 --decoder-layers 2 --encoder-embed-dim 128 --decoder-embed-dim 128 \
    --encoder-ffn-embed-dim 256 --decoder-ffn-embed-dim 256 --encoder-attention-heads 4 --decoder-attention-heads 4 \
    --share-all-embeddings --dropout 0.1 "${DISTANCES[@]}" \
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --clip-norm 1 \
    --optimizer adam --adam-betas '(0.9, 0.98)' --lr 4e-3 --lr-scheduler inverse_sqrt --warmup-updates 200 \
    --max-tokens $((2000 / GPUS)) --update-freq 1 --max-epoch 3 --seed "$SEED" \
    --save-dir "$RUN/checkpoints" --keep-last-epochs 1 --no-progress-bar --log-interval 100 \
    --log-file "$RUN/train.log" "${TOY_FLAGS[@]}" "${TRAIN_FLAGS[@]}"
step "$RUN/checkpoints/average.pt" tree-fairseq average "$RUN/checkpoints" --last-epochs 1 \
    --output "$RUN/checkpoints/average.pt"

# After so few updates a model may repeat a phrase to the end
step "$RUN/generate-test.txt" fairseq-generate "$DATA_BIN" --user-dir "$ROOT/tree_fairseq" --task tree_translation \
    -s en -t de --path "$RUN/checkpoints/average.pt" --gen-subset test --beam 5 --lenpen 1 \
    --max-len-a 1.5 --max-len-b 10 --max-tokens 4096 --required-batch-size-multiple 1 --remove-bpe --results-path "$RUN"
DEPTHS=()
[[ $PARSER != stanza ]] || DEPTHS=(--source-trees "$DATA_BIN" --depth-bounds 6 7 8 10)
step "$RUN/score.json" tree-fairseq score bleu --run "$RUN" --words "$WORDS" --source-lang en --target-lang de \
    --primary sacrebleu --length-bounds 8 10 12 16 --checkpoint "$RUN/checkpoints/average.pt" "${DEPTHS[@]}" \
    --describe recipe=generated_en_de arch="$ARCH" parser="$PARSER" seed="$SEED" --result "$OUT/result.json"
