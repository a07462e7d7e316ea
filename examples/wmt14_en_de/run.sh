#!/usr/bin/env bash
# WMT'14 English-German with trees, base and big: Nguyen et al. (2020), Table 1 and Figure 5a.
#
#   examples/wmt14_en_de/run.sh --data DIR --out DIR [options] [-- flags of fairseq-train]
#
#   --data DIR        the data set, see README.md; an empty folder is filled by downloads
#   --out DIR         everything that is written, result.json among it
#   --arch A          tree_transformer_wmt_en_de where not given, or tree_transformer_wmt_en_de_big; baselines on the
#                     same folder are transformer_wmt_en_de, transformer_distance_bias_wmt_en_de, fconv_wmt_en_de,
#                     lightconv_wmt_en_de, transformer_wmt_en_de_big and lightconv_wmt_en_de_big
#   --subset N        train on N pairs
#   --seed N          of training, 1 where not given
#   --parser P        stanza where not given; right-branching, balanced or random trees are controls
#   --parser-dir DIR  folder of Stanza's model, where it is not to be downloaded
#   --workers N       processes for preparing and parsing, all cores where not given
#   --toy             tiny sizes and made-up data, to see that everything runs
#   --dry-run         print the commands, run none
: "${ARCH:=tree_transformer_wmt_en_de}" "${SEED:=1}" "${SUBSET:=}" "${PARSER:=stanza}" "${PARSER_DIR:=}"
. "$(dirname "$0")/../lib/recipe.sh"; recipe "$@"
fill_data wmt14 wmt14_en_de
[[ ! $TOY ]] || PARSER=right-branching
WORDS=$OUT/words$(named SUBSET) BPE=$OUT/bpe$(named SUBSET) DATA_BIN=$OUT/data-bin$(named SUBSET PARSER)
RUN=$OUT/runs/$ARCH$(named SUBSET PARSER)-seed$SEED$FLAGS_NAME

# Base has 200K updates of 32K tokens, big 20K of 512K, on up to eight GPUs. The rest is as in Ott et al. (2018), whose
# setting the paper follows: a larger learning rate and more dropout for the large batches of the big model.
case $ARCH in
    *big*) RATE=1e-3 DROPOUT=0.3 GATES=1 UPDATES=20000 UPDATE_FREQ=$((128 / GPUS)) ;;
    *) RATE=7e-4 DROPOUT=0.1 GATES=0 UPDATES=200000 UPDATE_FREQ=$((8 / GPUS)) ;;
esac
MODEL=(--share-all-embeddings --dropout "$DROPOUT")
OPTIMIZER=(--optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 0 --weight-decay 0
    --lr "$RATE" --lr-scheduler inverse_sqrt --warmup-updates 4000 --warmup-init-lr 1e-7 --stop-min-lr 1e-9)
case $ARCH in
    transformer_distance_bias*) MODEL+=(--distance-bias linear) ;;
    fconv*) # Gehring et al. (2017)
        MODEL=(--dropout 0.2)
        OPTIMIZER=(--optimizer nag --momentum 0.99 --lr 0.25 --clip-norm 0.1
            --lr-scheduler reduce_lr_on_plateau --lr-shrink 0.1) ;;
    lightconv*) # Wu et al. (2019): dynamic convolutions, with gated linear units in the big model alone
        MODEL=(--encoder-conv-type dynamic --decoder-conv-type dynamic --encoder-glu "$GATES" --decoder-glu "$GATES"
            --dropout 0.3 --attention-dropout 0.1 --weight-dropout 0.1 --share-all-embeddings) ;;
esac

# Normalised punctuation, Moses tokens with their case, joint byte pairs
step "$WORDS" python -m preprocess.prepare wmt14 --data "$DATA" --source en --target de --output "$WORDS" \
    --workers "$WORKERS" ${SUBSET:+--subset "$SUBSET"} ${TOY:+--limit 120}
step "$BPE/codes" subword-nmt learn-joint-bpe-and-vocab --input "$WORDS/train.en" "$WORDS/train.de" -s 32000 \
    -o "$BPE/codes" --write-vocabulary "$BPE/vocab.en" "$BPE/vocab.de"
step "$DATA_BIN" fairseq-preprocess --user-dir "$ROOT/tree_fairseq" --task tree_translation -s en -t de \
    --trainpref "$WORDS/train" --validpref "$WORDS/valid" --testpref "$WORDS/test" --destdir "$DATA_BIN" \
    --joined-dictionary --bpe-codes "$BPE/codes" --workers "$WORKERS" --parse-cache "$OUT/parse-cache" \
    --tree-parser "$PARSER" --tree-lang en ${PARSER_DIR:+--parser-dir "$PARSER_DIR"}

step "$RUN/checkpoints/checkpoint_last.pt" fairseq-train "$DATA_BIN" --user-dir "$ROOT/tree_fairseq" \
    --task tree_translation \
    -s en -t de --arch "$ARCH" "${MODEL[@]}" --criterion label_smoothed_cross_entropy --label-smoothing 0.1 \
    "${OPTIMIZER[@]}" --max-tokens 4096 --update-freq "$UPDATE_FREQ" --max-update "$UPDATES" --seed "$SEED" \
    --save-dir "$RUN/checkpoints" --keep-last-epochs 10 --no-progress-bar --log-interval 100 \
    --log-file "$RUN/train.log" "${TOY_FLAGS[@]}" "${TRAIN_FLAGS[@]}"
step "$RUN/checkpoints/average.pt" tree-fairseq average "$RUN/checkpoints" --last-epochs 10 \
    --output "$RUN/checkpoints/average.pt"

step "$RUN/generate-test.txt" fairseq-generate "$DATA_BIN" --user-dir "$ROOT/tree_fairseq" --task tree_translation \
    -s en -t de --path "$RUN/checkpoints/average.pt" --gen-subset test --beam 4 --lenpen 0.6 \
    --max-tokens 4096 --required-batch-size-multiple 1 --remove-bpe --results-path "$RUN"
# The paper follows work that reports BLEU on tokens with compounds split
step "$RUN/score.json" tree-fairseq score bleu --run "$RUN" --words "$WORDS" --source-lang en --target-lang de \
    --compound-split --primary compound_split_bleu --length-bounds 10 20 30 40 50 \
    --checkpoint "$RUN/checkpoints/average.pt" \
    --describe recipe=wmt14_en_de arch="$ARCH" parser="$PARSER" seed="$SEED" --result "$OUT/result.json"
