# What all recipes share: the environment, options, places, and the names of runs. recipe.sh (translation) and
# structural.sh (programs and logical forms) build on it.

LIBRARY=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(cd "$LIBRARY/../.." && pwd)
export PYTHONPATH="$ROOT${PYTHONPATH:+:$PYTHONPATH}"
if ! command -v fairseq-train > /dev/null && [ -d "$ROOT/.venv/bin" ]; then PATH="$ROOT/.venv/bin:$PATH"; fi

. "$LIBRARY/stages.sh"

STAGES='prepare preprocess train generate score ablate' # in their order; recipes that end with another one name their own

# What --help says of options that several kinds of recipe have
STAGE_USAGE="prepare | preprocess | train | generate | score | ablate: up to that stage, skipping what is done;
                      all but ablate where not given"
SEED_USAGE="  --seed S            of training, 1 where not given
  --seeds S,S,...     one model for each; result.json has the means"

# usage: what --help prints; option_usage, which every kind of recipe has, prints the options of its own
usage() {
    cat << USAGE
usage: $0 --data DIR --out DIR${NEEDED_USAGE:-} [options] [-- flags of fairseq-train]

  --data DIR          the data set, see the README beside this script (${GENERATED:-with --toy: made up where it is not given})
  --out DIR           everything that is written, result.json among it
${OWN_USAGE:+$OWN_USAGE
}$(option_usage)
  --toy               tiny sizes, to see that everything runs
  --dry-run           print the commands, run none
USAGE
}

# read_options NAMES ARGUMENTS...: --name VALUE into NAME for each of the names, --toy, --dry-run, and EXTRA after --
read_options() {
    local names=" $1 " name
    shift
    DATA='' OUT='' TOY='' DRY_RUN='' EXTRA=()
    while [ $# -gt 0 ]; do
        name=${1#--}
        case $1 in
            --toy) TOY=1; shift ;;
            --dry-run) DRY_RUN=1; shift ;;
            --help | -h) usage; exit 0 ;;
            --) shift; EXTRA=("$@"); break ;;
            *)
                case "$1 $names" in "--$name "*" $name "*) ;; *) usage >&2; die "unknown option $1" ;; esac
                [ $# -gt 1 ] || { usage >&2; die "$1 needs a value"; }
                name=${name//-/_}
                printf -v "${name^^}" '%s' "$2"
                shift 2
                ;;
        esac
    done
    [ -n "$OUT" ] || { usage >&2; die "--out is needed"; }
    [ -n "$DATA$TOY${GENERATED:-}" ] || { usage >&2; die "--data is needed"; }
    case " $STAGES ${OWN_STAGES:-} " in
        *" $STAGE "*) ;;
        *) usage >&2; die "unknown stage $STAGE" ;;
    esac
    [[ $SUBSET =~ ^([1-9][0-9]*)?$ ]] || die "--subset needs a number of pairs"
    [[ $WORKERS =~ ^[1-9][0-9]*$ ]] || die "--workers needs a number"
}

# data_and_out: RECIPE, and absolute paths of DATA and OUT; a recipe with GENERATED, which makes its data, may have no DATA
data_and_out() {
    RECIPE=$(basename "$(cd "$(dirname "$0")" && pwd)")
    mkdir -p "$OUT"
    OUT=$(cd "$OUT" && pwd)
    if [ -z "$DATA${GENERATED:-}" ]; then DATA=$OUT/toy-data; fi
    [ -n "$DATA" ] || return 0
    mkdir -p "$DATA" 2> /dev/null || die "--data $DATA: no such folder"
    DATA=$(cd "$DATA" && pwd)
    case $OUT/ in "$DATA"/*) die "--out lies in --data; give it a folder of its own" ;; esac
}

# get_data: fetch or make up what an empty --data is to hold
get_data() {
    local unfinished=$DATA/.unfinished # stays where this is interrupted
    [ -f "$unfinished" ] || [ -z "$(ls -A "$DATA")" ] || return 0
    [ -n "$TOY${FETCH:-}" ] || die "$DATA is empty; the README says where its files come from"
    run touch "$unfinished"
    if [ -n "$TOY" ]; then
        run python -m preprocess.toy_corpus "$DATASET" --output "$DATA"
    else
        run python -m preprocess.fetch "$FETCH" --output "$DATA"
    fi
    run rm "$unfinished"
}

# split_words SIZE SIDES...: PIECES, the splits of WORDS in subword pieces; codes come from both sides, and sides that are
# not named keep their words
split_words() {
    local size=$1 split language
    shift
    run mkdir -p "$PIECES"
    run subword-nmt learn-joint-bpe-and-vocab --input "$WORDS/train.$SOURCE" "$WORDS/train.$TARGET" -s "$size" \
        -o "$PIECES/codes" --write-vocabulary "$PIECES/vocab.$SOURCE" "$PIECES/vocab.$TARGET"
    for split in "${SPLITS[@]}"; do
        for language in "$SOURCE" "$TARGET"; do
            case " $* " in
                *" $language "*) run subword-nmt apply-bpe -c "$PIECES/codes" --input "$WORDS/$split.$language" --output "$PIECES/$split.$language" ;;
                *) run cp "$WORDS/$split.$language" "$PIECES/$split.$language" ;;
            esac
        done
    done
}

# run_name ARCH VARIANT FLAGS...: RUN, a folder of its own for every set of training flags; how long to train is not one
run_name() {
    local name=$1$2 flags=()
    shift 2
    while [ $# -gt 0 ]; do
        case $1 in
            --max-epoch | --max-update | --stop-time-hours | --log-interval) shift 2 || shift ;;
            *) flags+=("=$1"); shift ;;
        esac
    done
    if [ ${#flags[@]} -gt 0 ]; then name+=+$(key "${flags[@]}" | cut -c1-8); fi
    RUN=$WORK/runs/$name
}

# same_data RUN DATA [PARSER]: a run goes on only with the data that it began with
same_data() {
    [ -z "$DRY_RUN" ] || return 0
    local now
    now=$(key "$2"/dict.* "$2"/train.*)
    mkdir -p "$1"
    if [ ! -f "$1/data-key" ]; then
        [ $# -lt 3 ] || printf '%s\n' "$3" > "$1/parser"
        printf '%s\n' "$now" > "$1/data-key"
    elif [ "$(cat "$1/data-key")" != "$now" ]; then
        die "$1 was trained on other data; give another --out, or delete that folder"
    fi
}

# reached STAGE: whether --stage asks for it
reached() {
    local order=" $STAGES "
    local asked=${order%% "$STAGE" *} this=${order%% "$1" *}
    [ ${#this} -le ${#asked} ]
}

# one_of OPTION VALUE CHOICES...: stop where the value is none of them
one_of() {
    local option=$1 value=$2 choice
    shift 2
    for choice in "$@"; do [ "$choice" != "$value" ] || return 0; done
    die "$option $value: give ${*:-none, there is nothing to choose here}"
}

# settle_seeds: SEEDS, separated by blanks, from --seed or --seeds
settle_seeds() {
    [ -z "$SEED" ] || [ -z "$SEEDS" ] || die "give --seed or --seeds, not both"
    SEEDS=${SEEDS:-${SEED:-1}}
    [[ $SEEDS =~ ^[0-9]+(,[0-9]+)*$ ]] || die "--seed and --seeds need numbers"
    SEEDS=${SEEDS//,/ }
}

# beside SEED FULL: OTHERS, the scored runs to set RUN beside: the full model for an ablation (FULL is its run less seed
# and extra flags), else other architectures; all with the same seed, extra flags and averaging
beside() {
    OTHERS=()
    local file name ending=${AVERAGED:-}-seed$1 extra=${RUN##*/}
    extra=${extra#"${extra%%+*}"}
    if [ "$RUN" != "$MAIN_RUN" ] && [ -n "$ABLATING" ]; then
        OTHERS=("$2$ending$extra")
        return
    fi
    for file in "$WORK"/runs/*"$ending$extra"/outcomes.json; do
        [ -f "$file" ] || continue
        name=$(basename "$(dirname "$file")")
        name=${name%"$ending$extra"}
        case ${name%-raw} in *-*) ;; *) [ "${file%/outcomes.json}" = "$RUN" ] || OTHERS+=("${file%/outcomes.json}") ;; esac
    done
}

# means RUNS...: into the result, where there are several
means() {
    if reached score && [ $# -gt 1 ]; then run python "$LIBRARY/mean_of_seeds.py" --result "$OUT/result.json" "$@"; fi
}

# each_seed COUNT ARGUMENTS...: system with every seed after the first COUNT arguments; SCORED, their runs
each_seed() {
    local count=$1 seed
    shift
    SCORED=()
    for seed in $SEEDS; do
        system "${@:1:count}" "$seed" "${@:count+1}"
        SCORED+=("${RUN:-}")
    done
}

# main_systems ARGUMENTS...: the systems that were asked for, and what is set beside them: ablations or, in recipes that end so, a sweep
main_systems() {
    local last=${STAGES##* }
    ABLATING=''
    systems "$@"
    local main=("${SCORED[@]}")
    means "${main[@]}"
    if reached "$last"; then
        ABLATING=1
        "$last"
        means "${main[@]}" # every run that is scored writes the result anew
    fi
    say "done: $STAGE"
}
