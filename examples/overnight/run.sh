#!/usr/bin/env bash
# Overnight: questions to logical forms in eight domains, insertion-based tree decoding, Lukovnikov & Fischer (2021), Tables
# 1 to 3
#
# examples/overnight/run.sh --data DIR --out DIR --domain NAME [options] [-- flags of fairseq-train]
#
#   --data DIR       SEMPRE's DOMAIN.paraphrases.{train,test}.examples; an empty folder is filled
#   --out DIR        everything that is written; result.json has the scores
#   --domain NAME    publications, calendar, blocks, housing, restaurants, recipes, socialnetwork or basketball
#   --arch A         tree_insertion_transformer, sequence_insertion_transformer, insertion_left_to_right or tree_gru; with
#                    _overnight at the end the paper's size
#   --encoder-path DIR   a pretrained encoder, as save_pretrained() writes it, with the paper's 200 epochs at 5e-5
#   --oracle O       what tree_insertion_transformer learns from: centrality, with ties as in the paper; program, as in the
#                    authors' program; or tree-distance, with distances in the tree alone, as Equation 4 is written
#   --supervision S  what sequence_insertion_transformer learns from: binary or uniform
#   --simplify S     merged: calls and filters are merged; none: forms as published
#   --average N      generate with the average of the last N checkpoints, one every 100 updates; 0: with the best one on the
#                    validation set
#   --seed N         of training: 1
#   --generate-flags F   more flags of fairseq-generate, such as '--retain-iter-history'
#   --subset N       train on N pairs
#   --workers N      processes of fairseq-preprocess: all cores
#   --toy            made-up data and tiny sizes, in OUT/toy
#   --dry-run        print the commands, run none
: "${DOMAIN:=publications}" "${ARCH:=tree_insertion_transformer}" "${ORACLE:=centrality}" "${SUPERVISION:=binary}"
: "${ENCODER_PATH:=}" "${SIMPLIFY:=merged}" "${AVERAGE:=0}" "${SEED:=1}" "${SUBSET:=}" "${GENERATE_FLAGS:=}"
. "$(dirname "$0")/../lib/recipe.sh"; recipe "$@"

# 3+3 layers, d = 128, ffn 512, 4 heads; TreeGRU's decoder is a GRU of one layer. The sizes of *_overnight are the paper's.
ENCODER=(--encoder-layers 3 --encoder-embed-dim 128 --encoder-ffn-embed-dim 512 --encoder-attention-heads 4)
DECODER=(--decoder-layers 3 --decoder-embed-dim 128 --decoder-ffn-embed-dim 512 --decoder-attention-heads 4)
case "$ARCH" in
    tree_insertion_transformer*) LEARNED=$ORACLE
        LOSS=(--criterion slot_kl_divergence --insertion-oracle "$ORACLE" --target-distribution rank --target-temperature 0.1) ;;
    # The temperature of the authors' code, which differs from that of trees; 0.1 learns far slower
    sequence_insertion_transformer*) LEARNED=$SUPERVISION
        LOSS=(--criterion slot_kl_divergence --target-distribution "${SUPERVISION/binary/rank}")
        [[ $SUPERVISION == uniform ]] || LOSS+=(--target-temperature 1) ;;
    insertion_left_to_right*) LOSS=(--criterion label_smoothed_cross_entropy --label-smoothing 0.1) LEARNED=sequences ;;
    tree_gru*) LOSS=(--criterion label_smoothed_cross_entropy --label-smoothing 0.1) LEARNED=sequences
        DECODER=(--decoder-layers 1 --decoder-embed-dim 128) ;;
    *) die "--arch $ARCH: --help lists the architectures" ;;
esac
[[ $ARCH != *_overnight ]] || ENCODER=() DECODER=()
SOURCE=nl RARE=(--thresholdsrc 2) # words that are seen once are unknown
SCHEDULE=(--lr 1e-3 --lr-scheduler cosine --warmup-updates 200 --max-update 2000 --save-interval-updates "$((TOY ? 4 : 100))"
    --validate-interval-updates "$((TOY ? 4 : 100))" --save-interval 1000000 --validate-interval 1000000)
# The order of conditions, and of what is concatenated, is free; filters in each other have an order.
UNORDERED=(filter call-SW:concat)
[[ $SIMPLIFY == merged ]] || UNORDERED=()
CHECKPOINT=checkpoint_best.pt
[[ $AVERAGE == 0 ]] || CHECKPOINT=average.pt

WORK=$OUT/$DOMAIN
TEXT=$WORK/text$(named SIMPLIFY SUBSET)
BIN=$WORK/data-bin$(named SIMPLIFY SUBSET ENCODER_PATH) READ=()
case "$ORACLE" in
    centrality) ;;
    program | tree-distance) BIN+=-$ORACLE READ=(--insertion-oracle "$ORACLE") ;;
    *) die "--oracle $ORACLE: --help lists the oracles" ;;
esac
RUN=$WORK/runs/$ARCH$(named SIMPLIFY SUBSET ENCODER_PATH ORACLE SUPERVISION AVERAGE)-seed$SEED$FLAGS_NAME
OUTPUT=$RUN$(named GENERATE_FLAGS)

fill_data overnight overnight
# A fifth of train validates.
step "$TEXT" python -m preprocess.overnight --data "$DATA" --domain "$DOMAIN" --simplify "$SIMPLIFY" \
    --output "$TEXT" ${SUBSET:+--subset "$SUBSET"} ${TOY:+--limit 120}

if [[ $ENCODER_PATH ]]; then # the paper's 200 epochs with 20 of warm-up
    step "$TEXT/dict.wp.txt" tree-fairseq pieces --pieces-of "$ENCODER_PATH" "$TEXT"/{train,valid,test}.nl
    SOURCE=wp RARE=(--srcdict "$TEXT/dict.wp.txt") ENCODER=(--insertion-encoder pretrained --encoder-path "$ENCODER_PATH")
    EPOCH=$((($([[ ! -e $TEXT/train.nl ]] && echo 512 || wc -l < "$TEXT/train.nl") + 31) / 32)) # updates; 16 on publications
    SCHEDULE=(--lr 5e-5 --lr-scheduler cosine --warmup-updates "$((20 * EPOCH))" --max-update "$((200 * EPOCH))"
        --save-interval 10 --validate-interval 10)
fi
step "$BIN" fairseq-preprocess --user-dir "$ROOT/tree_fairseq" --task tree_insertion -s "$SOURCE" -t lf \
    --trainpref "$TEXT/train" --validpref "$TEXT/valid" --testpref "$TEXT/test" --destdir "$BIN" \
    --target-notation bracket --insertion-oracle "$ORACLE" --trajectories 5 "${RARE[@]}" --workers "$WORKERS"

# The paper has batches of 10 to 50. The model that is best on the validation set is kept.
step "$RUN/checkpoints/checkpoint_last.pt" fairseq-train "$BIN" --user-dir "$ROOT/tree_fairseq" --task tree_insertion \
    -s "$SOURCE" -t lf --arch "$ARCH" "${ENCODER[@]}" "${DECODER[@]}" --dropout 0.2 "${LOSS[@]}" \
    --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 3 "${SCHEDULE[@]}" \
    --batch-size "$((32 / GPUS))" --required-batch-size-multiple 1 --seed "$SEED" \
    --keep-interval-updates "$((AVERAGE ? AVERAGE : 1))" --keep-last-epochs 1 \
    --eval-accuracy ${UNORDERED:+--eval-unordered "${UNORDERED[*]}"} \
    --best-checkpoint-metric accuracy --maximize-best-checkpoint-metric --save-dir "$RUN/checkpoints" \
    --no-progress-bar --log-interval 100 --log-file "$RUN/train.log" "${TOY_FLAGS[@]}" "${TRAIN_FLAGS[@]}"
[[ $AVERAGE == 0 ]] || step "$RUN/checkpoints/average.pt" tree-fairseq average "$RUN/checkpoints" \
    --last-updates "$AVERAGE" --output "$RUN/checkpoints/average.pt"

step "$OUTPUT/generate-test.txt" fairseq-generate "$BIN" --user-dir "$ROOT/tree_fairseq" --task tree_insertion \
    -s "$SOURCE" -t lf --path "$RUN/checkpoints/$CHECKPOINT" --gen-subset test --beam 1 \
    --batch-size 32 --required-batch-size-multiple 1 --results-path "$OUTPUT" "${READ[@]}" $GENERATE_FLAGS
step "$OUTPUT/score.json" tree-fairseq score structural --run "$OUTPUT" --references "$TEXT" --data "$BIN" \
    --unordered "${UNORDERED[@]}" --primary accuracy_unordered --checkpoint "$RUN/checkpoints/$CHECKPOINT" \
    --describe recipe=overnight domain="$DOMAIN" arch="$ARCH" learned="$LEARNED" seed="$SEED" --result "$OUT/result.json"
