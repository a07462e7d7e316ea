#!/usr/bin/env bash
# Active sentences and logical forms, tree to tree: the data of Soulos et al. (2023), Shiv & Quirk's model
#
# examples/active_logical/run.sh --data DIR --out DIR [options] [-- flags of fairseq-train]
#
#   --data DIR        {train,validation,test,ood_new}.json, see README.md
#   --out DIR         everything that is written; result.json has the scores
#   --setting S       both, or one direction: logical-active or active-logical
#   --arch A          tree_positional_transformer_program_translation, or a baseline on the same folder:
#                     tree_to_tree_lstm_program_translation, transformer_program_translation,
#                     transformer_distance_bias_program_translation, lstm
#   --traversal T     dfs, or bfs: trees are written level by level
#   --binarization B  lcrs, binary trees, or none
#   --seed N          of training: 1
#   --beam N          beams of the search: 5
#   --search TASK      structural_translation: trees alone from a stock model, too
#   --subset N        train on N pairs
#   --deeper N        also test N pairs whose nouns have one to six further adjectives, and so are deeper than in training
#   --workers N       processes of fairseq-preprocess: all cores
#   --toy             made-up data and tiny sizes, in OUT/toy
#   --dry-run         print the commands, run none
: "${ARCH:=tree_positional_transformer_program_translation}" "${SETTING:=both}" "${TRAVERSAL:=dfs}" "${BINARIZATION:=lcrs}"
: "${SEED:=1}" "${BEAM:=5}" "${SEARCH:=}" "${SUBSET:=}" "${DEEPER:=}"
. "$(dirname "$0")/../lib/recipe.sh"; recipe "$@"

# 4+4 layers, d = 256 and positions of 2048 come with the architectures; ffn 512, and 1024 with the stock transformer. Both
# sides have the same words.
case "$ARCH" in
    tree_positional_transformer*) TASK=structural_translation MODEL=(--dropout 0.1 --share-all-embeddings) ;;
    tree_to_tree_lstm*) TASK=structural_translation MODEL=() ;; # sizes and dropout are those of Chen et al. (2018)
    transformer_distance_bias*) TASK=translation MODEL=(--dropout 0.1 --share-all-embeddings --distance-bias linear) ;;
    transformer*) TASK=translation MODEL=(--dropout 0.1 --share-all-embeddings) ;;
    lstm*) TASK=translation # fairseq's lstm, as wide as the transformers
        MODEL=(--encoder-embed-dim 256 --encoder-hidden-size 256 --encoder-bidirectional --encoder-layers 1 --dropout 0.2
            --decoder-embed-dim 256 --decoder-hidden-size 256 --decoder-out-embed-dim 256 --decoder-layers 1) ;;
    *) die "--arch $ARCH: --help lists the architectures" ;;
esac
[[ ${SEARCH:-$TASK} == translation ]] && SYMBOLS=--symbols || SYMBOLS='' # stock models read and write the symbols of trees

WORK=$OUT/$SETTING
TEXT=$WORK/text$(named SUBSET DEEPER)
BIN=$WORK/data-bin$(named SUBSET DEEPER TRAVERSAL BINARIZATION)
RUN=$WORK/runs/$ARCH$(named SUBSET DEEPER TRAVERSAL BINARIZATION)-seed$SEED$FLAGS_NAME
OUTPUT=$RUN$(named SEARCH BEAM)

fill_data active_logical
step "$TEXT" python -m preprocess.semantic_parsing active_logical --data "$DATA" --output "$TEXT" \
    --source source --target target --direction "$SETTING" ${DEEPER:+--deeper "$DEEPER"} \
    ${SUBSET:+--subset "$SUBSET"} ${TOY:+--limit 120}

# test1 has words that training does not have, test2 deeper trees.
step "$BIN" fairseq-preprocess --user-dir "$ROOT/tree_fairseq" --task structural_translation -s source -t target \
    --trainpref "$TEXT/train" --validpref "$TEXT/valid" --testpref "$TEXT/test,$TEXT/test1${DEEPER:+,$TEXT/test2}" \
    --source-modality tree --source-notation bracket --target-modality tree --target-notation bracket \
    --traversal "$TRAVERSAL" --binarization "$BINARIZATION" --joined-dictionary --destdir "$BIN" --workers "$WORKERS"

# As for programs: Adam, clipping and 128 examples in a batch are the paper's; the rate, its schedule and label smoothing are
# not in the paper and are ours. An epoch has 79 updates.
step "$RUN/checkpoints/checkpoint_last.pt" fairseq-train "$BIN" --user-dir "$ROOT/tree_fairseq" --task "$TASK" \
    -s source -t target --arch "$ARCH" "${MODEL[@]}" \
    --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 10 --lr 1e-3 --lr-scheduler inverse_sqrt --warmup-updates 500 \
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1 \
    --batch-size "$((128 / GPUS))" --required-batch-size-multiple 1 --max-epoch 30 --seed "$SEED" \
    --keep-last-epochs 5 --save-dir "$RUN/checkpoints" \
    --no-progress-bar --log-interval 100 --log-file "$RUN/train.log" "${TOY_FLAGS[@]}" "${TRAIN_FLAGS[@]}"
step "$RUN/checkpoints/average.pt" tree-fairseq average "$RUN/checkpoints" --last-epochs "$((TOY ? 2 : 5))" \
    --output "$RUN/checkpoints/average.pt"

for set in test test1 ${DEEPER:+test2}; do
    step "$OUTPUT/generate-$set.txt" fairseq-generate "$BIN" --user-dir "$ROOT/tree_fairseq" --task "${SEARCH:-$TASK}" \
        -s source -t target --path "$RUN/checkpoints/average.pt" --gen-subset "$set" --beam "$BEAM" --max-len-b 150 \
        --batch-size 64 --required-batch-size-multiple 1 --results-path "$OUTPUT"
done
# Whole trees
step "$OUTPUT/score.json" tree-fairseq score structural --run "$OUTPUT" --references "$TEXT" --target-lang target \
    --data "$BIN" $SYMBOLS --sets test= test1=new_words ${DEEPER:+test2=deeper --length-bounds 10 20 30 40 50 60 70 80 100} \
    ${DEEPER:+--depth-bounds 4 5 6 7 8 9 10 12 15 20} --primary accuracy --checkpoint "$RUN/checkpoints/average.pt" \
    --describe recipe=active_logical setting="$SETTING" arch="$ARCH" seed="$SEED" --result "$OUT/result.json"
