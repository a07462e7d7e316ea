# What the recipes of Patel & Flanigan's tables share: their options and stages. Models read plain text, so there are no parsers;
# the checkpoint that is best on the validation set generates. A run.sh sources this file, sets its data, models, optimisation
# and scoring, and calls `recipe "$@"`.

. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. "$LIBRARY/treeformer_models.sh"

STAGES='prepare preprocess train generate score sweep'
# Where a recipe says nothing else: one test set, words as they are, a dictionary for each side, the best checkpoint
SETS=(test=) SUBWORDS='' SUBWORD_SIDES=() JOINED='' SELECTION=() CHECKPOINT=checkpoint_best.pt
TEST_SUBSETS=() OPTIONS='' OWN_USAGE='' SETTING='' VARIANT='' RUN_VARIANT='' CORPUS_FLAGS=() BATCH_UNIT=--max-tokens
# Phrases have up to 10 tokens; what --stage sweep goes through
HEIGHT=10 SWEEP_LAYERS=(2 4 6 8) SWEEP_HEIGHTS=(2 5 10 15 20) SWEEP_LENGTHS=(10 20 40 80 160)

option_usage() {
    cat << USAGE
  --arch A            architecture, $DEFAULT_ARCH where not given, or $BASELINE
  --encoder-layers N  layers of the encoder, $LAYERS where not given
  --height H          tokens of the longest phrases of a treeformer*, $HEIGHT where not given
  --stage S           ${STAGE_USAGE//ablate/sweep}
  --subset N          train on N pairs
$SEED_USAGE
  --workers N         processes for preparing (all cores)
USAGE
}

parse_options() {
    ARCH=$DEFAULT_ARCH STAGE=score SUBSET='' SEED='' SEEDS='' ENCODER_LAYERS=''
    WORKERS=$(getconf _NPROCESSORS_ONLN)
    FULL_HEIGHT=$HEIGHT
    read_options "data out setting arch encoder-layers height stage subset seed seeds workers $OPTIONS" "$@"
    one_of --setting "${SETTING:=treeformer}" treeformer
    if [ -n "$TOY" ]; then
        LAYERS=1 SWEEP_LAYERS=(1 2) SWEEP_HEIGHTS=(2 10) SWEEP_LENGTHS=(4 8)
        [ -z "$SUBWORDS" ] || SUBWORDS=60
    fi
    ENCODER_LAYERS=${ENCODER_LAYERS:-$LAYERS}
    [[ $ENCODER_LAYERS =~ ^[1-9][0-9]*$ ]] || die "--encoder-layers needs a number"
    [[ $HEIGHT =~ ^([2-9]|[1-9][0-9]+)$ ]] || die "--height needs a number of at least 2"
    settle_seeds
    model_flags "$ARCH" "$ENCODER_LAYERS" "$HEIGHT"
}

# places: absolute paths
places() {
    data_and_out
    WORK=$OUT${VARIANT:+/$VARIANT}${SUBSET:+/subset-$SUBSET}
    WORDS=$WORK/words PIECES=$WORK/words
    if [ -n "$SUBWORDS" ]; then PIECES=$WORK/bpe; fi
    [ ${#TEST_SUBSETS[@]} -gt 0 ] || TEST_SUBSETS=("${SETS[@]%%=*}")
    SPLITS=(train valid "${TEST_SUBSETS[@]}")
}

# --- stages ----------------------------------------------------------------------------------------------------------

prepare() {
    run rm -rf "$WORDS" "$PIECES" "$WORK/official"
    make_corpus
    run rm -rf "$WORK/official"
    [ -z "$SUBWORDS" ] || split_words "$SUBWORDS" "${SUBWORD_SIDES[@]}"
}

# make_corpus: WORDS/{train,valid,test}.{SOURCE,TARGET}; COGS has its own
make_corpus() {
    local limit=()
    if [ -n "$TOY" ]; then limit=(--limit 120); fi
    run python -m preprocess.prepare "$DATASET" --data "$DATA" --source "$SOURCE" --target "$TARGET" \
        --output "$WORDS" --work "$WORK/official" --workers "$WORKERS" ${SUBSET:+--subset "$SUBSET"} "${limit[@]}"
}

# preprocess: DATA_BIN, a folder of plain text as fairseq makes it
preprocess() {
    local tests=() subset
    for subset in "${TEST_SUBSETS[@]}"; do tests+=("$PIECES/$subset"); done
    run rm -rf "$DATA_BIN"
    run fairseq-preprocess -s "$SOURCE" -t "$TARGET" --trainpref "$PIECES/train" --validpref "$PIECES/valid" \
        --testpref "$(IFS=,; printf '%s' "${tests[*]}")" --destdir "$DATA_BIN" ${JOINED:+--joined-dictionary} --workers "$WORKERS"
}

# train RUN FLAGS...: train (or go on from the last checkpoint), keep the best epoch and the last
train() {
    local folder=$1 limits=("${LIMITS[@]}")
    shift
    batch_flags "$BATCH_SIZE" "$DEVICE_BATCH_SIZE" "$BATCH_UNIT"
    if [ -n "$TOY" ]; then limits+=("${TOY_LIMITS[@]}"); fi
    run fairseq-train "$DATA_BIN" --user-dir "$ROOT/tree_fairseq" --task translation -s "$SOURCE" -t "$TARGET" \
        --arch "$RUN_ARCH" "${TRAINING[@]}" "${MODEL[@]}" "${BATCH[@]}" --required-batch-size-multiple 1 "${limits[@]}" \
        "${SELECTION[@]}" --save-dir "$folder/checkpoints" --no-epoch-checkpoints --no-progress-bar --log-interval 100 \
        --log-file "$folder/train.log" "$@"
}

# generate RUN
generate() {
    local subset
    for subset in "${SETS[@]%%=*}"; do
        run fairseq-generate "$DATA_BIN" --user-dir "$ROOT/tree_fairseq" --task translation -s "$SOURCE" -t "$TARGET" \
            --path "$1/checkpoints/$CHECKPOINT" --gen-subset "$subset" "${GENERATION[@]}" \
            --required-batch-size-multiple 1 ${SUBWORDS:+--remove-bpe} --results-path "$1"
    done
}

# score RUN SEED OTHER_RUN...; SCORING is a scorer and its own flags
score() {
    local folder=$1 seed=$2 against=()
    shift 2
    if [ $# -gt 0 ]; then against=(--against "$@"); fi
    run python -m tree_fairseq.scoring "${SCORING[@]}" --run "$folder" --sets "${SETS[@]}" --primary "$PRIMARY" \
        --checkpoint "$folder/checkpoints/$CHECKPOINT" "${against[@]}" \
        --describe "recipe=$RECIPE" "arch=$RUN_ARCH" "${DESCRIPTION[@]}" "seed=$seed" ${VARIANT:+"variant=$VARIANT"} \
        ${SUBSET:+"subset=$SUBSET"} ${TOY:+toy=1} --result "$OUT/result.json" --main-run "$MAIN_RUN"
}

# --- one system, from text to scores -----------------------------------------------------------------------------------

# named ARCH LAYERS HEIGHT: what a model goes by: architecture, and what is not as the recipe has it
named() {
    printf %s "$1"
    [ "$2" = "$LAYERS" ] || printf -- '-%s-layers' "$2"
    case $1 in treeformer*) [ "$3" = "$FULL_HEIGHT" ] || printf -- '-height-%s' "$3" ;; esac
}

# others SEED: OTHERS, the scored runs to set RUN beside: all others with the same seed and extra flags; none in a sweep
others() {
    OTHERS=()
    [ -z "$ABLATING" ] || return 0
    local file extra=${RUN##*/}
    extra=${extra#"${extra%%+*}"}
    for file in "$WORK"/runs/*"$RUN_VARIANT-seed$1$extra"/score.json; do
        [ -f "$file" ] && [ "${file%/score.json}" != "$RUN" ] && OTHERS+=("${file%/score.json}")
    done
    return 0
}

# system ARCH LAYERS HEIGHT SEED: one model through all stages asked for
system() {
    local seed=$4 train_key
    RUN_ARCH=$1
    model_flags "$1" "$2" "$3"
    run_name "$(named "$1" "$2" "$3")" "$RUN_VARIANT-seed$seed" "${EXTRA[@]}"
    same_data "$RUN" "$DATA_BIN"
    train_key=$(key "=$BATCH_UNIT" "=$BATCH_SIZE" "${MODEL[@]/#/=}" "${TRAINING[@]/#/=}" "${SELECTION[@]/#/=}" "${LIMITS[@]/#/=}" \
        "${EXTRA[@]/#/=}" "$RUN/data-key")
    stage "train-${RUN##*/}" "$train_key" train "$RUN" --seed "$seed" "${EXTRA[@]}"
    reached generate || return 0
    stage "generate-${RUN##*/}" "$(key "=$train_key" "=$CHECKPOINT" "${GENERATION[@]/#/=}" "${SETS[@]/#/=}" "$DATA_BIN")" \
        generate "$RUN"
    reached score || return 0
    others "$seed"
    score "$RUN" "$seed" "${OTHERS[@]}"
}

# systems ARCH LAYERS HEIGHT: the same model with every seed; the last SCORED runs
systems() { each_seed 3 "$@"; }

# sweep: encoders of several depths with and without a chart, charts of several heights, and how long encoders take for
# sentences of several lengths (section 6.5, appendix B and section 6.8 of the paper)
sweep() {
    local layers height rows=()
    for layers in "${SWEEP_LAYERS[@]}"; do
        systems "$BASELINE" "$layers" "$FULL_HEIGHT"
        rows+=("${SCORED[@]}")
        systems "$DEFAULT_ARCH" "$layers" "$FULL_HEIGHT"
        rows+=("${SCORED[@]}")
    done
    for height in "${SWEEP_HEIGHTS[@]}"; do
        systems "$DEFAULT_ARCH" "$LAYERS" "$height"
        rows+=("${SCORED[@]}")
    done
    systems "$BASELINE" "$LAYERS" "$FULL_HEIGHT"
    rows+=("${SCORED[@]}")
    run python "$LIBRARY/sweep.py" --runs "${rows[@]}" --checkpoint "$CHECKPOINT" --layers "$LAYERS" --height "$FULL_HEIGHT" \
        --lengths "${SWEEP_LENGTHS[@]}" --metric "$PRIMARY" --output "$OUT"
}

# recipe ARGUMENTS...: everything
recipe() {
    parse_options "$@"
    if declare -F settings > /dev/null; then settings; fi
    places
    scoring
    get_data
    stage prepare "$(key "=$DATASET" "=$SOURCE" "=$TARGET" "${CORPUS_FLAGS[@]/#/=}" "=$SUBSET" "=$TOY" "=$SUBWORDS" \
        "${SUBWORD_SIDES[@]/#/=}" "$DATA")" prepare
    reached preprocess || return 0
    DATA_BIN=$WORK/data-bin
    stage preprocess "$(key "=$JOINED" "$PIECES"/*)" preprocess
    reached train || return 0
    run_name "$(named "$ARCH" "$ENCODER_LAYERS" "$HEIGHT")" "$RUN_VARIANT-seed${SEEDS%% *}" "${EXTRA[@]}"
    MAIN_RUN=$RUN
    main_systems "$ARCH" "$ENCODER_LAYERS" "$HEIGHT"
}
