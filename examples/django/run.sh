#!/usr/bin/env bash
# Django: descriptions in English to lines of Python (Oda et al., ASE 2015)
#
# examples/django/run.sh --data DIR --out DIR [options] [-- flags of fairseq-train]
#
#   --data DIR         all.anno and all.code; an empty folder is filled by a download
#   --out DIR          everything that is written; result.json has the scores
#   --arch A           tree_positional_transformer_tiny, or source_encoder_transformer_tiny: a stock model
#   --target T         tree; or text, which only stock models write: Python in subwords
#   --copy-source C    yes: names can be copied from the description; no
#   --grammar G        language: every output parses; none: every output is a tree
#   --seed N           of training: 1
#   --beam N           beams of the search: 5
#   --workers N        processes of fairseq-preprocess: all cores
#   --toy              made-up data and tiny sizes, in OUT/toy
#   --dry-run          print the commands, run none
: "${ARCH:=tree_positional_transformer_tiny}" "${TARGET:=tree}" "${COPY_SOURCE:=yes}"
: "${GRAMMAR:=language}" "${SEED:=1}" "${BEAM:=5}"
. "$(dirname "$0")/../lib/recipe.sh"; recipe "$@"

case "$TARGET" in
    tree) TASK=structural_translation SIDE=(--target-modality tree --target-notation python) SEARCH=(--grammar "$GRAMMAR") ;;
    text) TASK=translation SIDE=() SEARCH=(--remove-bpe) ;;
    *) die "--target $TARGET: give tree or text" ;;
esac
case "$ARCH" in
    tree_positional*) MODEL=(${OURS:+--query-position}) ;; # the decoder knows the place of the next symbol
    source_encoder_transformer*) MODEL=() ;;
    *) die "--arch $ARCH: --help lists the architectures" ;;
esac
[[ $COPY_SOURCE == no || ! $OURS ]] || MODEL+=(--copy-source)

TEXT=$OUT/text
BIN=$OUT/data-bin$(named TARGET)
RUN=$OUT/runs/$ARCH$(named TARGET COPY_SOURCE)-seed$SEED$FLAGS_NAME
OUTPUT=$RUN$(named GRAMMAR BEAM)

fill_data django django
step "$TEXT" python -m preprocess.prepare django --data "$DATA" --source en --target py --output "$TEXT" ${TOY:+--limit 120}

step "$BIN" fairseq-preprocess --user-dir "$ROOT/tree_fairseq" -s en -t py \
    --trainpref "$TEXT/train" --validpref "$TEXT/valid" --testpref "$TEXT/test" --destdir "$BIN" "${SIDE[@]}" \
    --learn-subwords 2000 --workers "$WORKERS"

# An LSTM reads the descriptions, as in TranX: it learns from fewer lines which word follows which than attention does.
step "$RUN/checkpoints/checkpoint_last.pt" fairseq-train "$BIN" --user-dir "$ROOT/tree_fairseq" --task "$TASK" -s en -t py \
    --arch "$ARCH" "${MODEL[@]}" --source-encoder tree_lstm --share-decoder-input-output-embed --dropout 0.3 \
    --encoder-layers 2 --encoder-embed-dim 256 --encoder-ffn-embed-dim 512 --encoder-attention-heads 4 \
    --decoder-layers 2 --decoder-embed-dim 256 --decoder-ffn-embed-dim 512 --decoder-attention-heads 4 \
    --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 1 --lr 7e-4 --lr-scheduler inverse_sqrt --warmup-updates 1000 \
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1 \
    --max-target-positions 2048 --max-tokens 4096 --batch-size "$((32 / GPUS))" --required-batch-size-multiple 1 \
    --max-epoch 24 --seed "$SEED" \
    --keep-last-epochs 5 --save-dir "$RUN/checkpoints" \
    --no-progress-bar --log-interval 100 --log-file "$RUN/train.log" "${TOY_FLAGS[@]}" "${TRAIN_FLAGS[@]}"
step "$RUN/checkpoints/average.pt" tree-fairseq average "$RUN/checkpoints" --last-epochs "$((TOY ? 2 : 5))" \
    --output "$RUN/checkpoints/average.pt"

step "$OUTPUT/generate-test.txt" fairseq-generate "$BIN" --user-dir "$ROOT/tree_fairseq" --task "$TASK" -s en -t py \
    --path "$RUN/checkpoints/average.pt" --gen-subset test --beam "$BEAM" --max-len-a 0 --max-len-b 250 \
    --max-target-positions 2048 --batch-size 64 --required-batch-size-multiple 1 --results-path "$OUTPUT" "${SEARCH[@]}"
step "$OUTPUT/score.json" tree-fairseq score code --run "$OUTPUT" --references "$TEXT" --target-lang py --notation python \
    --training "$TEXT/train.py" --checkpoint "$RUN/checkpoints/average.pt" --describe recipe=django arch="$ARCH" \
    target="$TARGET" copy_source="$COPY_SOURCE" seed="$SEED" --result "$OUT/result.json"
