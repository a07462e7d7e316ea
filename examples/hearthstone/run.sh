#!/usr/bin/env bash
# Hearthstone: cards to their Python classes (Ling et al., ACL 2016)
#
# examples/hearthstone/run.sh --data DIR --out DIR [options] [-- flags of fairseq-train]
#
#   --data DIR         {train,dev,test}_hs.{in,out}; an empty folder is filled by a download
#   --out DIR          everything that is written; result.json has the scores
#   --arch A           tree_positional_transformer_tiny, or source_encoder_transformer_tiny: a stock model
#   --copy-source C    yes: names can be copied from the card; no
#   --grammar G        language: every output parses; none: every output is a tree
#   --seed N           of training: 1
#   --beam N           beams of the search: 5
#   --workers N        processes of fairseq-preprocess: all cores
#   --toy              made-up data and tiny sizes, in OUT/toy
#   --dry-run          print the commands, run none
: "${ARCH:=tree_positional_transformer_tiny}" "${COPY_SOURCE:=yes}" "${GRAMMAR:=language}" "${SEED:=1}" "${BEAM:=5}"
. "$(dirname "$0")/../lib/recipe.sh"; recipe "$@"

case "$ARCH" in
    tree_positional*) MODEL=(${OURS:+--query-position}) ;; # the decoder knows the place of the next symbol
    source_encoder_transformer*) MODEL=() ;;
    *) die "--arch $ARCH: --help lists the architectures" ;;
esac
[[ $COPY_SOURCE == no || ! $OURS ]] || MODEL+=(--copy-source)

TEXT=$OUT/text
BIN=$OUT/data-bin
RUN=$OUT/runs/$ARCH$(named COPY_SOURCE)-seed$SEED$FLAGS_NAME
OUTPUT=$RUN$(named GRAMMAR BEAM)

fill_data hearthstone hearthstone
step "$TEXT" python -m preprocess.prepare hearthstone --data "$DATA" --source in --target out --output "$TEXT" ${TOY:+--limit 120}
step "$BIN" fairseq-preprocess --user-dir "$ROOT/tree_fairseq" -s in -t out \
    --trainpref "$TEXT/train" --validpref "$TEXT/valid" --testpref "$TEXT/test" --destdir "$BIN" \
    --source-modality tree --source-notation python --target-modality tree --target-notation python \
    --on-parse-error skip-pair --workers "$WORKERS"

step "$RUN/checkpoints/checkpoint_last.pt" fairseq-train "$BIN" --user-dir "$ROOT/tree_fairseq" \
    --task structural_translation -s in -t out --arch "$ARCH" "${MODEL[@]}" --share-decoder-input-output-embed --dropout 0.3 \
    --encoder-layers 2 --encoder-embed-dim 128 --encoder-ffn-embed-dim 256 --encoder-attention-heads 4 \
    --decoder-layers 2 --decoder-embed-dim 128 --decoder-ffn-embed-dim 256 --decoder-attention-heads 4 \
    --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 1 --lr 1e-3 --lr-scheduler inverse_sqrt --warmup-updates 300 \
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1 \
    --max-tokens "$((4096 / GPUS))" --required-batch-size-multiple 1 --max-epoch 150 --seed "$SEED" \
    --save-interval 10 --validate-interval 10 --keep-last-epochs 5 --save-dir "$RUN/checkpoints" \
    --no-progress-bar --log-interval 100 --log-file "$RUN/train.log" "${TOY_FLAGS[@]}" "${TRAIN_FLAGS[@]}"
step "$RUN/checkpoints/average.pt" tree-fairseq average "$RUN/checkpoints" --last-epochs "$((TOY ? 2 : 5))" \
    --output "$RUN/checkpoints/average.pt"

step "$OUTPUT/generate-test.txt" fairseq-generate "$BIN" --user-dir "$ROOT/tree_fairseq" \
    --task structural_translation -s in -t out --path "$RUN/checkpoints/average.pt" --gen-subset test --beam "$BEAM" \
    --max-len-a 0 --max-len-b 400 --batch-size 64 --required-batch-size-multiple 1 --results-path "$OUTPUT" --grammar "$GRAMMAR"
step "$OUTPUT/score.json" tree-fairseq score code --run "$OUTPUT" --references "$TEXT" --target-lang out \
    --notation python --training "$TEXT/train.out" --checkpoint "$RUN/checkpoints/average.pt" \
    --describe recipe=hearthstone arch="$ARCH" copy_source="$COPY_SOURCE" seed="$SEED" --result "$OUT/result.json"
