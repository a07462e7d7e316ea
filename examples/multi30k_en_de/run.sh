#!/usr/bin/env bash
# Multi30k English-German with trees: Tree-Transformer, Treeformer and transformer of a size for two CPU cores.
#
#   examples/multi30k_en_de/run.sh --data DIR --out DIR [options] [-- flags of fairseq-train]
#
#   --data DIR        the data set, see README.md
#   --out DIR         everything that is written, result.json among it
#   --arch A          tree_transformer where not given; baselines on the same folder are transformer,
#                     transformer_distance_bias, treeformer, fconv_iwslt_de_en and lightconv_iwslt_de_en
#   --setting small   2+2 layers, d = 128, on 12,000 pairs where --subset gives no other number
#   --subset N        train on N pairs
#   --up-to N         train on pairs whose sources have at most N words; the other splits stay whole
#   --average N       translate with the average of the last N epochs: 8 where not given, with --setting small 1
#   --seed N          of training, 1 where not given
#   --parser P        stanza where not given; right-branching, balanced or random trees are controls
#   --parser-dir DIR  folder of Stanza's model, where it is not to be downloaded
#   --tree-noise P    a share of the constituents, from 0 to 1, is attached elsewhere at random
#   --workers N       processes for parsing, all cores where not given
#   --toy             tiny sizes and made-up data, to see that everything runs
#   --dry-run         print the commands, run none
: "${ARCH:=tree_transformer}" "${SEED:=1}" "${SETTING:=full}" "${SUBSET:=}" "${UP_TO:=}" "${AVERAGE:=}"
: "${PARSER:=stanza}" "${PARSER_DIR:=}" "${TREE_NOISE:=}"
. "$(dirname "$0")/../lib/recipe.sh"; recipe "$@"
fill_data multi30k
[[ ! $TOY ]] || PARSER=right-branching
PART=$(named SETTING SUBSET UP_TO) TREES=$(named PARSER TREE_NOISE)
WORDS=$OUT/words$PART BPE=$OUT/bpe$PART DATA_BIN=$OUT/data-bin$PART$TREES
RUN=$OUT/runs/$ARCH$PART$TREES$(named AVERAGE)-seed$SEED$FLAGS_NAME

case $SETTING in
    full) # 3+3 layers, 16 epochs
        MODEL=(--encoder-layers 3 --decoder-layers 3 --encoder-embed-dim 256 --decoder-embed-dim 256
            --encoder-ffn-embed-dim 512 --decoder-ffn-embed-dim 512 --encoder-attention-heads 4
            --decoder-attention-heads 4 --share-all-embeddings --dropout 0.3)
        OPTIMIZER=(--optimizer adam --adam-betas '(0.9, 0.98)'
            --lr 1e-3 --lr-scheduler inverse_sqrt --warmup-updates 1000)
        BATCH=(--max-tokens $((4096 / GPUS)) --max-epoch 16)
        AVERAGE=${AVERAGE:-8} GENERATE=() ;;
    small) # after so few updates a model may repeat a phrase to the end
        MODEL=(--encoder-layers 2 --decoder-layers 2 --encoder-embed-dim 128 --decoder-embed-dim 128
            --encoder-ffn-embed-dim 256 --decoder-ffn-embed-dim 256 --encoder-attention-heads 4
            --decoder-attention-heads 4 --share-all-embeddings --dropout 0.1)
        OPTIMIZER=(--optimizer adam --adam-betas '(0.9, 0.98)'
            --lr 2e-3 --lr-scheduler inverse_sqrt --warmup-updates 300)
        BATCH=(--max-tokens $((1024 / GPUS)) --max-update 900)
        SUBSET=${SUBSET:-12000} AVERAGE=${AVERAGE:-1} GENERATE=(--max-len-a 1.5 --max-len-b 10) ;;
    *) die "--setting $SETTING: give full or small" ;;
esac
case $ARCH in
    transformer_distance_bias*) MODEL+=(--distance-bias linear) ;;
    fconv*) # Gehring et al. (2017)
        MODEL=(--dropout 0.2)
        OPTIMIZER=(--optimizer nag --momentum 0.99 --lr 0.25 --clip-norm 0.1
            --lr-scheduler reduce_lr_on_plateau --lr-shrink 0.1) ;;
    lightconv*) # Wu et al. (2019)
        MODEL=(--encoder-conv-type dynamic --decoder-conv-type dynamic --encoder-glu 0 --decoder-glu 0
            --dropout 0.3 --attention-dropout 0.1 --weight-dropout 0.1) ;;
esac

# The files are tokenised and in lower case; the test sets of 2016 and 2017 become test and test1
step "$WORDS" python -m preprocess.prepare multi30k --data "$DATA" --source en --target de --output "$WORDS" \
    --workers "$WORKERS" ${UP_TO:+--up-to "$UP_TO"} ${SUBSET:+--subset "$SUBSET"} ${TOY:+--limit 120}
step "$BPE/codes" subword-nmt learn-joint-bpe-and-vocab --input "$WORDS/train.en" "$WORDS/train.de" -s 6000 \
    -o "$BPE/codes" --write-vocabulary "$BPE/vocab.en" "$BPE/vocab.de"
step "$DATA_BIN" fairseq-preprocess --user-dir "$ROOT/tree_fairseq" --task tree_translation -s en -t de \
    --trainpref "$WORDS/train" --validpref "$WORDS/valid" --testpref "$WORDS/test,$WORDS/test1" --destdir "$DATA_BIN" \
    --joined-dictionary --bpe-codes "$BPE/codes" --workers "$WORKERS" --parse-cache "$OUT/parse-cache" \
    --tree-parser "${TREE_NOISE:+preprocess.degraded:}$PARSER${TREE_NOISE:+-$TREE_NOISE}" --tree-lang en \
    ${PARSER_DIR:+--parser-dir "$PARSER_DIR"}

step "$RUN/checkpoints/checkpoint_last.pt" fairseq-train "$DATA_BIN" --user-dir "$ROOT/tree_fairseq" \
    --task tree_translation \
    -s en -t de --arch "$ARCH" "${MODEL[@]}" --criterion label_smoothed_cross_entropy --label-smoothing 0.1 \
    "${OPTIMIZER[@]}" "${BATCH[@]}" --update-freq 1 --seed "$SEED" --save-dir "$RUN/checkpoints" \
    --keep-last-epochs "$AVERAGE" --no-progress-bar --log-interval 100 --log-file "$RUN/train.log" \
    "${TOY_FLAGS[@]}" "${TRAIN_FLAGS[@]}"
step "$RUN/checkpoints/average.pt" tree-fairseq average "$RUN/checkpoints" --last-epochs "$AVERAGE" \
    --output "$RUN/checkpoints/average.pt"

for split in test test1; do
    step "$RUN/generate-$split.txt" fairseq-generate "$DATA_BIN" --user-dir "$ROOT/tree_fairseq" \
        --task tree_translation -s en -t de --path "$RUN/checkpoints/average.pt" --gen-subset "$split" \
        --beam 5 --lenpen 1 "${GENERATE[@]}" --max-tokens 4096 --required-batch-size-multiple 1 --remove-bpe \
        --results-path "$RUN"
done
DEPTHS=()
[[ $SETTING$PARSER != smallstanza ]] || DEPTHS=(--source-trees "$DATA_BIN" --depth-bounds 6 7 8 10)
step "$RUN/score.json" tree-fairseq score bleu --run "$RUN" --words "$WORDS" --source-lang en --target-lang de \
    --sets test=2016 test1=2017 --lowercase --primary sacrebleu_2016 --length-bounds 9 11 13 16 \
    --checkpoint "$RUN/checkpoints/average.pt" "${DEPTHS[@]}" \
    --describe recipe=multi30k_en_de arch="$ARCH" parser="$PARSER" seed="$SEED" --result "$OUT/result.json"
