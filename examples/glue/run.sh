#!/usr/bin/env bash
# GLUE: sentences and pairs, classified or rated by an encoder with a chart, Patel & Flanigan (2023), Tables 3 and 9.
#
#   examples/glue/run.sh --data DIR --out DIR [options] [-- flags of fairseq-train]
#
#   --data DIR        the folder of the task, see README.md
#   --out DIR         everything that is written, result.json among it; each task and encoder needs another
#   --glue-task T     cola where not given, sst2, mrpc, stsb, mnli, or sick, which is of mnli's kind
#   --arch A          treeformer_classifier_tiny where not given
#   --chart no        the baseline: the encoder without a chart of phrases
#   --encoder-path P  a pretrained encoder: a folder, or a name on the hub such as albert-base-v2
#   --average N       classify with the average of the last N epochs, where not given with the best on the validation set
#   --seed N          of training, 1 where not given
#   --workers N       processes for preparing, all cores where not given
#   --toy             tiny sizes and made-up data, to see that everything runs
#   --dry-run         print the commands, run none
: "${GLUE_TASK:=cola}" "${ARCH:=treeformer_classifier_tiny}" "${CHART:=yes}" "${ENCODER_PATH:=}" "${AVERAGE:=}" "${SEED:=1}"
. "$(dirname "$0")/../lib/recipe.sh"; recipe "$@"

FORMAT=pair TESTS=(test) SETS=(test=) SELECT=accuracy PRIMARY=accuracy SCORING=classification READING=()
case $GLUE_TASK in
    cola) FORMAT=sentence SELECT=matthews PRIMARY=matthews ;;
    sst2) FORMAT=sentence ;;
    mrpc | sick) ;;
    stsb) SELECT=pearson PRIMARY=pearson SCORING=regression READING=(--regression) ;;
    mnli) TESTS=(test test1) SETS=(test=matched test1=mismatched) PRIMARY=accuracy_matched ;;
    *) die "--glue-task $GLUE_TASK: give cola, sst2, mrpc, stsb, mnli or sick" ;;
esac
fill_data "glue_$GLUE_TASK"
TEXT=$OUT/text DATA_BIN=$OUT/data-bin RUN=$OUT/runs/$ARCH$(named CHART AVERAGE)-seed$SEED$FLAGS_NAME

# From scratch: small enough for one core. Dropout, rate and batch were chosen on the tenth of train that validates.
DROPOUT=0.3 BATCH=32 TOKENS=4096 POSITIONS=512
[[ $GLUE_TASK != cola ]] || DROPOUT=0.1
MODEL=(--dropout "$DROPOUT")
OPTIMIZER=(--adam-betas '(0.9, 0.98)' --lr 1e-3 --lr-scheduler inverse_sqrt --warmup-updates 200)
LIMITS=(--max-epoch 15)
if [[ $ENCODER_PATH ]]; then
    # Fine-tuning: the paper's appendix, whose baseline without a chart has the settings of Lan et al. (2020) for ALBERT.
    # Numbers of updates are not in the paper, and are those of Lan et al.
    TOKENS=16384 POSITIONS=511 READING+=(--srcdict "$TEXT/dict.text.txt")
    case $GLUE_TASK-$CHART in
        cola-yes)            RATE=2e-5    WARMUP=320  UPDATES=5336  BATCH=16  DROPOUT=0.0  CLASSIFIER_DROPOUT=0.1 ;;
        cola-no)             RATE=1e-5    WARMUP=320  UPDATES=5336  BATCH=16  DROPOUT=0.0  CLASSIFIER_DROPOUT=0.1 ;;
        mnli-yes | sick-yes) RATE=1.76e-5 WARMUP=1000 UPDATES=10000 BATCH=128 DROPOUT=0.1  CLASSIFIER_DROPOUT=0.0 ;;
        mnli-no | sick-no)   RATE=3e-5    WARMUP=1000 UPDATES=10000 BATCH=128 DROPOUT=0.1  CLASSIFIER_DROPOUT=0.0 ;;
        mrpc-yes)            RATE=1.63e-5 WARMUP=100  UPDATES=800   BATCH=16  DROPOUT=0.04 CLASSIFIER_DROPOUT=0.08 ;;
        mrpc-no)             RATE=2e-5    WARMUP=200  UPDATES=800   BATCH=32  DROPOUT=0.0  CLASSIFIER_DROPOUT=0.1 ;;
        sst2-yes)            RATE=1e-5    WARMUP=400  UPDATES=20935 BATCH=16  DROPOUT=0.15 CLASSIFIER_DROPOUT=0.1 ;;
        sst2-no)             RATE=1e-5    WARMUP=1256 UPDATES=20935 BATCH=32  DROPOUT=0.0  CLASSIFIER_DROPOUT=0.1 ;;
        stsb-yes)            RATE=3e-5    WARMUP=642  UPDATES=3598  BATCH=16  DROPOUT=0.1  CLASSIFIER_DROPOUT=0.1 ;;
        stsb-no)             RATE=2e-5    WARMUP=214  UPDATES=3598  BATCH=16  DROPOUT=0.0  CLASSIFIER_DROPOUT=0.1 ;;
    esac
    MODEL=(--encoder-name "$ENCODER_PATH" --dropout "$DROPOUT" --attention-dropout "$DROPOUT"
        --classifier-dropout "$CLASSIFIER_DROPOUT")
    OPTIMIZER=(--adam-betas '(0.9, 0.999)' --adam-eps 1e-6 --lr "$RATE" --lr-scheduler cosine \
    --warmup-updates "$WARMUP")
    LIMITS=(--max-update "$UPDATES")
else
    READING+=(--thresholdsrc 2) # words that occur once are unknown
fi
[[ $CHART = yes ]] || MODEL+=(--no-chart)

# The development set tests, and a tenth of train selects the epoch: the paper's protocol
step "$TEXT" python -m preprocess.glue "$GLUE_TASK" --data "$DATA" --output "$TEXT" \
    ${ENCODER_PATH:+--pieces-of "$ENCODER_PATH"} ${TOY:+--limit 120}
step "$DATA_BIN" fairseq-preprocess --user-dir "$ROOT/tree_fairseq" --task tree_sentence_classification \
    --input-format "$FORMAT" "${READING[@]}" --trainpref "$TEXT/train" --validpref "$TEXT/valid" \
    --testpref "$(IFS=,; echo "${TESTS[*]/#/$TEXT/}")" --destdir "$DATA_BIN" --workers "$WORKERS"

KEEP=(--no-epoch-checkpoints) CHECKPOINT=$RUN/checkpoints/checkpoint_best.pt
[[ ! $AVERAGE ]] || KEEP=(--keep-last-epochs "$AVERAGE") CHECKPOINT=$RUN/checkpoints/average.pt
step "$RUN/checkpoints/checkpoint_last.pt" fairseq-train "$DATA_BIN" --user-dir "$ROOT/tree_fairseq" \
    --task tree_sentence_classification \
    --max-source-positions "$POSITIONS" --arch "$ARCH" "${MODEL[@]}" --optimizer adam "${OPTIMIZER[@]}" --clip-norm 1 \
    --weight-decay 0.01 --criterion "tree_$SCORING" --batch-size $((BATCH / GPUS)) --update-freq 1 \
    --max-tokens "$TOKENS" --required-batch-size-multiple 1 "${LIMITS[@]}" --best-checkpoint-metric "$SELECT" \
    --maximize-best-checkpoint-metric \
    --save-dir "$RUN/checkpoints" "${KEEP[@]}" --no-progress-bar --log-interval 100 --log-file "$RUN/train.log" \
    --seed "$SEED" "${TOY_FLAGS[@]}" "${TRAIN_FLAGS[@]}"
[[ ! $AVERAGE ]] || step "$CHECKPOINT" tree-fairseq average "$RUN/checkpoints" --last-epochs "$AVERAGE" \
    --output "$CHECKPOINT"

for split in "${TESTS[@]}"; do
    step "$RUN/generate-$split.txt" fairseq-generate "$DATA_BIN" --user-dir "$ROOT/tree_fairseq" \
        --task tree_sentence_classification --max-source-positions "$POSITIONS" --scoring "$SCORING" \
        --path "$CHECKPOINT" \
        --gen-subset "$split" --max-tokens "$TOKENS" --required-batch-size-multiple 1 --results-path "$RUN"
done
BOUNDS=(); [[ $SCORING = regression ]] || BOUNDS=(--length-bounds 10 20 30 40 50)
step "$RUN/score.json" tree-fairseq score "$SCORING" --run "$RUN" --references "$TEXT" --sets "${SETS[@]}" \
    --primary "$PRIMARY" "${BOUNDS[@]}" --checkpoint "$CHECKPOINT" \
    --describe recipe=glue arch="$ARCH" task="$GLUE_TASK" chart="$CHART" seed="$SEED" --result "$OUT/result.json"
