#!/usr/bin/env bash
# GLUE: sentences and pairs of them, classified or rated by an encoder with a chart over its states, Patel & Flanigan (2023), Table 3.
set -euo pipefail
. "$(dirname "$0")/../lib/classification.sh"

TASK=tree_sentence_classification
DEFAULT_ARCH=treeformer_classifier_tiny
OPTIONS='glue-task encoder-path chart' GLUE_TASK='' ENCODER_PATH='' CHART=yes
OWN_STAGES=sweep HEIGHT=10 SWEEP_HEIGHTS=(2 5 10 15 20)
OWN_USAGE='  --glue-task T       cola, sst2, mrpc, stsb, mnli, or sick (of mnli'"'"'s kind)
  --encoder-path DIR  a pretrained encoder (or its name on the hub, such as albert-base-v2); from scratch without it
  --chart yes|no      with phrases (where not given), or the baseline without
  --stage sweep       charts of several heights, and none, as a table and a picture'

# What a model is selected and scored by
figures() {
    FORMAT=sentence
    case $GLUE_TASK in
        cola) SELECT=matthews ;;
        mrpc) FORMAT=pair SELECT=accuracy ;;
        stsb) FORMAT=pair SELECT=pearson SCORING=regression CRITERION=tree_regression ;;
        mnli) FORMAT=pair SETS=(test=matched test1=mismatched) PRIMARY=accuracy_matched ;;
        sick) FORMAT=pair ;;
    esac
    PRIMARY=${PRIMARY:-$SELECT}
}

# From scratch: small enough for one core; dropout, learning rate and batch by a few trials on the tenth that selects
from_scratch() {
    local dropout=0.3
    if [ "$GLUE_TASK" = cola ]; then dropout=0.1; fi
    THRESHOLD=2 DEVICE_TOKENS=4096 POSITIONS=512
    TREEFORMER=(--dropout "$dropout")
    TRAINING=(
        --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 1 --weight-decay 0.01
        --lr 1e-3 --lr-scheduler inverse_sqrt --warmup-updates 200
    )
    BATCH_SIZE=32
    LIMITS=(--max-epoch 15)
}

# Fine-tuning: appendix of the paper, whose baseline has the settings of Lan et al. (2020) for ALBERT, the numbers of updates from there
fine_tuning() {
    local batch rate warmup dropout readout updates
    case $GLUE_TASK-$CHART in
        cola-yes) batch=16 rate=2e-5 warmup=320 dropout=0.0 readout=0.1 updates=5336 ;;
        cola-no) batch=16 rate=1e-5 warmup=320 dropout=0.0 readout=0.1 updates=5336 ;;
        mnli-yes | sick-yes) batch=128 rate=1.76e-5 warmup=1000 dropout=0.1 readout=0.0 updates=10000 ;;
        mnli-no | sick-no) batch=128 rate=3e-5 warmup=1000 dropout=0.1 readout=0.0 updates=10000 ;;
        mrpc-yes) batch=16 rate=1.63e-5 warmup=100 dropout=0.04 readout=0.08 updates=800 ;;
        mrpc-no) batch=32 rate=2e-5 warmup=200 dropout=0.0 readout=0.1 updates=800 ;;
        sst2-yes) batch=16 rate=1e-5 warmup=400 dropout=0.15 readout=0.1 updates=20935 ;;
        sst2-no) batch=32 rate=1e-5 warmup=1256 dropout=0.0 readout=0.1 updates=20935 ;;
        stsb-yes) batch=16 rate=3e-5 warmup=642 dropout=0.1 readout=0.1 updates=3598 ;;
        stsb-no) batch=16 rate=2e-5 warmup=214 dropout=0.0 readout=0.1 updates=3598 ;;
    esac
    CORPUS_FLAGS+=(--pieces-of "$ENCODER_PATH")
    BATCH_SIZE=$batch DEVICE_TOKENS=16384 POSITIONS=511
    TREEFORMER=(--encoder-name "$ENCODER_PATH" --dropout "$dropout" --attention-dropout "$dropout" --classifier-dropout "$readout")
    TOY_TREEFORMER=()
    TRAINING=(
        --optimizer adam --adam-betas '(0.9, 0.999)' --adam-eps 1e-6 --clip-norm 1 --weight-decay 0.01
        --lr "$rate" --lr-scheduler cosine --warmup-updates "$warmup"
    )
    LIMITS=(--max-update "$updates")
}

# encoder_name: of the hub, or of a folder with a digest of its files, for several folders may have that name
encoder_name() {
    if [ -d "$ENCODER_PATH" ]; then
        printf '%s-%.8s' "$(basename "$ENCODER_PATH")" "$(key "$ENCODER_PATH"/*.json "$ENCODER_PATH"/*.safetensors)"
    else
        printf '%s' "${ENCODER_PATH//\//-}"
    fi
}

settings() {
    one_of --glue-task "$GLUE_TASK" cola sst2 mrpc stsb mnli sick
    one_of --chart "$CHART" yes no
    [ -z "$PARSER$PARSER_DIR" ] || die "this recipe reads no trees: leave out --parser and --parser-dir"
    DATASET=glue_$GLUE_TASK VARIANT=$GLUE_TASK CRITERION=tree_classification DESCRIPTION=("height=$HEIGHT")
    figures
    case $ARCH in
        treeformer_classifier*) ;;
        *)
            [ -z "$ENCODER_PATH" ] || die "--encoder-path goes with a treeformer_classifier* architecture"
            case $CHART-$STAGE in yes-ablate | yes-sweep | no-*) die "--arch $ARCH has no chart to leave out or to vary" ;; esac
            DESCRIPTION=()
            ;;
    esac
    if [ -n "$ENCODER_PATH" ]; then
        if [ -d "$ENCODER_PATH" ]; then ENCODER_PATH=$(cd "$ENCODER_PATH" && pwd); fi
        VARIANT+=-$(encoder_name)
        fine_tuning
    else
        from_scratch
    fi
    TRAINING+=(--criterion "$CRITERION")
    if [ "$CHART" = no ]; then MAIN_VARIANT=-no-chart MAIN_FLAGS=(--no-chart) DESCRIPTION=(); fi
    if [ "$STAGE" = sweep ]; then STAGES=${STAGES/ablate/sweep}; fi
    model_flags "$ARCH"
}

make_corpus() {
    run python -m preprocess.glue "$GLUE_TASK" --data "$DATA" --output "$CORPUS" "${CORPUS_FLAGS[@]}" ${SUBSET:+--subset "$SUBSET"}
}

# preprocess PARSER FOLDER
preprocess() {
    local folder=$2 flags=(--input-format "$FORMAT") tests=() subset
    if [ "$SCORING" = regression ]; then flags+=(--regression); fi
    if [ -n "$ENCODER_PATH" ]; then flags+=(--srcdict "$CORPUS/dict.text.txt"); fi
    for subset in "${TEST_SUBSETS[@]}"; do tests+=("$CORPUS/$subset"); done
    run rm -rf "$folder"
    run fairseq-preprocess --user-dir "$ROOT/tree_fairseq" --task "$TASK" "${flags[@]}" \
        --trainpref "$CORPUS/train" --validpref "$CORPUS/valid" --testpref "$(IFS=,; printf '%s' "${tests[*]}")" \
        --destdir "$folder" --thresholdsrc "$THRESHOLD" --workers "$WORKERS"
}

# The baseline, with the same seeds
ablate() {
    [ "$CHART" = yes ] || die "--stage $STAGE sets models with a chart beside that without: leave out --chart"
    DESCRIPTION=()
    systems "$MAIN_PARSER" "$SUFFIX" -no-chart --no-chart
}

# Heights of the chart, appendix B of the paper
sweep() {
    local height rows
    ablate
    rows=("${SCORED[@]}")
    for height in "${SWEEP_HEIGHTS[@]}"; do
        DESCRIPTION=("height=$height")
        if [ "$height" = "$HEIGHT" ]; then systems "$MAIN_PARSER" "$SUFFIX" ''
        else systems "$MAIN_PARSER" "$SUFFIX" "-height-$height" --treeformer-height "$height"; fi
        rows+=("${SCORED[@]}")
    done
    run python "$LIBRARY/sweep.py" --runs "${rows[@]}" --checkpoint "$CHECKPOINT" --height "$HEIGHT" --metric "$PRIMARY" --output "$OUT"
}

recipe "$@"; exit # on one line: bash reads no further, so that this file may change meanwhile
