#!/usr/bin/env bash
# Gigaword: headlines of articles, by Treeformer and stock transformers, Patel & Flanigan (2023), Tables 2 and 8.
#
#   examples/gigaword/run.sh --data DIR --out DIR [options] [-- flags of fairseq-train]
#
#   --data DIR     the data set, see README.md
#   --out DIR      everything that is written, result.json among it
#   --arch A       treeformer_gigaword where not given; the baseline is transformer_iwslt_de_en
#   --seed N       of training, 1 where not given
#   --metrics M    rouge where not given; 'rouge pltrdy' also scores as the paper does, by the library rouge
#   --workers N    processes for preparing, all cores where not given
#   --toy          tiny sizes and made-up data, to see that everything runs
#   --dry-run      print the commands, run none
: "${ARCH:=treeformer_gigaword}" "${SEED:=1}" "${METRICS:=rouge}"
. "$(dirname "$0")/../lib/recipe.sh"; recipe "$@"
fill_data gigaword
WORDS=$OUT/words BPE=$OUT/bpe DATA_BIN=$OUT/data-bin RUN=$OUT/runs/$ARCH-seed$SEED$FLAGS_NAME

# Sizes, 6+6 layers with d = 512, come with the architectures. The flags are those of Table 8. Not in the paper are the
# number of updates, Adam's decays and which embeddings are shared.
case $ARCH in
    treeformer*) MODEL=(--lr 7e-4 --treeformer-height 10) ;;
    *) MODEL=(--lr 5e-4) ;;
esac

# First sentences and titles, tokenised, digits as #; joint byte pairs, one dictionary
step "$WORDS" python -m preprocess.prepare gigaword --data "$DATA" --source article --target title --output "$WORDS" \
    --workers "$WORKERS" ${TOY:+--limit 120}
step "$BPE/codes" subword-nmt learn-joint-bpe-and-vocab --input "$WORDS/train.article" "$WORDS/train.title" -s 32000 \
    -o "$BPE/codes" --write-vocabulary "$BPE/vocab.article" "$BPE/vocab.title"
for split in train valid test; do
    for side in article title; do
        step "$BPE/$split.$side" subword-nmt apply-bpe -c "$BPE/codes" --input "$WORDS/$split.$side" \
            --output "$BPE/$split.$side"
    done
done
step "$DATA_BIN" fairseq-preprocess -s article -t title --trainpref "$BPE/train" --validpref "$BPE/valid" \
    --testpref "$BPE/test" --destdir "$DATA_BIN" --joined-dictionary --workers "$WORKERS"

step "$RUN/checkpoints/checkpoint_last.pt" fairseq-train "$DATA_BIN" --user-dir "$ROOT/tree_fairseq" \
    --task translation \
    -s article -t title --arch "$ARCH" --encoder-layers 6 "${MODEL[@]}" --share-decoder-input-output-embed \
    --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 0 --weight-decay 1e-3 --lr-scheduler inverse_sqrt \
    --warmup-updates 8000 --dropout 0.1 --criterion label_smoothed_cross_entropy --label-smoothing 0.1 \
    --max-tokens $((8192 / GPUS)) --update-freq 1 --required-batch-size-multiple 1 --max-update 100000 \
    --save-dir "$RUN/checkpoints" --no-epoch-checkpoints --no-progress-bar --log-interval 100 \
    --log-file "$RUN/train.log" --seed "$SEED" "${TOY_FLAGS[@]}" "${TRAIN_FLAGS[@]}"

step "$RUN/generate-test.txt" fairseq-generate "$DATA_BIN" --user-dir "$ROOT/tree_fairseq" --task translation \
    -s article -t title --path "$RUN/checkpoints/checkpoint_best.pt" --gen-subset test --beam 5 --lenpen 0.7 \
    --max-len-b 32 --max-tokens 8192 --required-batch-size-multiple 1 --remove-bpe --results-path "$RUN"
step "$RUN/score.json" tree-fairseq score rouge --run "$RUN" --references "$WORDS" --target-lang title --metrics $METRICS \
    --primary rouge1 --checkpoint "$RUN/checkpoints/checkpoint_best.pt" \
    --describe recipe=gigaword arch="$ARCH" seed="$SEED" --result "$OUT/result.json"
