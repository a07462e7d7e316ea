# What the recipes of classification share: their options and stages. A run.sh sources this file, sets its data, model,
# optimisation and scoring, and calls `recipe "$@"`.

. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. "$LIBRARY/classification_models.sh"

# What examples are read, judged and selected by
TASK=tree_classification SCORING=classification SELECT=accuracy
# Where a recipe says nothing else: texts with classes, a line is a sentence, no rare words, one test set
FORMAT=tsv SENTENCES='' THRESHOLD=0 SETS=(test=) OPTIONS='' OWN_USAGE='' PRIMARY=''
DEFAULT_ARCH=tree_transformer_classifier_tiny
# What the main system is called beside its architecture, and the flags that this stands for
MAIN_VARIANT='' MAIN_FLAGS=()
CORPUS_FLAGS=() CORPUS_SOURCES=() DESCRIPTION=() GROUP_METRICS=() LENGTH_BOUNDS=(10 20 30 40 50)
# What --stage ablate adds to Table 3: name and flags; and whether trees that know nothing of the sentence are tried
ABLATIONS=() CONTROLS=()
TOY_CORPUS_FLAGS=(--limit 120)

option_usage() {
    cat << USAGE
  --arch A            architecture, $DEFAULT_ARCH where not given; the others read the same folder
  --stage S           $STAGE_USAGE
  --subset N          train on N examples
  --average N         classify with the average of the last N epochs; 0, where not given: with the best epoch on the validation set
$SEED_USAGE
  --parser P          stanza, right-branching, balanced or random
  --parser-dir DIR    folder of the parser's model, where it is not to be downloaded
  --workers N         processes for preparing and parsing (all cores)
USAGE
}

parse_options() {
    ARCH=$DEFAULT_ARCH STAGE=score SUBSET='' AVERAGE=0 SEED='' SEEDS='' PARSER='' PARSER_DIR=''
    WORKERS=$(getconf _NPROCESSORS_ONLN)
    read_options "data out arch stage subset average seed seeds parser parser-dir workers $OPTIONS" "$@"
    settle_seeds
    [[ $AVERAGE =~ ^[0-9]+$ ]] || die "--average needs a number"
    [ -z "$PARSER" ] || one_of --parser "$PARSER" stanza right-branching balanced random
    model_flags "$ARCH"
}

# places: absolute paths, and the parser that goes without a suffix in names; trees need none
places() {
    data_and_out
    WORK=$OUT${VARIANT:+/$VARIANT}${SUBSET:+/subset-$SUBSET}
    CORPUS=$WORK/text
    [ -z "$PARSER_DIR" ] || PARSER_DIR=$(cd "$PARSER_DIR" && pwd) || die "--parser-dir: no such folder"
    MAIN_PARSER=${PARSER:-stanza}
    if [ -n "$TOY" ] && [ -z "$PARSER" ]; then MAIN_PARSER=right-branching; fi
    if [ "$FORMAT" = trees ] && [ -z "$PARSER$PARSER_DIR" ] && [ "${NODE_SYMBOLS:-}" != parser ]; then MAIN_PARSER=none; fi
    SUFFIX=${PARSER:+-$PARSER}${NODE_SYMBOLS:+-symbols-$NODE_SYMBOLS}
    TEST_SUBSETS=("${SETS[@]%%=*}")
    CHECKPOINT=checkpoint_best.pt AVERAGED=''
    if [ "$AVERAGE" -gt 0 ]; then CHECKPOINT=average.pt AVERAGED=-average$AVERAGE; fi
    if [ -n "$TOY" ]; then THRESHOLD=0 CORPUS_FLAGS+=("${TOY_CORPUS_FLAGS[@]}"); fi
}

# --- stages ----------------------------------------------------------------------------------------------------------

prepare() {
    run rm -rf "$CORPUS"
    make_corpus
}

# make_corpus: CORPUS/{train,valid,test}.FORMAT; agreement has its own
make_corpus() {
    local flags=(${SUBSET:+--subset "$SUBSET"})
    run python -m preprocess.classification "$DATASET" --data "$DATA" --output "$CORPUS" "${CORPUS_FLAGS[@]}" "${flags[@]}"
}

# preprocess PARSER FOLDER
preprocess() {
    local parser=$1 folder=$2 flags=(--input-format "$FORMAT") tests=() subset
    if [ -n "${NODE_SYMBOLS:-}" ]; then flags+=(--node-symbols "$NODE_SYMBOLS"); fi
    if [ "$parser" != none ]; then flags+=(--tree-parser "$parser" --tree-lang en --parse-cache "$OUT/parse-cache"); fi
    if [ -n "$SENTENCES" ]; then flags+=(--tree-ssplit "$SENTENCES"); fi
    if [ "$parser" = stanza ] && [ -n "$PARSER_DIR" ]; then flags+=(--parser-dir "$PARSER_DIR"); fi
    for subset in "${TEST_SUBSETS[@]}"; do tests+=("$CORPUS/$subset"); done
    run rm -rf "$folder"
    run fairseq-preprocess --user-dir "$ROOT/tree_fairseq" --task "$TASK" "${flags[@]}" \
        --trainpref "$CORPUS/train" --validpref "$CORPUS/valid" --testpref "$(IFS=,; printf '%s' "${tests[*]}")" \
        --destdir "$folder" --thresholdsrc "$THRESHOLD" --workers "$WORKERS"
}

# train RUN DATA FLAGS...: train (or go on from the last checkpoint), keep the best epoch and, where wanted, average the last
train() {
    local folder=$1 data=$2 limits=("${LIMITS[@]}") keep=(--no-epoch-checkpoints)
    shift 2
    if [ -n "$BATCH_SIZE" ]; then
        batch_flags "$BATCH_SIZE" "$BATCH_SIZE" --batch-size
        BATCH+=(--max-tokens "$DEVICE_TOKENS")
    else
        batch_flags "$BATCH_TOKENS" "$DEVICE_TOKENS"
    fi
    if [ -n "$TOY" ]; then limits+=("${TOY_LIMITS[@]}"); fi
    if [ "$AVERAGE" -gt 0 ]; then keep=(--keep-last-epochs "$AVERAGE"); fi
    run fairseq-train "$data" --user-dir "$ROOT/tree_fairseq" --task "$TASK" --max-source-positions "$POSITIONS" \
        --arch "$ARCH" "${MODEL[@]}" "${TRAINING[@]}" "${BATCH[@]}" --required-batch-size-multiple 1 "${limits[@]}" \
        --best-checkpoint-metric "$SELECT" --maximize-best-checkpoint-metric \
        --save-dir "$folder/checkpoints" "${keep[@]}" --no-progress-bar --log-interval 100 --log-file "$folder/train.log" "$@"
    if [ "$AVERAGE" -gt 0 ]; then
        run python -m tree_fairseq.commands.average --inputs "$folder/checkpoints" --last-epochs "$AVERAGE" \
            --output "$folder/checkpoints/average.pt"
    fi
}

# generate RUN DATA
generate() {
    local subset
    for subset in "${TEST_SUBSETS[@]}"; do
        run fairseq-generate "$2" --user-dir "$ROOT/tree_fairseq" --task "$TASK" --max-source-positions "$POSITIONS" \
            --scoring "$SCORING" --path "$1/checkpoints/$CHECKPOINT" --gen-subset "$subset" \
            --max-tokens "$DEVICE_TOKENS" --required-batch-size-multiple 1 --results-path "$1"
    done
}

# score RUN DATA SEED OTHER_RUN...
score() {
    local folder=$1 data=$2 seed=$3 against=() flags=()
    shift 3
    if [ $# -gt 0 ]; then against=(--against "$@"); fi
    if [ "$SCORING" = classification ]; then
        flags=(--length-bounds "${LENGTH_BOUNDS[@]}" ${GROUP_METRICS[0]:+--group-metrics "${GROUP_METRICS[@]}"})
    fi
    run python -m tree_fairseq.scoring "$SCORING" --run "$folder" --references "$CORPUS" --sets "${SETS[@]}" "${flags[@]}" \
        ${PRIMARY:+--primary "$PRIMARY"} \
        --checkpoint "$folder/checkpoints/$CHECKPOINT" "${against[@]}" \
        --describe "recipe=$RECIPE" "arch=$ARCH" "data=$(basename "$data")" "seed=$seed" ${VARIANT:+"variant=$VARIANT"} "${DESCRIPTION[@]}" \
        ${SUBSET:+"subset=$SUBSET"} ${TOY:+toy=1} --result "$OUT/result.json" --main-run "$MAIN_RUN"
}

# --- one system, from trees to scores ----------------------------------------------------------------------------------

# system PARSER SUFFIX VARIANT SEED FLAGS...: one model through all stages asked for
system() {
    local parser=$1 suffix=$2 variant=$3 seed=$4 folder train_key
    folder=$WORK/data-bin$suffix
    stage "preprocess$suffix" "$(key "=$parser" "=$PARSER_DIR" "=$FORMAT" "=${NODE_SYMBOLS:-}" "=$SENTENCES" "=$THRESHOLD" "$CORPUS"/*)" \
        preprocess "$parser" "$folder"
    shift 4
    reached train || return 0
    run_name "$ARCH" "$suffix$variant$AVERAGED-seed$seed" "${EXTRA[@]}"
    same_data "$RUN" "$folder"
    train_key=$(key "=$BATCH_TOKENS" "=$BATCH_SIZE" "=$POSITIONS" "=$AVERAGE" "${MODEL[@]/#/=}" "${TRAINING[@]/#/=}" "${LIMITS[@]/#/=}" \
        "${@/#/=}" "${EXTRA[@]/#/=}" "$RUN/data-key")
    stage "train-${RUN##*/}" "$train_key" train "$RUN" "$folder" --seed "$seed" "$@" "${EXTRA[@]}"
    reached generate || return 0
    stage "generate-${RUN##*/}" "$(key "=$train_key" "${SETS[@]/#/=}")" generate "$RUN" "$folder"
    reached score || return 0
    beside "$seed" "$WORK/runs/$ARCH$SUFFIX"
    score "$RUN" "$folder" "$seed" "${OTHERS[@]}"
}

# systems PARSER SUFFIX VARIANT FLAGS...: the same model with every seed; the last SCORED runs
systems() { each_seed 3 "$@"; }

# ablate: Table 3 of the paper, what the recipe adds to it, and trees that know nothing of the sentence
ablate() {
    case $ARCH in tree_transformer_classifier*) ;; *) die "--stage ablate needs a tree_transformer_classifier* architecture" ;; esac
    local row words control
    for row in "no-hierarchical-embeddings --no-hierarchical-embeddings" "no-subtree-mask --no-subtree-mask" \
        "no-hierarchical-embeddings-no-subtree-mask --no-hierarchical-embeddings --no-subtree-mask" "${ABLATIONS[@]}"; do
        read -ra words <<< "$row"
        systems "$MAIN_PARSER" "$SUFFIX" "-${words[0]}" "${words[@]:1}"
    done
    for control in "${CONTROLS[@]}"; do
        [ "$MAIN_PARSER" = "$control" ] || systems "$control" "-$control" ''
    done
}

# recipe ARGUMENTS...: everything
recipe() {
    VARIANT=''
    parse_options "$@"
    if declare -F settings > /dev/null; then settings; fi
    places
    get_data
    stage prepare "$(key "=$DATASET" "${CORPUS_FLAGS[@]/#/=}" "=$SUBSET" "=$TOY" "$DATA" "${CORPUS_SOURCES[@]}")" prepare
    reached preprocess || return 0
    run_name "$ARCH" "$SUFFIX$MAIN_VARIANT$AVERAGED-seed${SEEDS%% *}" "${EXTRA[@]}"
    MAIN_RUN=$RUN
    main_systems "$MAIN_PARSER" "$SUFFIX" "$MAIN_VARIANT" "${MAIN_FLAGS[@]}"
}
