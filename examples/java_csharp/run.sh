#!/usr/bin/env bash
# Java to C# and back: code translation of CodeXGLUE (Lu et al., NeurIPS 2021)
#
# examples/java_csharp/run.sh --data DIR --out DIR [options] [-- flags of fairseq-train]
#
#   --data DIR         the files of the benchmark, see README.md; an empty folder is filled by a download
#   --out DIR          everything that is written; result.json has the scores
#   --direction D      java-csharp or csharp-java
#   --setting S        base, the size of the benchmark's transformer; SMALL: two layers, for one or two CPU cores
#   --arch A           tree_positional_transformer; or transformer, a stock model, and source_encoder_transformer, the same
#                      with --copy-source
#   --source S         tree, or text: tokens and subwords
#   --target T         tree; or text, which only stock models write
#   --copy-source C    yes: names can be copied from the source
#   --grammar G        language: every output parses; none: every output is a tree
#   --seed N           of training: 1
#   --beam N           beams of the search: 5
#   --workers N        processes of fairseq-preprocess: all cores
#   --toy              made-up data and tiny sizes, in OUT/toy
#   --dry-run          print the commands, run none
: "${DIRECTION:=java-csharp}" "${SETTING:=base}" "${ARCH:=tree_positional_transformer}" "${SOURCE:=tree}" "${TARGET:=tree}"
: "${COPY_SOURCE:=no}" "${GRAMMAR:=language}" "${SEED:=1}" "${BEAM:=5}"
. "$(dirname "$0")/../lib/recipe.sh"; recipe "$@"

case "$DIRECTION" in
    java-csharp) S=java T=cs FROM=java TO=csharp ;;
    csharp-java) S=cs T=java FROM=csharp TO=java ;;
    *) die "--direction $DIRECTION: give java-csharp or csharp-java" ;;
esac
# The benchmark's sizes, batches and updates; its models begin with subwords and weights of RoBERTa or at random.
case "$SETTING" in
    base) LAYERS=12 DECODER_LAYERS=6 WIDTH=768 FFN=3072 HEADS=12 BATCH=(--batch-size $((16 / GPUS))) EPOCHS=155 RATE=2e-4 ;;
    SMALL) LAYERS=2 DECODER_LAYERS=2 WIDTH=256 FFN=512 HEADS=4 BATCH=(--max-tokens $((4096 / GPUS))) EPOCHS=12 RATE=1e-3 ;;
    *) die "--setting $SETTING: give base or SMALL" ;;
esac
TASK=structural_translation SIDES=() SEARCH=(--grammar "$GRAMMAR")
[[ $SOURCE == text ]] || SIDES+=(--source-modality tree --source-notation "$FROM")
[[ $TARGET == text ]] && SEARCH=() || SIDES+=(--target-modality tree --target-notation "$TO")
[[ $SOURCE$TARGET == *text* ]] && SIDES+=(--learn-subwords 2000) || SIDES+=(--leaf-merges 2000)
# Some methods do not parse: without them in training, and wrong in the test set.
[[ $SOURCE$TARGET == texttext ]] && TASK=translation SEARCH=(--remove-bpe) || SIDES+=(--on-parse-error skip-pair)
SHARED=(--share-decoder-input-output-embed)
[[ $SOURCE != "$TARGET" ]] || SIDES+=(--joined-dictionary) SHARED=(--share-all-embeddings)
case "$ARCH" in
    tree_positional*) MODEL=(${OURS:+--query-position}) ;; # the decoder knows the place of the next symbol
    transformer* | source_encoder_transformer*) MODEL=() ;;
    *) die "--arch $ARCH: --help lists the architectures" ;;
esac
[[ $COPY_SOURCE == no ]] || MODEL+=(--copy-source)

BIN=$OUT/data-bin$(named DIRECTION SOURCE TARGET)
RUN=$OUT/runs/$ARCH$(named DIRECTION SETTING SOURCE TARGET COPY_SOURCE)-seed$SEED$FLAGS_NAME
OUTPUT=$RUN$(named GRAMMAR BEAM)

fill_data java_csharp java_csharp
step "$BIN" fairseq-preprocess --user-dir "$ROOT/tree_fairseq" -s "$S" -t "$T" --trainpref "$DATA/train.java-cs.txt" \
    --validpref "$DATA/valid.java-cs.txt" --testpref "$DATA/test.java-cs.txt" --destdir "$BIN" "${SIDES[@]}" \
    --workers "$WORKERS"

# The rate, its schedule, label smoothing and the average of checkpoints are ours.
step "$RUN/checkpoints/checkpoint_last.pt" fairseq-train "$BIN" --user-dir "$ROOT/tree_fairseq" --task "$TASK" -s "$S" -t "$T" \
    --arch "$ARCH" "${MODEL[@]}" "${SHARED[@]}" --dropout 0.1 \
    --encoder-layers $LAYERS --encoder-embed-dim $WIDTH --encoder-ffn-embed-dim $FFN --encoder-attention-heads $HEADS \
    --decoder-layers $DECODER_LAYERS --decoder-embed-dim $WIDTH --decoder-ffn-embed-dim $FFN --decoder-attention-heads $HEADS \
    --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 1 --lr $RATE --lr-scheduler inverse_sqrt --warmup-updates 1000 \
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1 "${BATCH[@]}" --required-batch-size-multiple 1 \
    --max-source-positions 1024 --max-target-positions 1024 \
    --max-epoch $EPOCHS --keep-last-epochs 5 --seed "$SEED" --save-dir "$RUN/checkpoints" \
    --no-progress-bar --log-interval 100 --log-file "$RUN/train.log" "${TOY_FLAGS[@]}" "${TRAIN_FLAGS[@]}"
step "$RUN/checkpoints/average.pt" tree-fairseq average "$RUN/checkpoints" --last-epochs "$((TOY ? 2 : 5))" \
    --output "$RUN/checkpoints/average.pt"

step "$OUTPUT/generate-test.txt" fairseq-generate "$BIN" --user-dir "$ROOT/tree_fairseq" --task "$TASK" -s "$S" -t "$T" \
    --path "$RUN/checkpoints/average.pt" --gen-subset test --beam "$BEAM" --max-len-a 0 --max-len-b 512 \
    --batch-size 32 --required-batch-size-multiple 1 --results-path "$OUTPUT" "${SEARCH[@]}"
step "$OUTPUT/score.json" tree-fairseq score code --run "$OUTPUT" --references "$DATA/test.java-cs.txt.$T" --target-lang "$T" \
    --notation "$TO" --training "$DATA/train.java-cs.txt.$T" --checkpoint "$RUN/checkpoints/average.pt" \
    --describe recipe=java_csharp direction="$DIRECTION" setting="$SETTING" arch="$ARCH" source="$SOURCE" target="$TARGET" \
    copy_source="$COPY_SOURCE" seed="$SEED" --result "$OUT/result.json"
