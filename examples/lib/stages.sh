# Running a recipe's commands: printed, stopped at the first error, skipped when already done with the same inputs.

SHOWN='' # stages that --dry-run has printed

# say TEXT: one line of progress
say() { printf '[%s] %s\n' "${RECIPE:-recipe}" "$*" >&2; }

# die TEXT: say it and stop
die() { say "error: $*"; exit 1; }

# run COMMAND...: print and execute (--dry-run: print to standard output, execute nothing)
run() {
    if [ -n "$DRY_RUN" ]; then
        printf '%q ' "$@"
        printf '\n'
    else
        say "+ $*"
        "$@"
    fi
}

# key ARGUMENT...: digest of files (by content), folders (by names, sizes, times) and "=text"
key() { python "$LIBRARY/fingerprint.py" "$@"; }

# stage NAME KEY COMMAND...: run the command unless it finished before with the same key.
# The stamp is written when the command has returned, so a killed stage is done again.
stage() {
    local name=$1 wanted=$2 stamp
    shift 2
    stamp=$WORK/stamps/$name
    if [ -n "$DRY_RUN" ]; then
        case " $SHOWN " in *" $name "*) return ;; esac
        SHOWN+=" $name"
        printf '# %s\n' "$name"
        "$@"
        return
    fi
    if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
        say "$name: done before"
        return
    fi
    mkdir -p "$(dirname "$stamp")"
    rm -f "$stamp"
    say "$name: start"
    "$@"
    printf '%s\n' "$wanted" > "$stamp.part"
    mv "$stamp.part" "$stamp"
    say "$name: finished"
}

# devices: number of GPUs that fairseq-train will use, 1 where there are none
devices() {
    local count=1
    if [ -n "${CUDA_VISIBLE_DEVICES:-}" ]; then
        count=$(tr ',' '\n' <<< "$CUDA_VISIBLE_DEVICES" | wc -l)
    elif [ -z "${CUDA_VISIBLE_DEVICES+set}" ] && command -v nvidia-smi > /dev/null; then
        count=$(nvidia-smi -L 2> /dev/null | grep -c '^GPU' || true)
    fi
    printf '%d\n' "$((count > 0 ? count : 1))"
}

# batch_flags TOTAL LARGEST [FLAG]: BATCH, the flags of a batch of TOTAL tokens (or what FLAG counts) in all, at most
# LARGEST on a device at a time
batch_flags() {
    local total=$1 largest=$2 flag=${3:---max-tokens} count per_device
    count=$(devices)
    per_device=$((total / count))
    if [ "$per_device" -le "$largest" ]; then
        BATCH=("$flag" "$per_device" --update-freq 1)
    else
        BATCH=("$flag" "$largest" --update-freq "$((per_device / largest))")
    fi
}
