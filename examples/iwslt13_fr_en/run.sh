#!/usr/bin/env bash
# IWSLT'13 French-English with trees: Nguyen et al. (2020), Table 1.
#
#   examples/iwslt13_fr_en/run.sh --data DIR --out DIR [options] [-- flags of fairseq-train]
#
#   --data DIR        the data set, see README.md; an empty folder is filled by a download
#   --out DIR         everything that is written, result.json among it
#   --trees DIR       {train,valid,test}.fr: trees of the lines of OUT/words, see README.md
#   --arch A          tree_transformer_iwslt_de_en where not given; baselines on the same folder are
#                     transformer_iwslt_de_en, transformer_distance_bias_iwslt_de_en, fconv_iwslt_de_en and
#                     lightconv_iwslt_de_en
#   --seed N          of training, 1 where not given
#   --workers N       processes for preparing and parsing, all cores where not given
#   --toy             tiny sizes and made-up data, to see that everything runs
#   --dry-run         print the commands, run none
: "${ARCH:=tree_transformer_iwslt_de_en}" "${SEED:=1}" "${TREES:=}"
. "$(dirname "$0")/../lib/recipe.sh"; recipe "$@"
fill_data iwslt13 iwslt13_en_fr
WORDS=$OUT/words BPE=$OUT/bpe DATA_BIN=$OUT/data-bin RUN=$OUT/runs/$ARCH-seed$SEED$FLAGS_NAME

# 60K updates of 4K tokens, and sizes that come with the architecture, are the paper's. What it leaves open is as in the
# authors' released commands: dropout of attention, weight decay, warm-up, average of ten epochs, beam 5.
MODEL=(--share-all-embeddings --dropout 0.3 --attention-dropout 0.2)
OPTIMIZER=(--optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 0 --weight-decay 1e-4
    --lr 5e-4 --lr-scheduler inverse_sqrt --warmup-updates 4000 --warmup-init-lr 1e-7 --stop-min-lr 1e-9)
case $ARCH in
    transformer_distance_bias*) MODEL+=(--distance-bias linear) ;;
    fconv*) # Gehring et al. (2017)
        MODEL=(--dropout 0.2)
        OPTIMIZER=(--optimizer nag --momentum 0.99 --lr 0.25 --clip-norm 0.1
            --lr-scheduler reduce_lr_on_plateau --lr-shrink 0.1) ;;
    lightconv*) # Wu et al. (2019): dynamic convolutions without gated linear units
        MODEL=(--encoder-conv-type dynamic --decoder-conv-type dynamic --encoder-glu 0 --decoder-glu 0
            --dropout 0.3 --attention-dropout 0.1 --weight-dropout 0.1) ;;
esac

# Moses tokens in lower case, joint byte pairs
step "$WORDS" python -m preprocess.prepare iwslt13 --data "$DATA" --source fr --target en --output "$WORDS" \
    --workers "$WORKERS" ${TOY:+--limit 120}
step "$BPE/codes" subword-nmt learn-joint-bpe-and-vocab --input "$WORDS/train.fr" "$WORDS/train.en" \
    -s 10000 -o "$BPE/codes" --write-vocabulary "$BPE/vocab.fr" "$BPE/vocab.en"

# Stanza has no model for French, so trees over words take the place of the source; fairseq-preprocess splits the words
for split in train valid test; do
    if [[ $TOY ]]; then
        step "$OUT/bracketed/$split.fr" tree-fairseq parse --tree-parser right-branching --tree-lang fr \
            --tree-subwords none "$WORDS/$split.fr" "$OUT/bracketed/$split.fr"
    else
        [[ $DRY_RUN || -f $TREES/$split.fr ]] ||
            die "--trees DIR needs $split.fr, trees of the lines of $WORDS/$split.fr; README.md says how to make them"
        step "$OUT/bracketed/$split.fr" cp "$TREES/$split.fr" "$OUT/bracketed/$split.fr"
    fi
    step "$OUT/bracketed/$split.en" cp "$WORDS/$split.en" "$OUT/bracketed/$split.en"
done
step "$DATA_BIN" fairseq-preprocess --user-dir "$ROOT/tree_fairseq" --task tree_translation -s fr -t en \
    --trainpref "$OUT/bracketed/train" --validpref "$OUT/bracketed/valid" --testpref "$OUT/bracketed/test" \
    --destdir "$DATA_BIN" --joined-dictionary --bpe-codes "$BPE/codes" --workers "$WORKERS" \
    --tree-parser brackets --tree-lang fr

step "$RUN/checkpoints/checkpoint_last.pt" fairseq-train "$DATA_BIN" --user-dir "$ROOT/tree_fairseq" \
    --task tree_translation \
    -s fr -t en --arch "$ARCH" "${MODEL[@]}" --criterion label_smoothed_cross_entropy --label-smoothing 0.1 \
    "${OPTIMIZER[@]}" --max-tokens $((4096 / GPUS)) --max-update 60000 --update-freq 1 --seed "$SEED" \
    --save-dir "$RUN/checkpoints" --keep-last-epochs 10 --no-progress-bar --log-interval 100 \
    --log-file "$RUN/train.log" "${TOY_FLAGS[@]}" "${TRAIN_FLAGS[@]}"
step "$RUN/checkpoints/average.pt" tree-fairseq average "$RUN/checkpoints" --last-epochs 10 \
    --output "$RUN/checkpoints/average.pt"

step "$RUN/generate-test.txt" fairseq-generate "$DATA_BIN" --user-dir "$ROOT/tree_fairseq" --task tree_translation \
    -s fr -t en --path "$RUN/checkpoints/average.pt" --gen-subset test --beam 5 --lenpen 1 \
    --max-tokens 2048 --required-batch-size-multiple 1 --remove-bpe --results-path "$RUN"
step "$RUN/score.json" tree-fairseq score bleu --run "$RUN" --words "$WORDS" --source-lang fr --target-lang en \
    --lowercase --primary tokenized_bleu --length-bounds 10 20 30 40 50 \
    --checkpoint "$RUN/checkpoints/average.pt" \
    --describe recipe=iwslt13_fr_en arch="$ARCH" parser=brackets seed="$SEED" --result "$OUT/result.json"
