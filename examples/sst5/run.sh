#!/usr/bin/env bash
# SST-5: sentiment in five classes at every node of a tree, Nguyen et al. (ICLR 2020), Tables 2 and 3.
#
#   examples/sst5/run.sh --data DIR --out DIR [options] [-- flags of fairseq-train]
#
#   --data DIR        the data set, see README.md; an empty folder is filled by a download
#   --out DIR         everything that is written, result.json among it
#   --arch A          tree_transformer_classifier_tiny where not given; tree_lstm_classifier_tiny reads trees, too, and
#                     transformer_classifier_tiny and lstm_classifier_tiny read the words alone
#   --seed N          of training, 1 where not given
#   --workers N       processes for preparing and parsing, all cores where not given
#   --toy             tiny sizes and made-up data, to see that everything runs
#   --dry-run         print the commands, run none
: "${ARCH:=tree_transformer_classifier_tiny}" "${SEED:=1}"
. "$(dirname "$0")/../lib/recipe.sh"; recipe "$@"
fill_data sst5 sst5
TEXT=$OUT/text DATA_BIN=$OUT/data-bin RUN=$OUT/runs/$ARCH-seed$SEED$FLAGS_NAME

# Bracketed trees with a class at every node, which models learn and never read; words that occur once are unknown
step "$TEXT" python -m preprocess.classification sst5 --data "$DATA" --output "$TEXT" ${TOY:+--limit 120}
step "$DATA_BIN" fairseq-preprocess --user-dir "$ROOT/tree_fairseq" --task tree_classification --input-format trees \
    --trainpref "$TEXT/train" --validpref "$TEXT/valid" --testpref "$TEXT/test" --destdir "$DATA_BIN" \
    --thresholdsrc 2 --workers "$WORKERS"

# 2 layers, d = 64 and 4 heads, which come with the architecture, and 2,000 tokens a batch are the paper's. It leaves the
# rest open. Dropout, rate and epochs were chosen on the validation set; the authors' released script has dropout 0.1, learning
# rate 7e-4 and 4,000 updates of warm-up.
step "$RUN/checkpoints/checkpoint_last.pt" fairseq-train "$DATA_BIN" --user-dir "$ROOT/tree_fairseq" \
    --task tree_classification --max-source-positions 1024 --arch "$ARCH" --dropout 0.5 \
    --criterion tree_classification --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 10 \
    --lr 2e-3 --lr-scheduler inverse_sqrt --warmup-updates 200 --warmup-init-lr 1e-7 \
    --max-tokens $((2000 / GPUS)) --update-freq 1 --required-batch-size-multiple 1 --max-epoch 20 \
    --best-checkpoint-metric accuracy --maximize-best-checkpoint-metric \
    --save-dir "$RUN/checkpoints" --no-epoch-checkpoints --no-progress-bar --log-interval 100 \
    --log-file "$RUN/train.log" --seed "$SEED" "${TOY_FLAGS[@]}" "${TRAIN_FLAGS[@]}"

step "$RUN/generate-test.txt" fairseq-generate "$DATA_BIN" --user-dir "$ROOT/tree_fairseq" --task tree_classification \
    --max-source-positions 1024 --scoring classification --path "$RUN/checkpoints/checkpoint_best.pt" \
    --gen-subset test --max-tokens 2000 --required-batch-size-multiple 1 --results-path "$RUN"
step "$RUN/score.json" tree-fairseq score classification --run "$RUN" --references "$TEXT" \
    --length-bounds 10 20 30 40 50 --checkpoint "$RUN/checkpoints/checkpoint_best.pt" \
    --describe recipe=sst5 arch="$ARCH" seed="$SEED" --result "$OUT/result.json"
