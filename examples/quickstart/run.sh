#!/usr/bin/env bash
# From parallel text to trees, two trained models, translations, BLEU and a picture, in a few minutes on two cores.
# Usage: examples/quickstart/run.sh [--data DIR] [--out DIR] ...; see usage below, or README.md here.
set -euo pipefail

usage() {
    cat << USAGE
usage: $0 [options]

  --data DIR         your own parallel text: train.SRC, train.TGT and, if you have them, valid.* and test.*; without it
                     a small English-German corpus is made from a grammar
  --out DIR          everything that is written (out/quickstart, or out/quickstart-NAME for data in a folder NAME)
  --source LANG      source language of your text, the one that is parsed (en where there is one)
  --target LANG      target language of your text
  --parser-dir DIR   folder of a Stanza model for your text; without it Stanza downloads its own
  --subset N         the first N pairs of your train
  --updates N        training updates of each model (600)
  --toy              tiny sizes, to see that everything runs
USAGE
}

START=$SECONDS
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
DATA='' OUT='' SOURCE='' TARGET='' PARSER_DIR='' SUBSET='' UPDATES='' TOY=''
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --toy) TOY=1; shift; continue ;;
        --data | --out | --source | --target | --parser-dir | --subset | --updates) ;;
        *) usage >&2; echo "unknown option $1" >&2; exit 2 ;;
    esac
    [ $# -gt 1 ] || { usage >&2; echo "$1 needs a value" >&2; exit 2; }
    case $1 in
        --data) DATA=$(cd "$2" && pwd) ;;
        --out) mkdir -p "$2"; OUT=$(cd "$2" && pwd) ;;
        --source) SOURCE=$2 ;;
        --target) TARGET=$2 ;;
        --parser-dir) PARSER_DIR=$(cd "$2" && pwd) ;;
        --subset) SUBSET=$2 ;;
        --updates) UPDATES=$2 ;;
    esac
    shift 2
done

cd "$ROOT"
OUT=${OUT:-$ROOT/out/quickstart${DATA:+-$(basename "$DATA")}}
LOGS=$OUT/logs
# One thread a process: two of them train, or parse, at a time. And no GPU, so that what is seen is the same everywhere.
export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 CUDA_VISIBLE_DEVICES= PYTHONWARNINGS=ignore PYTHONPATH="$ROOT${PYTHONPATH:+:$PYTHONPATH}"
if [ -d .venv/bin ] && ! command -v fairseq-train > /dev/null; then PATH="$ROOT/.venv/bin:$PATH"; fi

say() { printf '[%3d s] %s\n' "$((SECONDS - START))" "$*"; }

# fail LOG: show the end of a log and stop
fail() {
    say "failed; the end of $1:"
    tail -n 20 "$1" >&2
    exit 1
}

# run NAME COMMAND...: print the command, keep its output in a log
run() {
    local log=$LOGS/$1.log
    shift
    say "$*"
    "$@" > "$log" 2>&1 || fail "$log"
}

trap 'jobs=$(jobs -p); [ -z "$jobs" ] || kill $jobs 2> /dev/null || true' EXIT

# --- text ------------------------------------------------------------------------------------------------------------

# What an earlier run left is made again; its parses are kept.
rm -rf "$OUT/words" "$OUT/bpe" "$OUT/data-bin" "$OUT/tree_transformer" "$OUT/transformer" "$LOGS"
mkdir -p "$LOGS" "$OUT/bpe"
if [ -n "$DATA" ]; then
    MERGES=8000 PARSER=(--tree-parser stanza)
    [ -z "$PARSER_DIR" ] || PARSER+=(--parser-dir "$PARSER_DIR")
    say "python -m preprocess.own_text $DATA --out $OUT/words"
    read -r SOURCE TARGET < <(
        python -m preprocess.own_text "$DATA" --out "$OUT/words" ${SOURCE:+--source "$SOURCE"} ${TARGET:+--target "$TARGET"} \
            ${SUBSET:+--subset "$SUBSET"}
    ) || exit 1
else
    SOURCE=en TARGET=de MERGES=2500 SIZES=()
    PARSER=(--tree-parser stanza --parser-dir "${PARSER_DIR:-examples/quickstart/stanza-en}")
    [ -z "$TOY" ] || SIZES=(--train 200 --valid 20 --test 20)
    run corpus python -m preprocess.english_german --out "$OUT/words" ${SIZES[@]+"${SIZES[@]}"}
fi
say "$(wc -l < "$OUT/words/train.$SOURCE") pairs; for example:"
paste -d '\n' <(head -n 2 "$OUT/words/train.$SOURCE") <(head -n 2 "$OUT/words/train.$TARGET") | sed 's/^/          /'

[ -z "$TOY" ] || MERGES=200
say "subwords: $MERGES merges of subword-nmt, learnt on both languages"
cat "$OUT/words/train.$SOURCE" "$OUT/words/train.$TARGET" | subword-nmt learn-bpe -s "$MERGES" > "$OUT/bpe/codes" 2> "$LOGS/bpe.log" || fail "$LOGS/bpe.log"
for split in train valid test; do
    for language in "$SOURCE" "$TARGET"; do
        subword-nmt apply-bpe -c "$OUT/bpe/codes" < "$OUT/words/$split.$language" > "$OUT/bpe/$split.$language" 2>> "$LOGS/bpe.log" || fail "$LOGS/bpe.log"
    done
done

# --- trees -----------------------------------------------------------------------------------------------------------

PREPROCESS=(
    fairseq-preprocess --user-dir tree_fairseq --task tree_translation -s "$SOURCE" -t "$TARGET"
    --trainpref "$OUT/bpe/train" --validpref "$OUT/bpe/valid" --testpref "$OUT/bpe/test" --destdir "$OUT/data-bin"
    --joined-dictionary --workers 2 "${PARSER[@]}" --tree-lang "$SOURCE" --parse-cache "$OUT/parses"
)
say "${PREPROCESS[*]}"
"${PREPROCESS[@]}" 2>&1 | tee "$LOGS/preprocess.log" | grep --line-buffered -v 'Namespace(' || fail "$LOGS/preprocess.log"

# --- training --------------------------------------------------------------------------------------------------------

UPDATES=${UPDATES:-600}
WIDTH=128 FFN=256 INTERVAL=50
if [ -n "$TOY" ]; then UPDATES=6 WIDTH=16 FFN=16 INTERVAL=2; fi
SIZE=(
    --encoder-layers 2 --decoder-layers 2 --encoder-attention-heads 4 --decoder-attention-heads 4
    --encoder-embed-dim "$WIDTH" --decoder-embed-dim "$WIDTH" --encoder-ffn-embed-dim "$FFN" --decoder-ffn-embed-dim "$FFN"
    --share-all-embeddings --dropout 0.1
)
OPTIMISATION=(
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --optimizer adam --adam-betas '(0.9, 0.98)'
    --lr 4e-3 --lr-scheduler inverse_sqrt --warmup-updates 200 --clip-norm 1.0 --max-tokens 2000 --max-update "$UPDATES" --seed 1
    --required-batch-size-multiple 1
)
SAVING=(--no-epoch-checkpoints --no-progress-bar --log-format simple --log-interval "$INTERVAL")

say "fairseq-train $OUT/data-bin --user-dir tree_fairseq --task tree_translation --arch tree_transformer_tiny ${SIZE[*]} ${OPTIMISATION[*]}"
fairseq-train "$OUT/data-bin" --user-dir tree_fairseq --task tree_translation --arch tree_transformer_tiny \
    "${SIZE[@]}" "${OPTIMISATION[@]}" "${SAVING[@]}" --save-dir "$OUT/tree_transformer" > "$LOGS/tree_transformer.log" 2>&1 &
TREE=$!
say "fairseq-train $OUT/data-bin --user-dir tree_fairseq --task translation --arch transformer, the rest as above"
fairseq-train "$OUT/data-bin" --user-dir tree_fairseq --task translation --arch transformer \
    "${SIZE[@]}" "${OPTIMISATION[@]}" "${SAVING[@]}" --save-dir "$OUT/transformer" > "$LOGS/transformer.log" 2>&1 &
STOCK=$!

# state NAME: the last update of a log and its loss
state() { sed -n 's/.*| train_inner |.* loss=\([0-9.]*\),.*num_updates=\([0-9]*\),.*/update \2, loss \1/p' "$LOGS/$1.log" | tail -n 1; }

SHOWN=''
while [ -n "$TREE$STOCK" ]; do
    sleep 2
    if [ -n "$TREE" ] && ! kill -0 "$TREE" 2> /dev/null; then wait "$TREE" || fail "$LOGS/tree_transformer.log"; TREE=''; fi
    if [ -n "$STOCK" ] && ! kill -0 "$STOCK" 2> /dev/null; then wait "$STOCK" || fail "$LOGS/transformer.log"; STOCK=''; fi
    NOW="Tree-Transformer: $(state tree_transformer); transformer: $(state transformer)"
    if [ "$NOW" != "$SHOWN" ] && [ "$NOW" != "Tree-Transformer: ; transformer: " ]; then say "of $UPDATES updates, $NOW"; fi
    SHOWN=$NOW
done

# --- translations ----------------------------------------------------------------------------------------------------

for name in tree_transformer transformer; do
    if [ "$name" = tree_transformer ]; then TASK=tree_translation; else TASK=translation; fi
    # Without a multiple of 1, fairseq drops the sentences that are left over when it fills batches of eight.
    # The stock model too with --user-dir: current torch refuses fairseq's checkpoints until the plugin has declared what is in them.
    run "generate-$name" fairseq-generate "$OUT/data-bin" --user-dir tree_fairseq --task "$TASK" --path "$OUT/$name/checkpoint_best.pt" \
        --beam 5 --remove-bpe --max-tokens 4000 --required-batch-size-multiple 1 --results-path "$OUT/$name"
done

python examples/quickstart/report.py --out "$OUT" --source "$SOURCE" --target "$TARGET"
cat << NEXT

Go on: echo "the old man the boat ." | fairseq-interactive $OUT/data-bin --user-dir tree_fairseq --task tree_translation \\
    --path $OUT/tree_transformer/checkpoint_best.pt --bpe subword_nmt --bpe-codes $OUT/bpe/codes --remove-bpe --beam 5
NEXT
say "done"
