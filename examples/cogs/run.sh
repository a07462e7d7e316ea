#!/usr/bin/env bash
# COGS: sentences to logical forms, and sentences that are built unlike all of training, with Treeformer: Patel & Flanigan
# (2023), Table 4. trees.sh beside this file has models with tree positions.
#
# examples/cogs/run.sh --data DIR --out DIR [options] [-- flags of fairseq-train]
#
#   --data DIR                  {train,dev,test,gen}.tsv; an empty folder is filled
#   --out DIR                   everything that is written; result.json has the scores
#   --arch A                    treeformer_cogs, or the baseline: transformer
#   --targets T                 variable-free, which are trees, or original, with variables
#   --schedule S                short, for a CPU core; long, 30,000 updates of smaller models; paper, 50,000 updates
#   --generalization-sample N   score N lines of the generalization set, evenly from its categories: 2100; all: 21,000
#   --score-forms F             variable-free, or original: outputs are converted before they are compared
#   --seed N                    of training: 1
#   --subset N                  train on N pairs
#   --workers N                 processes of fairseq-preprocess: all cores
#   --toy                       made-up data and tiny sizes, in OUT/toy
#   --dry-run                   print the commands, run none
: "${ARCH:=treeformer_cogs}" "${TARGETS:=variable-free}" "${SCHEDULE:=short}" "${GENERALIZATION_SAMPLE:=2100}"
: "${SCORE_FORMS:=variable-free}" "${SEED:=1}" "${SUBSET:=}"
. "$(dirname "$0")/../lib/recipe.sh"; recipe "$@"

case "$TARGETS" in
    variable-free) DATA_SET=cogs FETCH=cogs_variable_free NOTATION=variable-free LONGEST=200 ;;
    original) DATA_SET=cogs_original FETCH=cogs NOTATION=lines LONGEST=500 ;;
    *) die "--targets $TARGETS: give variable-free or original" ;;
esac
# 2+2 layers, d = 512, ffn 512, 4 heads; with the long schedule a quarter of the parameters
WIDTH=512
[[ $SCHEDULE != long ]] || WIDTH=256
SIZES=(--encoder-layers 2 --encoder-embed-dim "$WIDTH" --encoder-ffn-embed-dim 512 --encoder-attention-heads 4
    --decoder-layers 2 --decoder-embed-dim "$WIDTH" --decoder-ffn-embed-dim 512 --decoder-attention-heads 4)
case "$ARCH" in
    treeformer*) MODEL=("${SIZES[@]}" --treeformer-height 10) ;;
    transformer*) MODEL=("${SIZES[@]}") ;;
    *) die "--arch $ARCH: --help lists the architectures" ;;
esac
# The paper names the schedule of Csordas et al. (2021). The others are ours: one gets far in little time, the other is for a
# night on a CPU core, as long trainings generalize.
case "$SCHEDULE" in
    paper) BATCH=128 RATES=(--adam-betas '(0.9, 0.999)' --lr 1e-4 --lr-scheduler fixed --max-update 50000) ;;
    long) BATCH=64
        RATES=(--adam-betas '(0.9, 0.98)' --lr 3e-4 --lr-scheduler inverse_sqrt --warmup-updates 2000 --max-update 30000) ;;
    short) BATCH=64 RATES=(--adam-betas '(0.9, 0.98)' --lr 5e-4 --lr-scheduler polynomial_decay --warmup-updates 300
        --total-num-update 2500 --max-update 2500) ;;
    *) die "--schedule $SCHEDULE: give short, long or paper" ;;
esac
# test1 is the whole generalization set, test2 a sample of it.
SAMPLE=$GENERALIZATION_SAMPLE GENERALIZATION=test2
if [[ $SAMPLE == all ]]; then SAMPLE=2100 GENERALIZATION=test1; fi
[[ ! $TOY ]] || SAMPLE=5

WORK=$OUT/$TARGETS
TEXT=$WORK/text$(named SUBSET GENERALIZATION_SAMPLE)
BIN=$WORK/data-bin$(named SUBSET GENERALIZATION_SAMPLE)
FORMS=()
[[ $TARGETS == original ]] || FORMS=(--original-forms "$TEXT/original")
RUN=$WORK/runs/$ARCH$(named SUBSET GENERALIZATION_SAMPLE SCHEDULE)-seed$SEED$FLAGS_NAME
OUTPUT=$RUN$(named SCORE_FORMS)

fill_data "$DATA_SET" "$FETCH"
# Words and symbols as they are; the test sets with original forms, too, which --score-forms may compare
step "$TEXT" python -m preprocess.semantic_parsing cogs --data "$DATA" --output "$TEXT" --source nl --target lf \
    --targets "$TARGETS" --generalization-sample "$SAMPLE" ${SUBSET:+--subset "$SUBSET"} ${TOY:+--limit 120} "${FORMS[@]}"
step "$BIN" fairseq-preprocess -s nl -t lf --trainpref "$TEXT/train" --validpref "$TEXT/valid" \
    --testpref "$TEXT/test,$TEXT/test1,$TEXT/test2" --destdir "$BIN" --workers "$WORKERS"

step "$RUN/checkpoints/checkpoint_last.pt" fairseq-train "$BIN" --user-dir "$ROOT/tree_fairseq" --task translation \
    -s nl -t lf --arch "$ARCH" "${MODEL[@]}" --share-decoder-input-output-embed --dropout 0.1 \
    --optimizer adam --clip-norm 1 "${RATES[@]}" --criterion cross_entropy \
    --batch-size "$((BATCH / GPUS))" --required-batch-size-multiple 1 --seed "$SEED" \
    --no-epoch-checkpoints --save-dir "$RUN/checkpoints" \
    --no-progress-bar --log-interval 100 --log-file "$RUN/train.log" "${TOY_FLAGS[@]}" "${TRAIN_FLAGS[@]}"

# Greedy, from the last checkpoint: the validation set is no harder than training, and stops too early.
for set in test "$GENERALIZATION"; do
    step "$RUN/generate-$set.txt" fairseq-generate "$BIN" --user-dir "$ROOT/tree_fairseq" --task translation -s nl -t lf \
        --path "$RUN/checkpoints/checkpoint_last.pt" --gen-subset "$set" --beam 1 --max-len-b "$LONGEST" \
        --batch-size 128 --required-batch-size-multiple 1 --results-path "$RUN"
    [[ $SCORE_FORMS == variable-free ]] || step "$OUTPUT/generate-$set.txt" python -m preprocess.cogs_forms --run "$RUN" \
        --set "$set" --sentences "$TEXT/$set.nl" --output "$OUTPUT"
done
# Whole logical forms, by category
[[ $SCORE_FORMS == variable-free ]] || TEXT=$TEXT/original NOTATION=lines
step "$OUTPUT/score.json" tree-fairseq score structural --run "$OUTPUT" --references "$TEXT" --target-lang lf \
    --notation "$NOTATION" --sets test= "$GENERALIZATION=generalization" --primary accuracy_generalization \
    --checkpoint "$RUN/checkpoints/checkpoint_last.pt" \
    --describe recipe=cogs targets="$TARGETS" arch="$ARCH" seed="$SEED" --result "$OUT/result.json"
