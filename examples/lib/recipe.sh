# shellcheck shell=bash
# What all recipes share: options, steps that are done once, and tiny sizes for --toy. A recipe begins with
#   : "${ARCH:=transformer}" "${SEED:=1}"      its variables; --arch and --seed, or the environment, give other values
#   . "$(dirname "$0")/../lib/recipe.sh"; recipe "$@"
#
# and then calls `step TARGET COMMAND...` for each command. It may use
#
#   $DATA $OUT $WORKERS $ROOT    absolute paths, number of processes, root of the repository
#   $TOY                         1 with --toy, which writes to OUT/toy, otherwise empty: ${TOY:+--limit 120}
#   $OURS                        1, empty with --published 1, the models of the papers: ${OURS:+--query-position}
#   $GPUS                        number of GPUs that fairseq-train uses, 1 on a CPU: --batch-size $((64 / GPUS))
#   "${TOY_FLAGS[@]}" "${TRAIN_FLAGS[@]}"   end fairseq-train: sizes for --toy, and what follows --
#   $FLAGS_NAME                  empty, or +DIGEST of TRAIN_FLAGS, for the name of the run
#   $(named BEAM SUBSET)         -beam-1-subset-1000 where these variables do not have their defaults, for names of folders

set -euo pipefail
ROOT=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
RECIPE=$(basename "$(cd "$(dirname "$0")" && pwd)")
TOY='' DRY_RUN='' DONE='' FLAGS_NAME='' TOY_FLAGS=() TRAIN_FLAGS=()
: "${DATA:=}" "${OUT:=}" "${PUBLISHED:=}" "${WORKERS:=$(getconf _NPROCESSORS_ONLN)}"
command -v fairseq-train > /dev/null || PATH=$ROOT/.venv/bin:$PATH
export PATH PYTHONPATH="$ROOT${PYTHONPATH:+:$PYTHONPATH}"
# Flags that do not make another model: with other values, training goes on in the same folder.
LENGTH_FLAGS='--(max-epoch|max-update|stop-time-hours|log-interval) [^ ]+'

say() { printf '[%s] %s\n' "$RECIPE" "$*" >&2; }
die() { say "error: $*"; exit 1; }

# The variables that the script declares, a line each: NAME=DEFAULT
declared() { grep -o '"${[A-Z_]*:=[^}]*}' "$0" | sed 's/^"${\([A-Z_]*\):=\(.*\)}$/\1=\2/'; }
digest() { cksum | cut -d ' ' -f 1; }
absolute() { [[ ! $1 ]] || realpath -ms "$1" 2> /dev/null || python -c 'import os, sys; print(os.path.abspath(sys.argv[1]))' "$1"; }

named() {
    local name value
    for name; do
        value=${!name}
        ! declared | grep -qxF "$name=$value" || continue
        [[ $value =~ ^[A-Za-z0-9._,-]*$ ]] || value=$(digest <<< "$value")
        printf -- '-%s-%s' "$(tr A-Z_ a-z- <<< "$name")" "$value"
    done
}

recipe() {
    local name known
    known=$(printf 'DATA\nOUT\nPUBLISHED\nWORKERS\n'; declared | cut -d = -f 1)
    while (($#)); do
        case $1 in
            --help | -h) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; echo '  --published 1      the model as its paper has it'; exit ;;
            --toy) TOY=1 ;;
            --dry-run) DRY_RUN=1 ;;
            --) shift; TRAIN_FLAGS=("$@"); break ;;
            *) name=$(tr a-z- A-Z_ <<< "${1#--}")
                [[ $1 == --* ]] && grep -qx "$name" <<< "$known" || die "unknown option $1; there are" \
                    "--toy --dry-run --help $(sort -u <<< "$known" | sed 's/^/--/' | tr 'A-Z_\n' 'a-z- ')"
                (($# > 1)) || die "$1 needs a value"
                printf -v "$name" %s "$2"; shift ;;
        esac
        shift
    done
    [[ $OUT ]] || die "--out is needed"
    OUT=$(absolute "$OUT")${TOY:+/toy} DATA=$(absolute "$DATA")
    # A script that declares DATA can do without it.
    [[ $DATA || $'\n'$(declared) == *$'\nDATA='* ]] || { [[ $TOY ]] && DATA=$OUT/data; } || die "--data is needed"
    [[ ! $DATA || $OUT/ != "$DATA"/* ]] || die "--out lies in --data; give it a folder of its own"
    case $PUBLISHED in '') OURS=1 ;; 1) OURS='' ;; *) die "--published $PUBLISHED: give 1, or leave it out" ;; esac
    [[ $OURS || ${ARCH-} != @(tree_transformer|treeformer|tree_positional|tree_insertion)* ]] || TRAIN_FLAGS+=(--as-published)
    name=$(sed -E "s/ $LENGTH_FLAGS//g" <<< " ${TRAIN_FLAGS[*]-}")
    [[ ! $name || $name == ' ' ]] || FLAGS_NAME=+$(digest <<< "$name")
    GPUS=$(tr , '\n' <<< "${CUDA_VISIBLE_DEVICES-$(nvidia-smi -L 2> /dev/null)}" | grep -c .) || GPUS=1
    [[ ! $TOY ]] || toy_flags "${ARCH-}"
}

toy_flags() { # sizes of an architecture that train in seconds on one core
    local encoder='--encoder-layers 1 --encoder-embed-dim 16 --encoder-ffn-embed-dim 16 --encoder-attention-heads 2'
    local sizes="$encoder --decoder-layers 1 --decoder-embed-dim 16 --decoder-ffn-embed-dim 16 --decoder-attention-heads 2"
    case $1 in
        *lstm_classifier*) sizes='--encoder-embed-dim 16 --encoder-hidden-size 16' ;;
        *classifier*) sizes=$encoder ;;
        tree_gru*) sizes="$encoder --decoder-layers 1 --decoder-embed-dim 16" ;;
        tree_positional*) sizes+=' --tree-levels 4 --tree-position-dim 256' ;;
        tree_to_tree_lstm*) sizes="--encoder-embed-dim 16 --decoder-embed-dim 16 --hidden-size 16" ;;
        lstm*) sizes='--encoder-embed-dim 16 --encoder-hidden-size 16'
            sizes+=' --decoder-embed-dim 16 --decoder-hidden-size 16 --decoder-out-embed-dim 16' ;;
        lightconv*) sizes+=' --encoder-kernel-size-list [3] --decoder-kernel-size-list [3]' ;;
        fconv*) TOY_FLAGS=(--encoder-layers '[(16, 3)]' --decoder-layers '[(16, 3)]')
            sizes='--encoder-embed-dim 16 --decoder-embed-dim 16 --decoder-out-embed-dim 16' ;;
    esac
    TOY_FLAGS+=($sizes --batch-size 32 --max-epoch 2 --max-update 8 --warmup-updates 2 --save-interval 1 --validate-interval 1)
}

# Fills an empty --data: with --toy by `preprocess.toy_corpus $1`, otherwise by `preprocess.fetch $2` if it is given.
fill_data() {
    [[ $DRY_RUN ]] || lock data
    [[ -e $DATA/.unfinished || ! $(ls -A "$DATA" 2> /dev/null) ]] || return 0
    if [[ $TOY ]]; then set -- python -m preprocess.toy_corpus "$1" --output "$DATA"
    elif [[ ${2-} ]]; then set -- python -m preprocess.fetch "$2" --output "$DATA"
    else die "--data $DATA is empty; README.md says where its files come from"; fi
    if [[ $DRY_RUN ]]; then shown "$@"; return; fi
    mkdir -p "$DATA" && touch "$DATA/.unfinished" # stays if this is interrupted
    "$@" && rm "$DATA/.unfinished"
}

# Prints a command as a reader can copy it; a long one has line breaks, where a flag begins.
shown() {
    local word line='' part=''
    for word in "$@" -; do
        [[ $word =~ ^[A-Za-z0-9_./:=,@%+-]+$ ]] || word="'${word//\'/\'\\\'\'}'"
        if [[ $word == -* ]]; then
            if ((${#line} && ${#line} + ${#part} > 114)); then printf '%s \\\n' "$line"; line='   '; fi
            line+="${line:+ }$part" part=''
        fi
        part+="${part:+ }$word"
    done
    printf '%s\n' "$line"
}

lock() { # waits until no other process is at the same step of the same folder
    STAMP=$OUT/steps/${1//\//%}
    mkdir -p "$OUT/steps"
    exec 9>> "$STAMP"
    ! command -v flock > /dev/null || flock 9
}

# Runs a command that makes TARGET, a file or a folder in OUT, unless it was made by the same command after the same steps. The
# stamp in OUT/steps has all commands so far, and `done` when the last of them has ended. What is unfinished or out of date
# is made anew; fairseq-train goes on from its last checkpoint, or is refused if that is of another model or other data.
step() {
    local target=$1 wanted
    shift
    if [[ $DRY_RUN ]]; then shown "$@"; return; fi
    [[ $DONE ]] || DONE="data $([[ ! $DATA ]] || find -L "$DATA" -type f -exec cksum {} + | sed "s|$DATA||" | sort | digest)"
    wanted=$(shown "$@" | sed -E 's/^ +//; s/ \\$//' | tr '\n' ' ' | sed -E 's/ --(num-)?workers [^ ]+//g')
    wanted=${wanted//"$OUT"/\$OUT} wanted=${wanted//"$DATA"/\$DATA}
    DONE+=$'\n'${wanted//"$ROOT/"/}
    lock "${target#"$OUT"/}"
    if [[ $(< "$STAMP") == "$DONE"$'\ndone' && -e $target ]]; then say "${target#"$OUT"/}: done before"; return; fi
    if [[ -e $target ]]; then
        [[ -s $STAMP ]] || die "$target is there, and no step of this recipe has made it; give another --out"
        if [[ $1 != fairseq-train ]]; then rm -rf "$target"
        elif [[ $(sed -E "/^done$/d; s/ $LENGTH_FLAGS//g" "$STAMP") != "$(sed -E "s/ $LENGTH_FLAGS//g" <<< "$DONE")" ]]; then
            die "$target is of other settings or other data; give another --out, or remove $(dirname "$target")"
        fi
    fi
    say "${target#"$OUT"/}" && shown "$@" >&2
    mkdir -p "$(dirname "$target")" && printf '%s\n' "$DONE" > "$STAMP"
    "$@" 9>&- || die "$1 failed with exit status $?; the same command goes on from here"
    [[ -e $target ]] || die "$1 has not made $target"
    printf 'done\n' >> "$STAMP"
}
