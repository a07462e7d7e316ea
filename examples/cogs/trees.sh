#!/usr/bin/env bash
# COGS: sentences to trees, with tree positions and a search that returns trees only (Shiv & Quirk 2019)
#
# examples/cogs/trees.sh --data DIR --out DIR [options] [-- flags of fairseq-train]
#
#   --data DIR                  {train,dev,test,gen}.tsv with variable-free forms; an empty folder is filled
#   --out DIR                   everything that is written; result.json has the scores
#   --arch A                    tree_positional_transformer_semantic_parsing, or a baseline: transformer_semantic_parsing,
#                               transformer_distance_bias_semantic_parsing, treeformer_cogs
#   --text T                    what baselines see of a tree: symbols, or raw, its line
#   --parser P                  stanza, right-branching, balanced or random: the model reads the parse of the sentence
#   --sequence-positions Y      yes: symbols have the positions of a transformer without trees, too; no
#   --substitute N              train on N further pairs: phrases and words in other places, where Stanza parses sentences
#   --generalization-sample N   score N lines of the generalization set, evenly from its categories: 2100; all: 21,000
#   --seed N                    of training: 1
#   --beam N                    beams of the search: 1, as a beam makes the outputs of stock models worse
#   --search TASK      structural_translation: trees alone from a stock model, too
#   --subset N                  train on N pairs
#   --parser-flags F            more flags of the parser, such as '--parser-dir DIR'
#   --workers N                 processes of fairseq-preprocess: all cores
#   --toy                       made-up data and tiny sizes, in OUT/toy
#   --dry-run                   print the commands, run none
: "${ARCH:=tree_positional_transformer_semantic_parsing}" "${TEXT:=symbols}" "${PARSER:=}" "${SEQUENCE_POSITIONS:=yes}"
: "${SUBSTITUTE:=}" "${GENERALIZATION_SAMPLE:=2100}" "${SEED:=1}" "${BEAM:=1}" "${SEARCH:=}" "${SUBSET:=}" "${PARSER_FLAGS:=}"
. "$(dirname "$0")/../lib/recipe.sh"; recipe "$@"

# 2+2 layers, d = 256, ffn 512, 4 heads, for all
SIZES=(--encoder-layers 2 --encoder-embed-dim 256 --encoder-ffn-embed-dim 512 --encoder-attention-heads 4
    --decoder-layers 2 --decoder-embed-dim 256 --decoder-ffn-embed-dim 512 --decoder-attention-heads 4)
# Positions in trees are narrow, because wide ones learn too fast: 32 levels of 3 branches, two copies each, or one copy of
# 12 branches where parses are read. The decoder knows the place of the next symbol.
POSITIONS=(--tree-position-dim "$([[ $PARSER ]] && echo 384 || echo 256)" ${OURS:+--query-position})
[[ ! $OURS || $SEQUENCE_POSITIONS == no ]] || POSITIONS+=(--sequence-positions)
case "$ARCH" in
    tree_positional_transformer*) TASK=structural_translation
        MODEL=(--dropout 0.1 --share-all-embeddings "${SIZES[@]}" ${OURS:+--factored-symbols} "${POSITIONS[@]}") ;;
    transformer_distance_bias*) TASK=translation MODEL=(--dropout 0.1 --share-all-embeddings "${SIZES[@]}" --distance-bias linear) ;;
    transformer* | treeformer*) TASK=translation MODEL=(--dropout 0.1 --share-all-embeddings "${SIZES[@]}") ;;
    *) die "--arch $ARCH: --help lists the architectures" ;;
esac
# A verb or noun may have arguments that it never has in training, so symbols are labels and arities.
READ=(--task structural_translation --target-modality tree --target-notation variable-free --all-arities
    --traversal dfs --binarization none)
[[ ! $PARSER ]] || READ+=(--source-modality constituency --tree-parser "$PARSER" --tree-lang en
    --parse-cache "$OUT/parse-cache" $PARSER_FLAGS)
case "$TASK-$TEXT" in
    structural_translation-symbols) SCORED=() ;;
    translation-symbols) SCORED=(); [[ $SEARCH ]] || SCORED=(--symbols) ;;
    translation-raw) READ=(--task translation) SCORED=(--notation variable-free) ;;
    *) die "--text $TEXT: give symbols, or for baselines raw" ;;
esac
# test1 is the whole generalization set, test2 a sample of it.
SAMPLE=$GENERALIZATION_SAMPLE GENERALIZATION=test2
if [[ $SAMPLE == all ]]; then SAMPLE=2100 GENERALIZATION=test1; fi
[[ ! $TOY ]] || SAMPLE=5

WORK=$OUT/trees
WORDS=$WORK/text$(named SUBSET GENERALIZATION_SAMPLE)
NAME=$(named SUBSET GENERALIZATION_SAMPLE SUBSTITUTE PARSER TEXT)
BIN=$WORK/data-bin$NAME
RUN=$WORK/runs/$ARCH$NAME$(named SEQUENCE_POSITIONS)-seed$SEED$FLAGS_NAME
OUTPUT=$RUN$(named SEARCH BEAM)

fill_data cogs cogs_variable_free
TRAIN=train
step "$WORDS" python -m preprocess.semantic_parsing cogs --data "$DATA" --output "$WORDS" --source nl --target lf \
    --generalization-sample "$SAMPLE" ${SUBSET:+--subset "$SUBSET"} ${TOY:+--limit 120}
if [[ $SUBSTITUTE ]]; then # subtree substitution (Yang et al. 2022), from the training set alone
    step "$WORDS/train.trees" tree-fairseq parse "$WORDS/train.nl" "$WORDS/train.trees" --tree-lang en \
        --parse-cache "$OUT/parse-cache" $PARSER_FLAGS --workers "$WORKERS"
    step "$WORDS/more.lf" python -m preprocess.subtree_substitution --text "$WORDS" --source nl --target lf \
        --notation variable-free --parses "$WORDS/train.trees" --count "$SUBSTITUTE" --longest 60 --output "$WORDS/more"
    TRAIN="more"
fi
step "$BIN" fairseq-preprocess --user-dir "$ROOT/tree_fairseq" "${READ[@]}" -s nl -t lf \
    --trainpref "$WORDS/$TRAIN" --validpref "$WORDS/valid" --testpref "$WORDS/test,$WORDS/test1,$WORDS/test2" \
    --joined-dictionary --destdir "$BIN" --workers "$WORKERS"

# Nothing stops early, and nothing smooths labels. An epoch has 378 updates.
step "$RUN/checkpoints/checkpoint_last.pt" fairseq-train "$BIN" --user-dir "$ROOT/tree_fairseq" --task "$TASK" -s nl -t lf \
    --arch "$ARCH" "${MODEL[@]}" \
    --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 1 --lr 3e-4 --lr-scheduler inverse_sqrt --warmup-updates 2000 \
    --criterion cross_entropy --batch-size "$((64 / GPUS))" --required-batch-size-multiple 1 --max-update 30000 \
    --seed "$SEED" --keep-last-epochs 1 --save-dir "$RUN/checkpoints" \
    --no-progress-bar --log-interval 100 --log-file "$RUN/train.log" "${TOY_FLAGS[@]}" "${TRAIN_FLAGS[@]}"

# From the last checkpoint: an average over far epochs makes it worse.
for set in test "$GENERALIZATION"; do
    step "$OUTPUT/generate-$set.txt" fairseq-generate "$BIN" --user-dir "$ROOT/tree_fairseq" --task "${SEARCH:-$TASK}" \
        -s nl -t lf --path "$RUN/checkpoints/checkpoint_last.pt" --gen-subset "$set" --beam "$BEAM" --max-len-b 200 \
        --batch-size 64 --required-batch-size-multiple 1 --results-path "$OUTPUT"
done
# Whole trees, by category
[[ $TEXT == raw ]] || SCORED+=(--data "$BIN")
step "$OUTPUT/score.json" tree-fairseq score structural --run "$OUTPUT" --references "$WORDS" --target-lang lf "${SCORED[@]}" \
    --sets test= "$GENERALIZATION=generalization" --primary accuracy_generalization \
    --checkpoint "$RUN/checkpoints/checkpoint_last.pt" \
    --describe recipe=cogs arch="$ARCH" seed="$SEED" setting=trees --result "$OUT/result.json"
