#!/usr/bin/env bash
# ATIS: questions about flights to lambda calculus, Shiv & Quirk (NeurIPS 2019), Table 1
#
# examples/atis/run.sh --data DIR --out DIR [options] [-- flags of fairseq-train]
#
#   --data DIR         train.txt, dev.txt and test.txt: question<TAB>logical form; an empty folder is filled
#   --out DIR          everything that is written; result.json has the scores
#   --arch A           tree_positional_transformer_semantic_parsing, or a baseline on the same folder:
#                      transformer_semantic_parsing, transformer_distance_bias_semantic_parsing, lstm
#   --traversal T      dfs, or bfs: trees are written level by level
#   --seed N           of training: 1
#   --beam N           beams of the search: 5
#   --search TASK      structural_translation: trees alone from a stock model, too
#   --score-on S       test, or valid, to compare settings
#   --subset N         train on N pairs
#   --corpus-flags F   more flags of preprocess.semantic_parsing, such as '--recombine 1500 --recombine-by entities,concat2'
#   --generate-flags F more flags of fairseq-generate, such as '--path A.pt:B.pt', an ensemble
#   --workers N        processes of fairseq-preprocess: all cores
#   --toy              made-up data and tiny sizes, in OUT/toy
#   --dry-run          print the commands, run none
: "${ARCH:=tree_positional_transformer_semantic_parsing}" "${TRAVERSAL:=dfs}" "${SEED:=1}" "${BEAM:=5}" "${SEARCH:=}"
: "${SCORE_ON:=test}" "${SUBSET:=}" "${CORPUS_FLAGS:=}" "${GENERATE_FLAGS:=}"
. "$(dirname "$0")/../lib/recipe.sh"; recipe "$@"

[[ $OURS ]] && BINARIZATION=none || BINARIZATION=lcrs
# 4+4 layers, d = 256, ffn 1024 and positions of 2048 come with the architectures. Dropout was chosen on held-out questions
# of GEO (paper: 0.1). The decays of positions start evenly, which is ours.
case "$ARCH" in
    tree_positional_transformer*) TASK=structural_translation
        MODEL=(--dropout 0.3 ${OURS:+--query-position} --share-decoder-input-output-embed) ;;
    transformer_distance_bias*) TASK=translation MODEL=(--dropout 0.3 --share-decoder-input-output-embed --distance-bias linear) ;;
    transformer*) TASK=translation MODEL=(--dropout 0.3 --share-decoder-input-output-embed) ;;
    lstm*) TASK=translation # fairseq's lstm, as wide as the transformers
        MODEL=(--encoder-embed-dim 256 --encoder-hidden-size 256 --encoder-bidirectional --encoder-layers 1 --dropout 0.2
            --decoder-embed-dim 256 --decoder-hidden-size 256 --decoder-out-embed-dim 256 --decoder-layers 1) ;;
    *) die "--arch $ARCH: --help lists the architectures" ;;
esac
[[ ${SEARCH:-$TASK} == translation ]] && SYMBOLS=--symbols || SYMBOLS='' # stock models write the symbols of trees

PAIRS=$(named SUBSET CORPUS_FLAGS)
TEXT=$OUT/text$PAIRS
BIN=$OUT/data-bin$PAIRS$(named TRAVERSAL)${PUBLISHED:+-published}
RUN=$OUT/runs/$ARCH$PAIRS$(named TRAVERSAL)${PUBLISHED:+-published}-seed$SEED$FLAGS_NAME
OUTPUT=$RUN$(named SEARCH BEAM SCORE_ON GENERATE_FLAGS)

fill_data atis atis
# Without test.txt, dev.txt is the test set, and 400 questions of train.txt validate.
step "$TEXT" python -m preprocess.semantic_parsing atis --data "$DATA" --output "$TEXT" --source nl --target lf \
    --valid "$((TOY ? 15 : 400))" ${SUBSET:+--subset "$SUBSET"} $CORPUS_FLAGS ${TOY:+--limit 120}

# Words that occur once are unknown, as in the paper.
step "$BIN" fairseq-preprocess --user-dir "$ROOT/tree_fairseq" --task structural_translation -s nl -t lf \
    --trainpref "$TEXT/train" --validpref "$TEXT/valid" --testpref "$TEXT/test" --destdir "$BIN" \
    --target-modality tree --target-notation bracket --traversal "$TRAVERSAL" --binarization "$BINARIZATION" \
    --thresholdsrc "$((TOY ? 0 : 2))" --workers "$WORKERS"

# Adam and clipping are the paper's, which has 128 examples in a batch. The rate, its schedule and label smoothing are
# not in the paper and are ours. ATIS has seven times the examples of GEO, so there are fewer epochs.
step "$RUN/checkpoints/checkpoint_last.pt" fairseq-train "$BIN" --user-dir "$ROOT/tree_fairseq" --task "$TASK" -s nl -t lf \
    --arch "$ARCH" "${MODEL[@]}" \
    --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 10 --lr 7e-4 --lr-scheduler inverse_sqrt --warmup-updates 500 \
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1 \
    --batch-size "$((64 / GPUS))" --required-batch-size-multiple 1 --max-epoch 80 --seed "$SEED" \
    --save-interval 2 --validate-interval 2 --keep-last-epochs 10 --save-dir "$RUN/checkpoints" \
    --no-progress-bar --log-interval 100 --log-file "$RUN/train.log" "${TOY_FLAGS[@]}" "${TRAIN_FLAGS[@]}"
step "$RUN/checkpoints/average.pt" tree-fairseq average "$RUN/checkpoints" --last-epochs "$((TOY ? 2 : 10))" \
    --output "$RUN/checkpoints/average.pt"

step "$OUTPUT/generate-$SCORE_ON.txt" fairseq-generate "$BIN" --user-dir "$ROOT/tree_fairseq" --task "${SEARCH:-$TASK}" -s nl -t lf \
    --path "$RUN/checkpoints/average.pt" --gen-subset "$SCORE_ON" --beam "$BEAM" --max-len-b 250 \
    --batch-size 64 --required-batch-size-multiple 1 --results-path "$OUTPUT" $GENERATE_FLAGS
# Whole trees in order, as in the paper; also with the children of `and` and `or` in any order, as in other literature
step "$OUTPUT/score.json" tree-fairseq score structural --run "$OUTPUT" --references "$TEXT" --target-lang lf --data "$BIN" \
    $SYMBOLS --sets "$SCORE_ON=" --primary accuracy --checkpoint "$RUN/checkpoints/average.pt" \
    --describe recipe=atis arch="$ARCH" seed="$SEED" --result "$OUT/result.json"
