#!/usr/bin/env bash
# IMDB: positive and negative reviews of many sentences, Nguyen et al. (ICLR 2020), Table 2.
#
#   examples/imdb/run.sh --data DIR --out DIR [options] [-- flags of fairseq-train]
#
#   --data DIR        the data set, see README.md; an empty folder is filled by a download
#   --out DIR         everything that is written, result.json among it
#   --arch A          tree_transformer_classifier_tiny where not given; tree_lstm_classifier_tiny reads trees, too, and
#                     transformer_classifier_tiny and lstm_classifier_tiny read the words alone
#   --seed N          of training, 1 where not given
#   --parser P        stanza where not given; right-branching, balanced, random or flat trees are controls
#   --parser-dir DIR  folder of Stanza's model, where it is not to be downloaded
#   --workers N       processes for preparing and parsing, all cores where not given
#   --toy             tiny sizes and made-up data, to see that everything runs
#   --dry-run         print the commands, run none
: "${ARCH:=tree_transformer_classifier_tiny}" "${SEED:=1}" "${PARSER:=stanza}" "${PARSER_DIR:=}"
. "$(dirname "$0")/../lib/recipe.sh"; recipe "$@"
fill_data imdb imdb
[[ ! $TOY ]] || PARSER=right-branching
TEXT=$OUT/text DATA_BIN=$OUT/data-bin$(named PARSER) RUN=$OUT/runs/$ARCH$(named PARSER)-seed$SEED$FLAGS_NAME

# 2,500 reviews of train validate. Each sentence of a review gets a tree; words that occur less than five times are
# unknown.
step "$TEXT" python -m preprocess.classification imdb --data "$DATA" --output "$TEXT" --workers "$WORKERS" \
    ${TOY:+--limit 120 --valid 20}
step "$DATA_BIN" fairseq-preprocess --user-dir "$ROOT/tree_fairseq" --task tree_classification --input-format tsv \
    --trainpref "$TEXT/train" --validpref "$TEXT/valid" --testpref "$TEXT/test" --destdir "$DATA_BIN" \
    --thresholdsrc 5 --workers "$WORKERS" --parse-cache "$OUT/parse-cache" --tree-parser "$PARSER" --tree-lang en \
    --tree-ssplit punct ${PARSER_DIR:+--parser-dir "$PARSER_DIR"}

# Sizes come with the architecture: 2 layers, d = 64 and 4 heads, as in the paper. Dropout, rate and warm-up are those of
# the authors' released script for SST. The paper's batches have 2,000 tokens; ours have to hold the longest review.
step "$RUN/checkpoints/checkpoint_last.pt" fairseq-train "$DATA_BIN" --user-dir "$ROOT/tree_fairseq" \
    --task tree_classification --max-source-positions 4096 --arch "$ARCH" --dropout 0.1 \
    --criterion tree_classification --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 10 \
    --lr 7e-4 --lr-scheduler inverse_sqrt --warmup-updates 4000 --warmup-init-lr 1e-7 --max-tokens 4096 --update-freq 1 \
    --required-batch-size-multiple 1 --max-update 15000 \
    --best-checkpoint-metric accuracy --maximize-best-checkpoint-metric \
    --save-dir "$RUN/checkpoints" --no-epoch-checkpoints --no-progress-bar --log-interval 100 \
    --log-file "$RUN/train.log" --seed "$SEED" "${TOY_FLAGS[@]}" "${TRAIN_FLAGS[@]}"

step "$RUN/generate-test.txt" fairseq-generate "$DATA_BIN" --user-dir "$ROOT/tree_fairseq" --task tree_classification \
    --max-source-positions 4096 --scoring classification --path "$RUN/checkpoints/checkpoint_best.pt" \
    --gen-subset test --max-tokens 4096 --required-batch-size-multiple 1 --results-path "$RUN"
step "$RUN/score.json" tree-fairseq score classification --run "$RUN" --references "$TEXT" \
    --length-bounds 100 200 400 800 --checkpoint "$RUN/checkpoints/checkpoint_best.pt" \
    --describe recipe=imdb arch="$ARCH" parser="$PARSER" seed="$SEED" --result "$OUT/result.json"
