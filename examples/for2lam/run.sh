#!/usr/bin/env bash
# FOR to LAMBDA, tree to tree: Shiv & Quirk's translator of programs (NeurIPS 2019, Figure 5; ICLR submission, Table 1)
#
# examples/for2lam/run.sh --out DIR [options] [-- flags of fairseq-train]
#
#   --out DIR         everything that is written; result.json has the scores
#   --data DIR        published programs; where it is not given, programs are generated
#   --setting S       SYN-S, short programs; SYN-L, long ones; SMALL, few short ones for a first look; with --data, also
#                     rebuild: validation_For.json and test_For.json of Drissi et al. (2018) validate and test
#   --arch A          tree_positional_transformer_program_translation, or a baseline on the same folder:
#                     tree_to_tree_lstm_program_translation, transformer_program_translation,
#                     transformer_distance_bias_program_translation, lstm
#   --traversal T     dfs, or bfs: trees are written level by level
#   --binarization B  lcrs, binary trees, or none
#   --query-position Y yes: the decoder knows the place of the next symbol, which SMALL has where it is not given; no
#   --seed N          of training: 1
#   --beam N          beams of the search: 5
#   --search TASK      structural_translation: trees alone from a stock model, too
#   --subset N        train on N programs
#   --longer N        also test N programs of SYN-L, which are longer than those of training
#   --workers N       processes that prepare the data: all cores
#   --toy             tiny sizes, in OUT/toy
#   --dry-run         print the commands, run none
: "${ARCH:=tree_positional_transformer_program_translation}" "${SETTING:=SYN-S}" "${TRAVERSAL:=dfs}" "${BINARIZATION:=lcrs}"
: "${SEED:=1}" "${BEAM:=5}" "${SEARCH:=}" "${SUBSET:=}" "${LONGER:=}" "${QUERY_POSITION:=}" "${DATA:=}"
. "$(dirname "$0")/../lib/recipe.sh"; recipe "$@"

SIZES=() QUERY=$QUERY_POSITION BATCH=128 LENGTH=(--max-epoch 20) AVERAGE=5 TRAIN=${SUBSET:-100000} TEST=10000
case "$SETTING" in
    SYN-S | SYN-L) GRAMMAR=$SETTING ;;
    rebuild) GRAMMAR=rebuild ;;
    SMALL) GRAMMAR=SYN-S TRAIN=${SUBSET:-5000} TEST=500 BATCH=64 LENGTH=(--max-epoch 10 --warmup-updates 200) AVERAGE=2
        QUERY=${QUERY_POSITION:-${OURS:+yes}}
        SIZES=(--encoder-layers 2 --encoder-embed-dim 128 --encoder-ffn-embed-dim 256 --encoder-attention-heads 4
            --decoder-layers 2 --decoder-embed-dim 128 --decoder-ffn-embed-dim 256 --decoder-attention-heads 4) ;;
    *) die "--setting $SETTING: give SYN-S, SYN-L, SMALL or rebuild" ;;
esac
# 4+4 layers, d = 256 and positions of 2048 come with the architectures; ffn 512, and 1024 with the stock transformer.
case "$ARCH" in
    tree_positional_transformer*) TASK=structural_translation
        MODEL=(--dropout 0.1 "${SIZES[@]}")
        [[ $QUERY != yes ]] || MODEL+=(--query-position) ;;
    tree_to_tree_lstm*) TASK=structural_translation MODEL=() ;; # sizes and dropout are those of Chen et al. (2018)
    transformer_distance_bias*) TASK=translation MODEL=(--dropout 0.1 --distance-bias linear "${SIZES[@]}") ;;
    transformer*) TASK=translation MODEL=(--dropout 0.1 "${SIZES[@]}") ;;
    lstm*) TASK=translation # fairseq's lstm, as wide as the transformers
        MODEL=(--encoder-embed-dim 256 --encoder-hidden-size 256 --encoder-bidirectional --encoder-layers 1 --dropout 0.2
            --decoder-embed-dim 256 --decoder-hidden-size 256 --decoder-out-embed-dim 256 --decoder-layers 1) ;;
    *) die "--arch $ARCH: --help lists the architectures" ;;
esac
[[ ${SEARCH:-$TASK} == translation ]] && SYMBOLS=--symbols || SYMBOLS='' # stock models read and write the symbols of trees

WORK=$OUT/$SETTING
TEXT=$WORK/text$(named SUBSET)
BIN=$WORK/data-bin$(named SUBSET LONGER TRAVERSAL BINARIZATION)
RUN=$WORK/runs/$ARCH$(named SUBSET LONGER TRAVERSAL BINARIZATION QUERY_POSITION)-seed$SEED$FLAGS_NAME
OUTPUT=$RUN$(named SEARCH BEAM)

if [[ -e $DATA/preprocessed_progs_train.json ]]; then # the programs of Chen et al. (2018)
    step "$TEXT" python -m preprocess.tree2tree --data "$DATA" --output "$TEXT" --source for --target lam \
        ${SUBSET:+--subset "$SUBSET"} ${TOY:+--limit 120}
else
    step "$TEXT" python -m preprocess.programs for2lam --setting "$GRAMMAR" --train "$((TOY ? 120 : TRAIN))" \
        --valid "$((TOY ? 15 : TEST))" --test "$((TOY ? 15 : TEST))" --workers "$WORKERS" --output "$TEXT" ${DATA:+--data "$DATA"}
fi
if [[ $LONGER ]]; then
    step "$TEXT/test1.lam" python -m preprocess.programs for2lam --setting SYN-L --train 0 --valid 0 --test "$LONGER" \
        --test-as test1 --output "$TEXT"
fi

step "$BIN" fairseq-preprocess --user-dir "$ROOT/tree_fairseq" --task structural_translation -s for -t lam \
    --trainpref "$TEXT/train" --validpref "$TEXT/valid" --testpref "$TEXT/test${LONGER:+,$TEXT/test1}" --destdir "$BIN" \
    --source-modality tree --source-notation bracket --target-modality tree --target-notation bracket \
    --traversal "$TRAVERSAL" --binarization "$BINARIZATION" --workers "$WORKERS"

# Adam, clipping and 128 programs in a batch are the paper's. The rate, its schedule and label smoothing
# are not in the paper and are ours.
step "$RUN/checkpoints/checkpoint_last.pt" fairseq-train "$BIN" --user-dir "$ROOT/tree_fairseq" --task "$TASK" \
    -s for -t lam --arch "$ARCH" "${MODEL[@]}" \
    --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 10 --lr 1e-3 --lr-scheduler inverse_sqrt --warmup-updates 500 \
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1 \
    --batch-size "$((BATCH / GPUS))" --required-batch-size-multiple 1 "${LENGTH[@]}" --seed "$SEED" \
    --keep-last-epochs "$AVERAGE" --save-dir "$RUN/checkpoints" \
    --no-progress-bar --log-interval 100 --log-file "$RUN/train.log" "${TOY_FLAGS[@]}" "${TRAIN_FLAGS[@]}"
step "$RUN/checkpoints/average.pt" tree-fairseq average "$RUN/checkpoints" --last-epochs "$((TOY ? 2 : AVERAGE))" \
    --output "$RUN/checkpoints/average.pt"

for set in test ${LONGER:+test1}; do
    step "$OUTPUT/generate-$set.txt" fairseq-generate "$BIN" --user-dir "$ROOT/tree_fairseq" --task "${SEARCH:-$TASK}" -s for -t lam \
        --path "$RUN/checkpoints/average.pt" --gen-subset "$set" --beam "$BEAM" --max-len-b 500 \
        --batch-size 64 --required-batch-size-multiple 1 --results-path "$OUTPUT"
done
# Whole programs
step "$OUTPUT/score.json" tree-fairseq score structural --run "$OUTPUT" --references "$TEXT" --target-lang lam \
    --data "$BIN" $SYMBOLS --sets test= ${LONGER:+test1=longer --length-bounds 10 20 30 40 50 60 70 80 100} \
    ${LONGER:+--depth-bounds 4 5 6 7 8 9 10 12 15 20} --primary accuracy --checkpoint "$RUN/checkpoints/average.pt" \
    --describe recipe=for2lam setting="$SETTING" arch="$ARCH" seed="$SEED" --result "$OUT/result.json"
