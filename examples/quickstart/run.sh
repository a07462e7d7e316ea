#!/usr/bin/env bash
# Quickstart: from parallel text to trees, two trained models, translations, BLEU and pictures, in minutes on two cores.
#
#   examples/quickstart/run.sh [options]
#
#   --data DIR         your own parallel text: train.SRC, train.TGT and, if you have them, valid.* and test.*; without it
#                      a small English-German corpus is made from a grammar
#   --out DIR          everything that is written: out/quickstart where not given
#   --source LANG      source language of your text, the one that is parsed: en where there is one
#   --target LANG      target language of your text
#   --parser-dir DIR   folder of a Stanza model for your text; without it Stanza downloads its own
#   --subset N         the first N pairs of your train
#   --updates N        training updates of each model: 600
#   --distance-bias B  learned bias on the encoder's attention by distance: linear, tree or both, and the transformer has one
#                      by linear distance; none: neither model has one. both where not given
#   --toy              tiny sizes, to see that everything runs
OUT=${OUT:-$(cd "$(dirname "$0")/../.." && pwd)/out/quickstart}
: "${DATA:=}" "${SOURCE:=}" "${TARGET:=}" "${PARSER_DIR:=}" "${SUBSET:=}" "${UPDATES:=600}" "${DISTANCE_BIAS:=both}"
. "$(dirname "$0")/../lib/recipe.sh"; recipe "$@"
[[ $OURS ]] || die "the quickstart has one setting, so leave out --published"
case "$DISTANCE_BIAS" in
    none) TREE=(--arch tree_transformer_tiny) STOCK=(--arch transformer) ;;
    linear | tree | both) TREE=(--arch tree_transformer_tiny --distance-bias "$DISTANCE_BIAS")
        STOCK=(--arch transformer_distance_bias --distance-bias linear) ;;
    *) die "--distance-bias $DISTANCE_BIAS: give none, linear, tree or both" ;;
esac
PARSER_DIR=$(absolute "$PARSER_DIR")
cd "$ROOT"
# One thread a process, as two of them train at a time; no GPU, so that the output is the same everywhere
export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 CUDA_VISIBLE_DEVICES=

# Prints a command and runs it. Its output goes to a log, whose end is shown if it fails.
run() {
    local log=$OUT/logs/$1.log
    shift
    say "$(shown "$@")"
    "$@" >> "$log" 2>&1 || { tail -n 20 "$log" >&2; die "$1 failed; $log has all that it printed"; }
}

# What an earlier run left is made again; its parses are kept, and whatever no run has made.
MADE=("$OUT"/{words,data-bin,tree_transformer,transformer,logs})
for made in "${MADE[@]}"; do [[ ! -e $made || -e $OUT/.quickstart ]] || die "$made is of no earlier run; give another --out"; done
rm -rf "${MADE[@]}"
mkdir -p "$OUT/logs" && touch "$OUT/.quickstart"

# 1. Moses tokens
if [[ $DATA ]]; then
    LANGUAGES=$(python -m preprocess.own_text "$DATA" --out "$OUT/words" ${SOURCE:+--source "$SOURCE"} \
        ${TARGET:+--target "$TARGET"} ${SUBSET:+--subset "$SUBSET"})
    read -r SOURCE TARGET <<< "$LANGUAGES"
    MERGES=8000
else
    SOURCE=en TARGET=de MERGES=2500 PARSER_DIR=${PARSER_DIR:-examples/quickstart/stanza-en}
    run corpus python -m preprocess.english_german --out "$OUT/words" ${TOY:+--train 200 --valid 20 --test 20}
fi
say "$(wc -l < "$OUT/words/train.$SOURCE") pairs; for example:"
paste -d '\n' "$OUT/words/train.$SOURCE" "$OUT/words/train.$TARGET" | sed -n '1,4s/^/    /p'

# 2. A folder that both models read: subwords, learnt on both languages, and the parses of the source
PREPROCESS=(fairseq-preprocess --user-dir tree_fairseq --task tree_translation -s "$SOURCE" -t "$TARGET"
    --trainpref "$OUT/words/train" --validpref "$OUT/words/valid" --testpref "$OUT/words/test" --destdir "$OUT/data-bin"
    --tokenizer moses --moses-no-dash-splits --learn-subwords "$((TOY ? 200 : MERGES))" --joined-dictionary --workers "$((TOY ? 1 : 2))"
    --tree-parser stanza --tree-lang "$SOURCE" --parse-cache "$OUT/parses" ${PARSER_DIR:+--parser-dir "$PARSER_DIR"})
say "$(shown "${PREPROCESS[@]}")"
"${PREPROCESS[@]}" 2>&1 | tee "$OUT/logs/preprocess.log" | grep --line-buffered -v 'Namespace('

# 3. Both models at the same time, each on one core
TRAINING=(--encoder-layers 2 --decoder-layers 2 --encoder-embed-dim 128 --decoder-embed-dim 128 --encoder-ffn-embed-dim 256
    --decoder-ffn-embed-dim 256 --encoder-attention-heads 4 --decoder-attention-heads 4 --share-all-embeddings --dropout 0.1
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --optimizer adam --adam-betas '(0.9, 0.98)'
    --lr 4e-3 --lr-scheduler inverse_sqrt --warmup-updates 200 --clip-norm 1.0 --max-tokens 2000 --max-update "$UPDATES"
    --seed 1 --required-batch-size-multiple 1 --no-epoch-checkpoints --no-progress-bar --log-format simple --log-interval 10)
trap 'kill $(jobs -p) 2> /dev/null || true' EXIT
run transformer fairseq-train "$OUT/data-bin" --user-dir tree_fairseq --task translation "${STOCK[@]}" "${TRAINING[@]}" \
    --save-dir "$OUT/transformer" "${TOY_FLAGS[@]}" "${TRAIN_FLAGS[@]}" &
run tree_transformer fairseq-train "$OUT/data-bin" --user-dir tree_fairseq --task tree_translation "${TREE[@]}" \
    "${TRAINING[@]}" --save-dir "$OUT/tree_transformer" "${TOY_FLAGS[@]}" "${TRAIN_FLAGS[@]}" &
for model in tree_transformer transformer; do # the last loss of each, until both have ended
    tail -F "$OUT/logs/$model.log" 2> /dev/null |
        sed -nuE "s/.*loss=([0-9.]*),.*num_updates=([0-9]*[05]0),.*/    $model: update \2 of $UPDATES, loss \1/p" &
done
wait %1
wait %2

# 4. Translations. After so few updates a model may repeat a phrase to the end: two such outputs of 500 cost five BLEU.
for model in tree_transformer:tree_translation transformer:translation; do
    run "generate-${model%:*}" fairseq-generate "$OUT/data-bin" --user-dir tree_fairseq --task "${model#*:}" \
        --path "$OUT/${model%:*}/checkpoint_best.pt" --beam 5 --remove-bpe --max-len-a 1.5 --max-len-b 10 --max-tokens 4000 \
        --required-batch-size-multiple 1 --results-path "$OUT/${model%:*}"
done
python examples/quickstart/report.py --out "$OUT" --source "$SOURCE" --target "$TARGET"

# 5. A sentence as a person types it: the folder knows how to tokenise, split and parse it
TYPED='the man saw the girl with the telescope.'
[[ ! $DATA ]] || TYPED=$(head -n 1 "$OUT/words/test.$SOURCE" | sed -E 's/ ([.,;:?!])( |$)/\1\2/g')
INTERACTIVE=(fairseq-interactive "$OUT/data-bin" --user-dir tree_fairseq --task tree_translation
    --path "$OUT/tree_transformer/checkpoint_best.pt" --beam 5 ${PARSER_DIR:+--parser-dir "$PARSER_DIR"})
say "echo '$TYPED' | $(shown "${INTERACTIVE[@]}")"
echo "$TYPED" | "${INTERACTIVE[@]}" 2> "$OUT/logs/typed.log" | sed -n $'s/^D-0\t[^\t]*\t/    /p'
say "done; type sentences of your own into the same command"
