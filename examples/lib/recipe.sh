# What all translation recipes share: their options and stages. A run.sh sources this file, sets its data, model,
# optimisation and scoring, and calls `recipe "$@"`.

. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. "$LIBRARY/architectures.sh"

option_usage() {
    cat << USAGE
  --arch A            architecture, $DEFAULT_ARCH where not given; the baselines are stock architectures on the same folder
  --stage S           $STAGE_USAGE
  --subset N          train on N pairs
  --parser P          stanza, right-branching, balanced or random
  --parser-dir DIR    folder of the parser's model, where it is not to be downloaded
  --trees DIR         ready-made trees {train,valid,test}.$SOURCE, one line of brackets for each line of OUT/words
  --workers N         processes for tokenising and parsing (all cores)
USAGE
}

parse_options() {
    ARCH=$DEFAULT_ARCH STAGE=score SUBSET='' PARSER='' PARSER_DIR='' TREES=''
    WORKERS=$(getconf _NPROCESSORS_ONLN)
    read_options "data out arch stage subset parser parser-dir trees workers" "$@"
}

# places: absolute paths, and the parser that goes without a suffix in names
places() {
    data_and_out
    WORK=$OUT${SUBSET:+/subset-$SUBSET}
    WORDS=$WORK/words PIECES=$WORK/bpe
    [ -z "$PARSER_DIR" ] || PARSER_DIR=$(cd "$PARSER_DIR" && pwd) || die "--parser-dir: no such folder"
    [ -z "$TREES" ] || TREES=$(cd "$TREES" && pwd) || die "--trees: no such folder"
    MAIN_PARSER=${PARSER:-${DEFAULT_PARSER:-stanza}}
    if [ -n "$TREES" ]; then MAIN_PARSER=brackets; fi
    if [ -n "$TOY" ] && [ -z "$PARSER$TREES" ] && [ "$MAIN_PARSER" = stanza ]; then MAIN_PARSER=right-branching; fi
    SUFFIX=${PARSER:+-$PARSER}
    TEST_SUBSETS=("${SETS[@]%%=*}")
    SPLITS=(train valid "${TEST_SUBSETS[@]}")
    if [ -n "$TOY" ]; then BPE_SIZE=60 AVERAGE=2; fi
}

# --- stages ----------------------------------------------------------------------------------------------------------

prepare() {
    local limit=()
    if [ -n "$TOY" ]; then limit=(--limit 120); fi
    run rm -rf "$WORDS" "$PIECES" "$WORK/official"
    run python -m preprocess.prepare "$DATASET" --data "$DATA" --source "$SOURCE" --target "$TARGET" \
        --output "$WORDS" --work "$WORK/official" --workers "$WORKERS" ${SUBSET:+--subset "$SUBSET"} "${limit[@]}"
    run rm -rf "$WORK/official"
    split_words "$BPE_SIZE" "$SOURCE" "$TARGET"
}

# bracketed: a folder whose source side is trees over words; their words are split by fairseq-preprocess
bracketed() {
    local split
    run rm -rf "$WORK/bracketed"
    run mkdir -p "$WORK/bracketed"
    for split in "${SPLITS[@]}"; do
        if [ -z "$TREES" ] && [ -n "$TOY" ]; then
            run python -m tree_fairseq.commands.parse --tree-parser right-branching --tree-lang "$SOURCE" \
                --tree-subwords none --no-progress-bar "$WORDS/$split.$SOURCE" "$WORK/bracketed/$split.$SOURCE"
        else
            [ -n "$TREES" ] || die "${TREES_NEEDED:=--parser brackets needs --trees DIR}"
            [ -n "$DRY_RUN" ] || [ -f "$TREES/$split.$SOURCE" ] || die "$TREES/$split.$SOURCE is missing. ${TREES_NEEDED:-}"
            run ln -s "$TREES/$split.$SOURCE" "$WORK/bracketed/$split.$SOURCE"
        fi
        run ln -s "$PIECES/$split.$TARGET" "$WORK/bracketed/$split.$TARGET"
    done
}

# preprocess PARSER FOLDER
preprocess() {
    local parser=$1 folder=$2 input=$PIECES flags=(--tree-parser "$1" --tree-lang "$SOURCE") tests=() subset
    if [ "$parser" = brackets ]; then
        bracketed
        input=$WORK/bracketed
        flags+=(--tree-subword-model "$PIECES/codes")
    elif [ -n "${SENTENCES:-}" ]; then
        flags+=(--tree-ssplit "$SENTENCES")
    fi
    if [ "$parser" = stanza ] && [ -n "$PARSER_DIR" ]; then flags+=(--parser-dir "$PARSER_DIR"); fi
    for subset in "${TEST_SUBSETS[@]}"; do tests+=("$input/$subset"); done
    run rm -rf "$folder"
    run fairseq-preprocess --user-dir "$ROOT/tree_fairseq" --task tree_translation -s "$SOURCE" -t "$TARGET" \
        --trainpref "$input/train" --validpref "$input/valid" --testpref "$(IFS=,; printf '%s' "${tests[*]}")" \
        --destdir "$folder" --joined-dictionary --workers "$WORKERS" --parse-cache "$OUT/parse-cache" "${flags[@]}"
}

# train RUN DATA ARCH FLAGS...: train (or go on from the last checkpoint) and average
train() {
    local folder=$1 data=$2 arch=$3 limits=("${LIMITS[@]}")
    shift 3
    model_flags "$arch"
    batch_flags "$BATCH_TOKENS" "$DEVICE_TOKENS"
    if [ -n "$TOY" ]; then limits+=("${TOY_LIMITS[@]}"); fi
    run fairseq-train "$data" --user-dir "$ROOT/tree_fairseq" --task tree_translation -s "$SOURCE" -t "$TARGET" \
        --arch "$arch" "${MODEL[@]}" --criterion label_smoothed_cross_entropy --label-smoothing 0.1 \
        "${OPTIMIZER[@]}" "${BATCH[@]}" "${limits[@]}" --seed 1 --save-dir "$folder/checkpoints" \
        --keep-last-epochs "$AVERAGE" --no-progress-bar --log-interval 100 --log-file "$folder/train.log" "$@"
    run python -m tree_fairseq.commands.average --inputs "$folder/checkpoints" --last-epochs "$AVERAGE" \
        --output "$folder/checkpoints/average.pt"
}

# generate RUN DATA; fairseq drops a last batch whose size is no multiple of 8 unless it is told that any size will do
generate() {
    local subset
    for subset in "${TEST_SUBSETS[@]}"; do
        run fairseq-generate "$2" --user-dir "$ROOT/tree_fairseq" --task tree_translation -s "$SOURCE" -t "$TARGET" \
            --path "$1/checkpoints/average.pt" --gen-subset "$subset" --beam "$BEAM" --lenpen "$LENPEN" \
            --max-tokens "$GENERATE_TOKENS" --required-batch-size-multiple 1 --remove-bpe --results-path "$1"
    done
}

# score RUN DATA ARCH OTHER_RUN...
score() {
    local folder=$1 data=$2 arch=$3 attention=() against=()
    shift 3
    case $folder in
        */tree_*no-node-cross-attention*) ;;
        */tree_*) attention=(--attention "$data") ;;
    esac
    if [ $# -gt 0 ]; then against=(--against "$@"); fi
    run python -m tree_fairseq.scoring.translation --run "$folder" --words "$WORDS" --source-lang "$SOURCE" \
        --target-lang "$TARGET" --sets "${SETS[@]}" "${SCORE_FLAGS[@]}" --length-bounds "${LENGTH_BOUNDS[@]}" \
        --primary "$PRIMARY" --checkpoint "$folder/checkpoints/average.pt" "${attention[@]}" "${against[@]}" \
        --describe "recipe=$RECIPE" "arch=$arch" "parser=$(cat "$folder/parser" 2> /dev/null || true)" \
        ${SUBSET:+"subset=$SUBSET"} ${TOY:+toy=1} --result "$OUT/result.json" --main-run "$MAIN_RUN"
}

# --- one system, from trees to scores ----------------------------------------------------------------------------------

# data_folder PARSER SUFFIX: DATA_BIN, preprocessed with that parser
data_folder() {
    DATA_BIN=$WORK/data-bin$2
    local inputs=("$PIECES"/*)
    if [ "$1" = brackets ] && [ -n "$TREES" ]; then inputs+=("$TREES"); fi
    stage "preprocess$2" "$(key "=$1" "=$PARSER_DIR" "=${SENTENCES:-}" "${inputs[@]}")" preprocess "$1" "$DATA_BIN"
}

# system PARSER SUFFIX VARIANT FLAGS -- OTHER_RUN...: one model through all stages asked for
system() {
    local parser=$1 suffix=$2 variant=$3 flags=()
    shift 3
    while [ "$1" != -- ]; do flags+=("$1"); shift; done
    shift
    data_folder "$parser" "$suffix"
    reached train || return 0
    run_name "$ARCH" "$suffix$variant" "${EXTRA[@]}"
    same_data "$RUN" "$DATA_BIN" "$parser"
    local name=${RUN##*/} train_key
    model_flags "$ARCH"
    train_key=$(key "=$BATCH_TOKENS" "=$AVERAGE" "${MODEL[@]/#/=}" "${OPTIMIZER[@]/#/=}" "${LIMITS[@]/#/=}" \
        "${flags[@]/#/=}" "${EXTRA[@]/#/=}" "$RUN/data-key")
    stage "train-$name" "$train_key" train "$RUN" "$DATA_BIN" "$ARCH" "${flags[@]}" "${EXTRA[@]}"
    reached generate || return 0
    stage "generate-$name" "$(key "=$train_key" "=$BEAM" "=$LENPEN" "${SETS[@]/#/=}")" generate "$RUN" "$DATA_BIN"
    reached score || return 0
    score "$RUN" "$DATA_BIN" "$ARCH" "$@"
}

# whole_models RUN: OTHERS, the scored runs of other architectures with the same extra flags, to set this one beside
whole_models() {
    OTHERS=()
    local file name extra=${1#"${1%%+*}"}
    for file in "$WORK"/runs/*/score.json; do
        [ -f "$file" ] || continue
        name=$(basename "$(dirname "$file")")
        if [ "${name%%+*}" = "${name%%[+-]*}" ] && [ "${name#"${name%%+*}"}" = "$extra" ] && [ "$name" != "$1" ]; then
            OTHERS+=("${file%/score.json}")
        fi
    done
}

# ablate: Table 3 of the paper, and trees that say nothing about the sentence
ablate() {
    case $ARCH in tree_*) ;; *) die "--stage ablate needs a tree_* architecture" ;; esac
    local full=$MAIN_RUN
    system "$MAIN_PARSER" "$SUFFIX" -no-hierarchical-embeddings --no-hierarchical-embeddings -- "$full"
    system "$MAIN_PARSER" "$SUFFIX" -no-subtree-mask --no-subtree-mask -- "$full"
    system "$MAIN_PARSER" "$SUFFIX" -no-hierarchical-embeddings-no-subtree-mask \
        --no-hierarchical-embeddings --no-subtree-mask -- "$full"
    system "$MAIN_PARSER" "$SUFFIX" -no-node-cross-attention --no-node-cross-attention -- "$full"
    local control
    for control in right-branching random; do
        [ "$SUFFIX" = "-$control" ] || system "$control" "-$control" '' -- "$full"
    done
}

# recipe ARGUMENTS...: everything
recipe() {
    parse_options "$@"
    places
    if declare -F settings > /dev/null; then settings; fi
    get_data
    stage prepare "$(key "=$DATASET" "=$SOURCE" "=$TARGET" "=$SUBSET" "=$TOY" "=$BPE_SIZE" "$DATA")" prepare
    reached preprocess || return 0
    run_name "$ARCH" "$SUFFIX" "${EXTRA[@]}"
    MAIN_RUN=$RUN
    whole_models "${RUN##*/}"
    system "$MAIN_PARSER" "$SUFFIX" '' -- "${OTHERS[@]}"
    if reached ablate; then ablate; fi
    say "done: $STAGE"
}
