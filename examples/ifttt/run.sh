#!/usr/bin/env bash
# IFTTT: descriptions of if-this-then-that recipes to programs, Shiv & Quirk's semantic parser (ICLR submission, Table 3)
#
# examples/ifttt/run.sh --data DIR --out DIR [options] [-- flags of fairseq-train]
#
#   --data DIR        the data set of Quirk et al. (2015), see README.md
#   --out DIR         everything that is written; result.json has the scores
#   --arch A          tree_positional_transformer_semantic_parsing, or a baseline on the same folder:
#                     transformer_semantic_parsing, transformer_distance_bias_semantic_parsing, lstm
#   --traversal T     dfs, or bfs: trees are written level by level
#   --binarization B  lcrs, binary trees, or none
#   --seed N          of training: 1
#   --beam N          beams of the search: 5
#   --search TASK      structural_translation: trees alone from a stock model, too
#   --subset N        train on N pairs
#   --workers N       processes that prepare the data: all cores
#   --toy             made-up data and tiny sizes, in OUT/toy
#   --dry-run         print the commands, run none
: "${ARCH:=tree_positional_transformer_semantic_parsing}" "${TRAVERSAL:=dfs}" "${BINARIZATION:=lcrs}" "${SEED:=1}"
: "${BEAM:=5}" "${SEARCH:=}"
: "${SUBSET:=}"
. "$(dirname "$0")/../lib/recipe.sh"; recipe "$@"

# 4+4 layers, d = 256, ffn 1024 and positions of 2048 come with the architectures.
case "$ARCH" in
    tree_positional_transformer*) TASK=structural_translation MODEL=(--dropout 0.1) ;;
    transformer_distance_bias*) TASK=translation MODEL=(--dropout 0.1 --distance-bias linear) ;;
    transformer*) TASK=translation MODEL=(--dropout 0.1) ;;
    lstm*) TASK=translation # fairseq's lstm, as wide as the transformers
        MODEL=(--encoder-embed-dim 256 --encoder-hidden-size 256 --encoder-bidirectional --encoder-layers 1 --dropout 0.2
            --decoder-embed-dim 256 --decoder-hidden-size 256 --decoder-out-embed-dim 256 --decoder-layers 1) ;;
    *) die "--arch $ARCH: --help lists the architectures" ;;
esac
[[ ${SEARCH:-$TASK} == translation ]] && SYMBOLS=--symbols || SYMBOLS='' # stock models write the symbols of trees

TEXT=$OUT/text$(named SUBSET)
BIN=$OUT/data-bin$(named SUBSET TRAVERSAL BINARIZATION)
RUN=$OUT/runs/$ARCH$(named SUBSET TRAVERSAL BINARIZATION)-seed$SEED$FLAGS_NAME
OUTPUT=$RUN$(named SEARCH BEAM)

fill_data ifttt
step "$TEXT" python -m preprocess.semantic_parsing ifttt --data "$DATA" --output "$TEXT" --source nl --target lf \
    ${SUBSET:+--subset "$SUBSET"} ${TOY:+--limit 120}

# Tokens seen fewer than 5 times are unknown on both sides, as in the paper.
step "$BIN" fairseq-preprocess --user-dir "$ROOT/tree_fairseq" --task structural_translation -s nl -t lf \
    --trainpref "$TEXT/train" --validpref "$TEXT/valid" --testpref "$TEXT/test" --destdir "$BIN" \
    --target-modality tree --target-notation bracket --traversal "$TRAVERSAL" --binarization "$BINARIZATION" \
    --thresholdsrc "$((TOY ? 0 : 5))" --thresholdtgt "$((TOY ? 0 : 5))" --workers "$WORKERS"

# Adam, clipping and 128 examples in a batch are the paper's. The rate, its schedule and label smoothing are not in the paper
# and are ours. An epoch has about 600 updates.
step "$RUN/checkpoints/checkpoint_last.pt" fairseq-train "$BIN" --user-dir "$ROOT/tree_fairseq" --task "$TASK" -s nl -t lf \
    --arch "$ARCH" "${MODEL[@]}" \
    --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 10 --lr 1e-3 --lr-scheduler inverse_sqrt --warmup-updates 500 \
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1 \
    --batch-size "$((128 / GPUS))" --required-batch-size-multiple 1 --max-epoch 20 --seed "$SEED" \
    --keep-last-epochs 5 --save-dir "$RUN/checkpoints" --no-progress-bar --log-interval 100 --log-file "$RUN/train.log" \
    "${TOY_FLAGS[@]}" "${TRAIN_FLAGS[@]}"
step "$RUN/checkpoints/average.pt" tree-fairseq average "$RUN/checkpoints" --last-epochs "$((TOY ? 2 : 5))" \
    --output "$RUN/checkpoints/average.pt"

step "$OUTPUT/generate-test.txt" fairseq-generate "$BIN" --user-dir "$ROOT/tree_fairseq" --task "${SEARCH:-$TASK}" -s nl -t lf \
    --path "$RUN/checkpoints/average.pt" --gen-subset test --beam "$BEAM" --max-len-b 200 \
    --batch-size 64 --required-batch-size-multiple 1 --results-path "$OUTPUT"
# Channels, channels and functions, and F1 of productions
step "$OUTPUT/score.json" python -m examples.ifttt.scores --run "$OUTPUT" --references "$TEXT" --target-lang lf --data "$BIN" \
    $SYMBOLS --sets test= --primary channel_accuracy \
    --checkpoint "$RUN/checkpoints/average.pt" \
    --describe recipe=ifttt arch="$ARCH" seed="$SEED" --result "$OUT/result.json"
