#!/usr/bin/env bash
# Movie reviews: Pang and Lee's polarity dataset 2.0, positive and negative documents of many sentences.
#
#   examples/movie_reviews/run.sh --data DIR --out DIR [options] [-- flags of fairseq-train]
#
#   --data DIR        the data set, see README.md; an empty folder is filled by a download
#   --out DIR         everything that is written, result.json among it
#   --arch A          tree_transformer_classifier_tiny where not given; tree_lstm_classifier_tiny reads trees, too, and
#                     transformer_classifier_tiny and lstm_classifier_tiny read the words alone
#   --fold K          the tenth to test on, 1 to 10; 1 where not given
#   --seed N          of training, 1 where not given
#   --parser P        stanza where not given; right-branching, balanced, random or flat trees are controls
#   --parser-dir DIR  folder of Stanza's model, where it is not to be downloaded
#   --workers N       processes for preparing and parsing, all cores where not given
#   --toy             tiny sizes and made-up data, to see that everything runs
#   --dry-run         print the commands, run none
: "${ARCH:=tree_transformer_classifier_tiny}" "${SEED:=1}" "${FOLD:=1}" "${PARSER:=stanza}" "${PARSER_DIR:=}"
. "$(dirname "$0")/../lib/recipe.sh"; recipe "$@"
fill_data movie_reviews movie_reviews
[[ ! $TOY ]] || PARSER=right-branching
TEXT=$OUT/text$(named FOLD) DATA_BIN=$OUT/data-bin$(named FOLD PARSER)
RUN=$OUT/runs/$ARCH$(named FOLD PARSER)-seed$SEED$FLAGS_NAME

# One tenth tests, 180 documents of the others validate. Each sentence gets a tree; words that occur once are unknown.
step "$TEXT" python -m preprocess.classification movie_reviews --data "$DATA" --output "$TEXT" --fold "$FOLD" \
    ${TOY:+--valid 20}
step "$DATA_BIN" fairseq-preprocess --user-dir "$ROOT/tree_fairseq" --task tree_classification --input-format tsv \
    --trainpref "$TEXT/train" --validpref "$TEXT/valid" --testpref "$TEXT/test" --destdir "$DATA_BIN" \
    --thresholdsrc 2 --workers "$WORKERS" --parse-cache "$OUT/parse-cache" --tree-parser "$PARSER" --tree-lang en \
    --tree-ssplit punct ${PARSER_DIR:+--parser-dir "$PARSER_DIR"}

# On the held-out reviews the mean of all roots is better than the paper's first root. The BiLSTM has the largest batches,
# so it needs more epochs. A batch has to hold the longest review.
TOKENS=4096 TRAINING=(--lr 1e-3 --warmup-updates 200 --max-epoch 6)
case $ARCH in
    tree_*) TRAINING+=(${OURS:+--document-root mean}) ;;
    lstm*) TOKENS=60000 TRAINING=(--lr 2e-3 --warmup-updates 50 --max-epoch 12 --batch-size 32) ;;
esac
step "$RUN/checkpoints/checkpoint_last.pt" fairseq-train "$DATA_BIN" --user-dir "$ROOT/tree_fairseq" \
    --task tree_classification --max-source-positions 4096 --arch "$ARCH" --dropout 0.3 \
    --criterion tree_classification --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 10 "${TRAINING[@]}" \
    --lr-scheduler inverse_sqrt --warmup-init-lr 1e-7 --max-tokens "$TOKENS" --update-freq 1 \
    --required-batch-size-multiple 1 --best-checkpoint-metric accuracy --maximize-best-checkpoint-metric \
    --save-dir "$RUN/checkpoints" --no-epoch-checkpoints --no-progress-bar --log-interval 100 \
    --log-file "$RUN/train.log" --seed "$SEED" "${TOY_FLAGS[@]}" "${TRAIN_FLAGS[@]}"

step "$RUN/generate-test.txt" fairseq-generate "$DATA_BIN" --user-dir "$ROOT/tree_fairseq" --task tree_classification \
    --max-source-positions 4096 --scoring classification --path "$RUN/checkpoints/checkpoint_best.pt" \
    --gen-subset test --max-tokens "$TOKENS" --required-batch-size-multiple 1 --results-path "$RUN"
step "$RUN/score.json" tree-fairseq score classification --run "$RUN" --references "$TEXT" \
    --length-bounds 400 600 800 1000 --checkpoint "$RUN/checkpoints/checkpoint_best.pt" \
    --describe recipe=movie_reviews arch="$ARCH" parser="$PARSER" fold="$FOLD" seed="$SEED" --result "$OUT/result.json"
