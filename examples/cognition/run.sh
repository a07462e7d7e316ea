#!/usr/bin/env bash
# CoGnition: English-Chinese with compounds that training does not have, Patel & Flanigan (2023), Table 4.
#
#   examples/cognition/run.sh --data DIR --out DIR [options] [-- flags of fairseq-train]
#
#   --data DIR     the data set, see README.md
#   --out DIR      everything that is written, result.json among it
#   --arch A       treeformer_cognition where not given; the baseline is transformer_iwslt_de_en
#   --seed N       of training, 1 where not given
#   --workers N    processes for preparing, all cores where not given
#   --toy          tiny sizes and made-up data, to see that everything runs
#   --dry-run      print the commands, run none
: "${ARCH:=treeformer_cognition}" "${SEED:=1}"
. "$(dirname "$0")/../lib/recipe.sh"; recipe "$@"
fill_data cognition
WORDS=$OUT/words BPE=$OUT/bpe DATA_BIN=$OUT/data-bin RUN=$OUT/runs/$ARCH-seed$SEED$FLAGS_NAME

# The flags are those of the script of the data set's authors, which the paper uses as it is. It has 4,096 tokens on each
# of two GPUs.
MODEL=()
[[ $ARCH != treeformer* ]] || MODEL=(--treeformer-height 10)

# Words; byte pairs of the Chinese side alone, as in the authors' script
step "$WORDS" python -m preprocess.prepare cognition --data "$DATA" --source en --target zh --output "$WORDS" \
    --workers "$WORKERS" ${TOY:+--limit 120}
step "$BPE/codes" subword-nmt learn-joint-bpe-and-vocab --input "$WORDS/train.en" "$WORDS/train.zh" -s 2000 \
    -o "$BPE/codes" --write-vocabulary "$BPE/vocab.en" "$BPE/vocab.zh"
for split in train valid test test1; do
    step "$BPE/$split.en" cp "$WORDS/$split.en" "$BPE/$split.en"
    step "$BPE/$split.zh" subword-nmt apply-bpe -c "$BPE/codes" --input "$WORDS/$split.zh" --output "$BPE/$split.zh"
done
step "$DATA_BIN" fairseq-preprocess -s en -t zh --trainpref "$BPE/train" --validpref "$BPE/valid" \
    --testpref "$BPE/test,$BPE/test1" --destdir "$DATA_BIN" --workers "$WORKERS"

step "$RUN/checkpoints/checkpoint_last.pt" fairseq-train "$DATA_BIN" --user-dir "$ROOT/tree_fairseq" \
    --task translation -s en -t zh --arch "$ARCH" --encoder-layers 6 "${MODEL[@]}" --share-decoder-input-output-embed \
    --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 0 --weight-decay 1e-4 \
    --lr 5e-4 --lr-scheduler inverse_sqrt --warmup-updates 4000 --dropout 0.3 \
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1 \
    --max-tokens 4096 --update-freq $((GPUS > 1 ? 1 : 2)) --required-batch-size-multiple 1 --max-update 100000 \
    --eval-bleu --eval-bleu-args '{"beam": 5, "max_len_a": 1.2, "max_len_b": 10}' --eval-bleu-detok space \
    --eval-bleu-remove-bpe --best-checkpoint-metric bleu --maximize-best-checkpoint-metric \
    --save-dir "$RUN/checkpoints" --no-epoch-checkpoints --no-progress-bar --log-interval 100 \
    --log-file "$RUN/train.log" --seed "$SEED" "${TOY_FLAGS[@]}" "${TRAIN_FLAGS[@]}"

for split in test test1; do
    step "$RUN/generate-$split.txt" fairseq-generate "$DATA_BIN" --user-dir "$ROOT/tree_fairseq" --task translation \
        -s en -t zh --path "$RUN/checkpoints/checkpoint_best.pt" --gen-subset "$split" --beam 5 --batch-size 512 \
        --required-batch-size-multiple 1 --remove-bpe --results-path "$RUN"
done
step "$RUN/score.json" python -m examples.cognition.compounds --run "$RUN" --references "$WORDS" \
    --sets test=random test1=cg --primary instance_error_rate_cg --checkpoint "$RUN/checkpoints/checkpoint_best.pt" \
    --describe recipe=cognition arch="$ARCH" seed="$SEED" --result "$OUT/result.json"
