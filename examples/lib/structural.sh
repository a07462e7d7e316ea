# What the recipes of programs and logical forms share: their options and stages. A run.sh sources this file, sets its
# data, model, optimisation and scoring, and calls `recipe "$@"`.

. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. "$LIBRARY/structural_models.sh"

# Where a recipe says nothing else: one setting, one test set, every line of train for training alone, no rare words;
# RAW is the infix of the files that --text raw reads
SETTINGS=() SETS=(test=) VALID='' KEEP_VALID=no THRESHOLD_SOURCE=0 THRESHOLD_TARGET=0 JOINED='' RAW=''
# The average of the last checkpoints, beam 5
SAVE_INTERVAL=1 AVERAGE=10 BEAM=5 MAX_LENGTH=200 GENERATE_BATCH_SIZE=64
PRIMARY=accuracy SCORE_FLAGS=() CORPUS_FLAGS=()

option_usage() {
    cat << USAGE
  --setting S         ${SETTINGS[*]:-this data set has a single one}
  --arch A            architecture, $DEFAULT_ARCH where not given; the baselines are stock architectures on the same folder
  --stage S           $STAGE_USAGE
  --traversal T       dfs (where not given) or bfs
  --binarization B    lcrs (where not given) or none
  --text T            what stock architectures see of a tree: linearized, its symbols (where not given), or raw, its line
  --keep-valid YES    yes: train also on the lines that were held out for validation; no: do not ($KEEP_VALID where not given)
  --subset N          train on N pairs
$SEED_USAGE
  --workers N         processes for preprocessing (all cores)
USAGE
}

parse_options() {
    ARCH=$DEFAULT_ARCH STAGE=score SUBSET='' SETTING='' TRAVERSAL=dfs BINARIZATION=lcrs TEXT=linearized SEED='' SEEDS=''
    WORKERS=$(getconf _NPROCESSORS_ONLN)
    DEFAULT_KEEP_VALID=$KEEP_VALID
    read_options "data out arch stage subset setting traversal binarization text keep-valid seed seeds workers" "$@"
    if [ -n "$SETTING" ]; then one_of --setting "$SETTING" "${SETTINGS[@]}"; fi
    one_of --traversal "$TRAVERSAL" dfs bfs
    one_of --binarization "$BINARIZATION" lcrs none
    one_of --text "$TEXT" linearized raw
    one_of --keep-valid "$KEEP_VALID" yes no
    settle_seeds
    model_flags "$ARCH"
    [ "$TASK$TEXT" != structural_translationraw ] || die "--text raw is for stock architectures; $ARCH reads trees"
}

# places: absolute paths; settings, subsets and splits of training data have folders of their own
places() {
    data_and_out
    WORK=$OUT${SETTING:+/$SETTING}${SUBSET:+/subset-$SUBSET}
    if [ "$KEEP_VALID" != "$DEFAULT_KEEP_VALID" ]; then WORK+=/keep-valid-$KEEP_VALID; fi
    CORPUS=$WORK/text
    TEST_SUBSETS=("${SETS[@]%%=*}")
    if [ -n "$TOY" ]; then VALID=${VALID:+15} THRESHOLD_SOURCE=0 THRESHOLD_TARGET=0 BATCH_SIZE=32 SAVE_INTERVAL=1 AVERAGE=2; fi
}

# suffix TRAVERSAL BINARIZATION: how names of data folders and runs tell them apart
suffix() {
    if [ "$TEXT" = raw ]; then printf %s -raw; return; fi
    [ "$1" = dfs ] || printf %s "-$1"
    [ "$2" = lcrs ] || printf %s "-$2"
}

# --- stages ----------------------------------------------------------------------------------------------------------

prepare() {
    run rm -rf "$CORPUS"
    make_corpus
}

# make_corpus: CORPUS/{train,valid,test}.{SOURCE,TARGET}, aligned lines; recipes whose programs are generated have their own
make_corpus() {
    local flags=(${VALID:+--valid "$VALID"})
    if [ "$KEEP_VALID" = yes ]; then flags+=(--keep-valid); fi
    if [ -n "$SUBSET" ]; then flags+=(--subset "$SUBSET"); fi
    if [ -n "$TOY" ]; then flags+=(--limit 120); fi
    run python -m preprocess.semantic_parsing "$DATASET" --data "$DATA" --output "$CORPUS" \
        --source "$SOURCE" --target "$TARGET" "${CORPUS_FLAGS[@]}" "${flags[@]}"
}

# published_programs SOURCE TARGET: the same of the files of Chen et al. in DATA, whose sides are these languages
published_programs() {
    local source=$1 target=$2 flags=()
    if [ -n "$SUBSET" ]; then flags+=(--subset "$SUBSET"); fi
    if [ -n "$TOY" ]; then flags+=(--limit 120); fi
    run python -m preprocess.tree2tree --data "$DATA" --output "$CORPUS" \
        --source "$source" --target "$target" "${flags[@]}"
}

# preprocess TRAVERSAL BINARIZATION FOLDER
preprocess() {
    local traversal=$1 binarization=$2 folder=$3 flags=(--task translation) infix=$RAW tests=() subset
    if [ "$TEXT" != raw ]; then
        flags=(--task structural_translation --traversal "$traversal" --binarization "$binarization") infix=''
        if [ -n "$SOURCE_NOTATION" ]; then flags+=(--source-modality tree --source-notation "$SOURCE_NOTATION"); fi
        if [ -n "$TARGET_NOTATION" ]; then flags+=(--target-modality tree --target-notation "$TARGET_NOTATION"); fi
    fi
    for subset in "${TEST_SUBSETS[@]}"; do tests+=("$CORPUS/$subset$infix"); done
    run rm -rf "$folder"
    run fairseq-preprocess --user-dir "$ROOT/tree_fairseq" "${flags[@]}" -s "$SOURCE" -t "$TARGET" \
        --trainpref "$CORPUS/train$infix" --validpref "$CORPUS/valid$infix" --testpref "$(IFS=,; printf '%s' "${tests[*]}")" \
        --destdir "$folder" --thresholdsrc "$THRESHOLD_SOURCE" --thresholdtgt "$THRESHOLD_TARGET" ${JOINED:+--joined-dictionary} --workers "$WORKERS"
}

# train RUN DATA FLAGS...: train (or go on from the last checkpoint) and average
train() {
    local folder=$1 data=$2 limits=("${LIMITS[@]}")
    shift 2
    batch_flags "$BATCH_SIZE" "$DEVICE_BATCH_SIZE" --batch-size
    if [ -n "$TOY" ]; then limits+=("${TOY_LIMITS[@]}"); fi
    run fairseq-train "$data" --user-dir "$ROOT/tree_fairseq" --task "$TASK" -s "$SOURCE" -t "$TARGET" \
        --arch "$ARCH" "${MODEL[@]}" "${TRAINING[@]}" "${BATCH[@]}" --required-batch-size-multiple 1 "${limits[@]}" \
        --save-dir "$folder/checkpoints" --save-interval "$SAVE_INTERVAL" --validate-interval "$SAVE_INTERVAL" \
        --keep-last-epochs "$AVERAGE" --no-progress-bar --log-interval 100 --log-file "$folder/train.log" "$@"
    run python -m tree_fairseq.commands.average --inputs "$folder/checkpoints" --last-epochs "$AVERAGE" \
        --output "$folder/checkpoints/average.pt"
}

# generate RUN DATA
generate() {
    local subset
    for subset in "${TEST_SUBSETS[@]}"; do
        run fairseq-generate "$2" --user-dir "$ROOT/tree_fairseq" --task "$TASK" -s "$SOURCE" -t "$TARGET" \
            --path "$1/checkpoints/average.pt" --gen-subset "$subset" --beam "$BEAM" --max-len-b "$MAX_LENGTH" \
            --batch-size "$GENERATE_BATCH_SIZE" --required-batch-size-multiple 1 --results-path "$1"
    done
}

# score RUN DATA SEED OTHER_RUN...
score() {
    local folder=$1 data=$2 seed=$3 references=$CORPUS reading=() against=()
    shift 3
    if [ "$TEXT" = raw ] && [ -n "$RAW" ]; then
        references=$CORPUS/test$RAW.$TARGET reading=(--notation lines) # text of a language of its own
    elif [ "$TEXT" = raw ]; then
        reading=(--notation "$TARGET_NOTATION")
    else
        reading=(--data "$data")
        if [ "$TASK" = translation ]; then reading+=(--symbols); fi
    fi
    if [ $# -gt 0 ]; then against=(--against "$@"); fi
    run python -m tree_fairseq.scoring structural --run "$folder" --references "$references" --target-lang "$TARGET" \
        "${reading[@]}" --sets "${SETS[@]}" "${SCORE_FLAGS[@]}" --primary "$PRIMARY" \
        --checkpoint "$folder/checkpoints/average.pt" "${against[@]}" \
        --describe "recipe=$RECIPE" "arch=$ARCH" "data=$(basename "$data")" "seed=$seed" ${SETTING:+"setting=$SETTING"} \
        ${SUBSET:+"subset=$SUBSET"} ${TOY:+toy=1} --result "$OUT/result.json" --main-run "$MAIN_RUN"
}

# --- one system, from trees to scores ----------------------------------------------------------------------------------

# system TRAVERSAL BINARIZATION VARIANT SEED FLAGS...: one model through all stages asked for
system() {
    local names variant=$3 seed=$4 folder train_key
    names=$(suffix "$1" "$2")
    folder=$WORK/data-bin$names
    stage "preprocess$names" "$(key "=$THRESHOLD_SOURCE" "=$THRESHOLD_TARGET" "=$JOINED" "$CORPUS"/*)" preprocess "$1" "$2" "$folder"
    shift 4
    reached train || return 0
    run_name "$ARCH" "$names$variant-seed$seed" "${EXTRA[@]}"
    same_data "$RUN" "$folder"
    train_key=$(key "=$BATCH_SIZE" "=$AVERAGE" "=$SAVE_INTERVAL" "${MODEL[@]/#/=}" "${TRAINING[@]/#/=}" "${LIMITS[@]/#/=}" \
        "${@/#/=}" "${EXTRA[@]/#/=}" "$RUN/data-key")
    stage "train-${RUN##*/}" "$train_key" train "$RUN" "$folder" --seed "$seed" "$@" "${EXTRA[@]}"
    reached generate || return 0
    stage "generate-${RUN##*/}" "$(key "=$train_key" "=$BEAM" "=$MAX_LENGTH" "${SETS[@]/#/=}")" generate "$RUN" "$folder"
    reached score || return 0
    beside "$seed" "$WORK/runs/$ARCH$(suffix "$TRAVERSAL" "$BINARIZATION")"
    score "$RUN" "$folder" "$seed" "${OTHERS[@]}"
}

# systems TRAVERSAL BINARIZATION VARIANT FLAGS...: the same model with every seed; the last SCORED runs
systems() { each_seed 3 "$@"; }

# without FLAG WORDS...: WITHOUT, the words less the flag
without() {
    local flag=$1 word
    shift
    WITHOUT=()
    for word in "$@"; do [ "$word" = "$flag" ] || WITHOUT+=("$word"); done
}

# ablate: what the positions of the papers are compared with, and what they name as open
ablate() {
    case $ARCH in tree_positional_*) ;; *) die "--stage ablate needs a tree_positional_* architecture" ;; esac
    local kept=("${MODEL[@]}") other
    case " ${MODEL[*]} ${EXTRA[*]} " in
        *" --query-position "*)
            without --query-position "${MODEL[@]}"
            MODEL=("${WITHOUT[@]}")
            systems "$TRAVERSAL" "$BINARIZATION" -no-query-position
            MODEL=("${kept[@]}")
            ;;
        *) systems "$TRAVERSAL" "$BINARIZATION" -query-position --query-position ;;
    esac
    other=" ${MODEL[*]} ${EXTRA[*]} "
    case ${other##* --tree-decay-init } in uniform*) other=paper ;; *) other=uniform ;; esac
    systems "$TRAVERSAL" "$BINARIZATION" "-decay-init-$other" --tree-decay-init "$other"
    systems "$TRAVERSAL" "$BINARIZATION" -parameter-free --parameter-free-tree-positions
    if [ "$TRAVERSAL" = dfs ]; then other=bfs; else other=dfs; fi
    systems "$other" "$BINARIZATION" ''
    if [ "$BINARIZATION" = lcrs ]; then other=none; else other=lcrs; fi
    systems "$TRAVERSAL" "$other" ''
}

# recipe ARGUMENTS...: everything
recipe() {
    parse_options "$@"
    if declare -F settings > /dev/null; then settings; fi
    SETTING=${SETTING:-${SETTINGS[0]:-}}
    places
    [ -z "$DATA" ] || get_data
    stage prepare "$(key "=$DATASET" "=$SETTING" "=$SOURCE" "=$TARGET" "${CORPUS_FLAGS[@]/#/=}" "=$SUBSET" "=$VALID" \
        "=$KEEP_VALID" "=$TOY" "${DATA:-=}")" prepare
    reached preprocess || return 0
    run_name "$ARCH" "$(suffix "$TRAVERSAL" "$BINARIZATION")-seed${SEEDS%% *}" "${EXTRA[@]}"
    MAIN_RUN=$RUN
    main_systems "$TRAVERSAL" "$BINARIZATION" ''
}
