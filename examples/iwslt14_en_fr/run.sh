#!/usr/bin/env bash
# IWSLT'14 English-French without trees: Treeformer and stock transformers, Patel & Flanigan (2023), Tables 1 and 8.
#
#   examples/iwslt14_en_fr/run.sh --data DIR --out DIR [options] [-- flags of fairseq-train]
#
#   --data DIR     the data set, see README.md; an empty folder is filled by a download
#   --out DIR      everything that is written, result.json among it
#   --arch A       treeformer_iwslt_de_en where not given; the baseline is transformer_iwslt_de_en
#   --seed N       of training, 1 where not given
#   --workers N    processes for preparing, all cores where not given
#   --toy          tiny sizes and made-up data, to see that everything runs
#   --dry-run      print the commands, run none
: "${ARCH:=treeformer_iwslt_de_en}" "${SEED:=1}"
. "$(dirname "$0")/../lib/recipe.sh"; recipe "$@"
fill_data iwslt14_en_fr iwslt14_en_fr
WORDS=$OUT/words BPE=$OUT/bpe DATA_BIN=$OUT/data-bin RUN=$OUT/runs/$ARCH-seed$SEED$FLAGS_NAME

# Sizes, 6+6 layers with d = 512, come with the architectures. The flags are those of Table 8. The number of updates is not
# in the paper, and is ours.
case $ARCH in
    treeformer*) MODEL=(--lr 7e-4 --dropout 0.4 --treeformer-height 10) ;;
    *) MODEL=(--lr 5e-4 --dropout 0.3) ;;
esac

# Moses tokens in lower case, joint byte pairs, a dictionary for each side
step "$WORDS" python -m preprocess.prepare iwslt14_en_fr --data "$DATA" --source en --target fr --output "$WORDS" \
    --workers "$WORKERS" ${TOY:+--limit 120}
step "$BPE/codes" subword-nmt learn-joint-bpe-and-vocab --input "$WORDS/train.en" "$WORDS/train.fr" -s 10000 \
    -o "$BPE/codes" --write-vocabulary "$BPE/vocab.en" "$BPE/vocab.fr"
for split in train valid test; do
    for side in en fr; do
        step "$BPE/$split.$side" subword-nmt apply-bpe -c "$BPE/codes" --input "$WORDS/$split.$side" \
            --output "$BPE/$split.$side"
    done
done
step "$DATA_BIN" fairseq-preprocess -s en -t fr --trainpref "$BPE/train" --validpref "$BPE/valid" \
    --testpref "$BPE/test" --destdir "$DATA_BIN" --workers "$WORKERS"

step "$RUN/checkpoints/checkpoint_last.pt" fairseq-train "$DATA_BIN" --user-dir "$ROOT/tree_fairseq" \
    --task translation -s en -t fr --arch "$ARCH" --encoder-layers 6 "${MODEL[@]}" --share-decoder-input-output-embed \
    --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 0 --weight-decay 1e-4 --lr-scheduler inverse_sqrt \
    --warmup-updates 4000 --criterion label_smoothed_cross_entropy --label-smoothing 0.1 \
    --max-tokens $((4096 / GPUS)) --update-freq 1 --required-batch-size-multiple 1 --max-update 60000 \
    --save-dir "$RUN/checkpoints" --no-epoch-checkpoints --no-progress-bar --log-interval 100 \
    --log-file "$RUN/train.log" --seed "$SEED" "${TOY_FLAGS[@]}" "${TRAIN_FLAGS[@]}"

step "$RUN/generate-test.txt" fairseq-generate "$DATA_BIN" --user-dir "$ROOT/tree_fairseq" --task translation \
    -s en -t fr --path "$RUN/checkpoints/checkpoint_best.pt" --gen-subset test --beam 10 --lenpen 0.2 \
    --max-tokens 4096 --required-batch-size-multiple 1 --remove-bpe --results-path "$RUN"
step "$RUN/score.json" tree-fairseq score bleu --run "$RUN" --words "$WORDS" --source-lang en --target-lang fr \
    --lowercase --primary tokenized_bleu --length-bounds 10 20 30 40 50 \
    --checkpoint "$RUN/checkpoints/checkpoint_best.pt" --describe recipe=iwslt14_en_fr arch="$ARCH" seed="$SEED" \
    --result "$OUT/result.json"
