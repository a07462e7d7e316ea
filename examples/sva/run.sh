#!/usr/bin/env bash
# Subject-verb agreement: the number of a verb from the words before it, Nguyen et al. (ICLR 2020), Table 2.
#
#   examples/sva/run.sh --data DIR --out DIR [options] [-- flags of fairseq-train]
#
#   --data DIR        the data set, see README.md; an empty folder is filled by a download
#   --out DIR         everything that is written, result.json among it
#   --arch A          tree_transformer_classifier_tiny where not given; tree_lstm_classifier_tiny reads trees, too, and
#                     transformer_classifier_tiny and lstm_classifier_tiny read the words alone
#   --training-text P,P,...  where --data has only a test set: folders with train.mrg (trees) or train.txt (text), or files.
#                     The next four options are then 12000, 3, 200 and 1000 where not given
#   --grammar N       add N generated beginnings to train, with words of the training sentences
#   --repeat-attractors K   write each beginning of the training sentences with attractors K times
#   --valid-attractors N    validate on N such beginnings, taken out of train, and as many without attractors
#   --subwords N      read pieces of words, of N merges; 0: words, of which rarer ones are unknown
#   --generated-test N      test on N other generated beginnings, too
#   --seed N          of training, 1 where not given
#   --parser P        stanza where not given; right-branching, balanced, random or flat trees are controls
#   --parser-dir DIR  folder of Stanza's model, where it is not to be downloaded
#   --tree-noise P    a share of the constituents, from 0 to 1, is attached elsewhere at random
#   --workers N       processes for preparing and parsing, all cores where not given
#   --toy             tiny sizes and made-up data, to see that everything runs
#   --dry-run         print the commands, run none
: "${ARCH:=tree_transformer_classifier_tiny}" "${SEED:=1}" "${PARSER:=stanza}" "${PARSER_DIR:=}" "${TREE_NOISE:=}"
: "${TRAINING_TEXT:=}" "${GRAMMAR:=}" "${REPEAT_ATTRACTORS:=}" "${VALID_ATTRACTORS:=}" "${SUBWORDS:=}"
: "${GENERATED_TEST:=}"
. "$(dirname "$0")/../lib/recipe.sh"; recipe "$@"
fill_data sva sva
[[ ! $TOY ]] || PARSER=right-branching
TEXT=$OUT/text DATA_BIN=$OUT/data-bin$(named PARSER TREE_NOISE SUBWORDS)
RUN=$OUT/runs/$ARCH$(named PARSER TREE_NOISE SUBWORDS)-seed$SEED$FLAGS_NAME
if [[ $TRAINING_TEXT && ! $TOY ]]; then # texts have few attractors
    GRAMMAR=${GRAMMAR:-12000} REPEAT_ATTRACTORS=${REPEAT_ATTRACTORS:-3} VALID_ATTRACTORS=${VALID_ATTRACTORS:-200}
    SUBWORDS=${SUBWORDS:-1000}
fi

# Only the words before a verb are written, and only they are parsed: the rest would give the number away
step "$TEXT" python -m preprocess.agreement --data "$DATA" --output "$TEXT" --test-size 20000 --workers "$WORKERS" \
    --parse-cache "$OUT/parse-cache" ${TRAINING_TEXT:+--training ${TRAINING_TEXT//,/ }} \
    ${PARSER_DIR:+--parser-dir "$PARSER_DIR"} ${GRAMMAR:+--grammar "$GRAMMAR"} \
    ${REPEAT_ATTRACTORS:+--repeat-attractors "$REPEAT_ATTRACTORS"} \
    ${VALID_ATTRACTORS:+--valid-attractors "$VALID_ATTRACTORS"} \
    ${GENERATED_TEST:+--generated-test "$GENERATED_TEST"} ${TOY:+--limit 120}
step "$DATA_BIN" fairseq-preprocess --user-dir "$ROOT/tree_fairseq" --task tree_classification --input-format tsv \
    --trainpref "$TEXT/train" --validpref "$TEXT/valid" --testpref "$TEXT/test${GENERATED_TEST:+,$TEXT/test1}" \
    --destdir "$DATA_BIN" --thresholdsrc 2 --workers "$WORKERS" --parse-cache "$OUT/parse-cache" \
    --tree-parser "${TREE_NOISE:+preprocess.degraded:}$PARSER${TREE_NOISE:+-$TREE_NOISE}" --tree-lang en \
    ${PARSER_DIR:+--parser-dir "$PARSER_DIR"} ${SUBWORDS:+--learn-subwords "$SUBWORDS"}

# 2 layers, d = 64 and 4 heads, which come with the architecture, and 2,000 tokens a batch are the paper's. The rest was
# chosen on a validation set with attractors.
step "$RUN/checkpoints/checkpoint_last.pt" fairseq-train "$DATA_BIN" --user-dir "$ROOT/tree_fairseq" \
    --task tree_classification --max-source-positions 1024 --arch "$ARCH" --dropout 0.2 \
    --criterion tree_classification --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 10 \
    --lr 2e-3 --lr-scheduler inverse_sqrt --warmup-updates 200 --warmup-init-lr 1e-7 \
    --max-tokens $((2000 / GPUS)) --update-freq 1 --required-batch-size-multiple 1 --max-epoch 18 \
    --best-checkpoint-metric accuracy --maximize-best-checkpoint-metric \
    --save-dir "$RUN/checkpoints" --no-epoch-checkpoints --no-progress-bar --log-interval 100 \
    --log-file "$RUN/train.log" --seed "$SEED" "${TOY_FLAGS[@]}" "${TRAIN_FLAGS[@]}"

for split in test ${GENERATED_TEST:+test1}; do
    step "$RUN/generate-$split.txt" fairseq-generate "$DATA_BIN" --user-dir "$ROOT/tree_fairseq" \
        --task tree_classification \
        --max-source-positions 1024 --scoring classification --path "$RUN/checkpoints/checkpoint_best.pt" \
        --gen-subset "$split" --max-tokens 2000 --required-batch-size-multiple 1 --results-path "$RUN"
done
step "$RUN/score.json" tree-fairseq score classification --run "$RUN" --references "$TEXT" \
    --sets test= ${GENERATED_TEST:+test1=generated} --length-bounds 10 20 30 40 50 \
    --checkpoint "$RUN/checkpoints/checkpoint_best.pt" \
    --describe recipe=sva arch="$ARCH" parser="$PARSER" seed="$SEED" --result "$OUT/result.json"
