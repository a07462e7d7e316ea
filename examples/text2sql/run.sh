#!/usr/bin/env bash
# Questions to SQL: the sets of Finegan-Dollak et al. (ACL 2018), by new queries or by new questions
#
# examples/text2sql/run.sh --data DIR --out DIR [options] [-- flags of fairseq-train]
#
#   --data DIR         geography.json, atis.json, advising.json or another set of the same form
#   --out DIR          everything that is written; result.json has the scores
#   --set NAME         geography; the name of the file without .json
#   --split S          query: no test query is in training; question: questions are new, queries often are not
#   --arch A           tree_positional_transformer_tiny; tree_insertion_transformer_tiny; transformer_tiny: a stock model;
#                      source_encoder_transformer_tiny: the same, which takes --encoder-path
#   --encoder-path DIR a pretrained encoder reads the question, a folder that save_pretrained() wrote
#   --target T         tree, or text: a stock model writes SQL as words and subwords
#   --grammar G        language: every output parses; none: outputs may not
#   --schema F         only queries that run on this SQLite file, or on CREATE TABLE statements, such as
#                      OUT/text*/schema.sql, which is made of NAME-schema.csv
#   --database F       an SQLite file: also scores what queries return
#   --seed N           of training: 1
#   --beam N           beams of the search: 5
#   --workers N        processes of fairseq-preprocess: all cores
#   --toy              made-up data and tiny sizes, in OUT/toy
#   --dry-run          print the commands, run none
: "${SET:=geography}" "${SPLIT:=query}" "${ARCH:=tree_positional_transformer_tiny}" "${TARGET:=tree}" "${GRAMMAR:=language}"
: "${ENCODER_PATH:=}" "${SEED:=1}" "${BEAM:=5}" "${SCHEMA:=}" "${DATABASE:=}"
. "$(dirname "$0")/../lib/recipe.sh"; recipe "$@"

case "$TARGET" in
    tree) TASK=structural_translation SEARCH=(--grammar "$GRAMMAR" ${SCHEMA:+--schema "$SCHEMA"})
        SIDE=(--target-modality tree --target-notation sql --on-parse-error skip-pair) ;;
    text) TASK=translation SIDE=(--learn-subwords 500) SEARCH=(--remove-bpe) ;; # of both sides
    *) die "--target $TARGET: give tree or text" ;;
esac
LOSS=(--criterion label_smoothed_cross_entropy --label-smoothing 0.1)
# Words of questions that occur once are unknown. Names in queries that training has fewer than five times are spelled.
SOURCE=en QUERIES=sql RARE=(--thresholdsrc "$((TOY ? 0 : 2))") RATE=1e-3
ENCODER=(--encoder-layers 2 --encoder-embed-dim 128 --encoder-ffn-embed-dim 512 --encoder-attention-heads 4)
case "$ARCH" in
    tree_positional*) MODEL=(${OURS:+--query-position}) ;; # the decoder knows the place of the next symbol
    transformer* | source_encoder_transformer*) MODEL=() ;;
    tree_insertion*) TARGET=insertion TASK=tree_insertion BEAM=1 MODEL=() LOSS=(--criterion slot_kl_divergence)
        SIDE=(--task tree_insertion --target-notation sql) ;; # in a logarithmic number of steps; then the nearest query that parses
    *) die "--arch $ARCH: --help lists the architectures" ;;
esac
[[ ! $SCHEMA || $TARGET != text ]] || die "--schema: the target must be trees; leave out --target text"
[[ ! $ENCODER_PATH || $ARCH != transformer* ]] || die "--encoder-path: give --arch source_encoder_transformer_tiny"

TEXT=$OUT/text$(named SET SPLIT)
BIN=$OUT/data-bin$(named SET SPLIT TARGET ENCODER_PATH)
RUN=$OUT/runs/$ARCH$(named SET SPLIT TARGET ENCODER_PATH)-seed$SEED$FLAGS_NAME
OUTPUT=$RUN$(named GRAMMAR BEAM SCHEMA)

fill_data text2sql
step "$TEXT" python -m preprocess.text2sql "$SET" --data "$DATA" --output "$TEXT" --split "$SPLIT"

if [[ $ENCODER_PATH ]]; then # its word pieces; of 3e-4 and 1e-3, the first is better for ours, the second for stock decoders
    step "$TEXT/dict.wp.txt" tree-fairseq pieces --pieces-of "$ENCODER_PATH" "$TEXT"/{train,valid,test}.en
    SOURCE=wp RARE=(--srcdict "$TEXT/dict.wp.txt")
    [[ $ARCH == source_encoder_transformer* ]] || RATE=3e-4
    [[ $ARCH == tree_insertion* ]] && ENCODER=(--insertion-encoder) || ENCODER=(--source-encoder)
    ENCODER+=(pretrained --encoder-path "$ENCODER_PATH")
    if [[ $TARGET == text ]]; then # subwords of queries alone
        SIDE=() QUERIES=bpe
        step "$TEXT/codes" subword-nmt learn-bpe --symbols 500 --input "$TEXT/train.sql" --output "$TEXT/codes"
        for split in train valid test; do
            step "$TEXT/$split.bpe" subword-nmt apply-bpe --codes "$TEXT/codes" --input "$TEXT/$split.sql" --output "$TEXT/$split.bpe"
        done
    fi
fi
step "$BIN" fairseq-preprocess --user-dir "$ROOT/tree_fairseq" -s "$SOURCE" -t "$QUERIES" \
    --trainpref "$TEXT/train" --validpref "$TEXT/valid" --testpref "$TEXT/test" --destdir "$BIN" "${SIDE[@]}" \
    "${RARE[@]}" --workers "$WORKERS"

step "$RUN/checkpoints/checkpoint_last.pt" fairseq-train "$BIN" --user-dir "$ROOT/tree_fairseq" --task "$TASK" -s "$SOURCE" -t "$QUERIES" \
    --arch "$ARCH" "${MODEL[@]}" --share-decoder-input-output-embed --dropout 0.3 "${ENCODER[@]}" \
    --decoder-layers 2 --decoder-embed-dim 128 --decoder-ffn-embed-dim 512 --decoder-attention-heads 4 \
    --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 10 --lr "$RATE" --lr-scheduler inverse_sqrt --warmup-updates 300 \
    "${LOSS[@]}" --batch-size "$((32 / GPUS))" --required-batch-size-multiple 1 --max-epoch 100 --seed "$SEED" \
    --save-interval 10 --validate-interval 10 --keep-last-epochs 5 --save-dir "$RUN/checkpoints" \
    --no-progress-bar --log-interval 100 --log-file "$RUN/train.log" "${TOY_FLAGS[@]}" "${TRAIN_FLAGS[@]}"
step "$RUN/checkpoints/average.pt" tree-fairseq average "$RUN/checkpoints" --last-epochs "$((TOY ? 2 : 5))" \
    --output "$RUN/checkpoints/average.pt"

step "$OUTPUT/generate-test.txt" fairseq-generate "$BIN" --user-dir "$ROOT/tree_fairseq" --task "$TASK" -s "$SOURCE" -t "$QUERIES" \
    --path "$RUN/checkpoints/average.pt" --gen-subset test --beam "$BEAM" --max-len-a 0 --max-len-b 500 \
    --batch-size 32 --required-batch-size-multiple 1 --results-path "$OUTPUT" "${SEARCH[@]}"
step "$OUTPUT/score.json" tree-fairseq score sql --run "$OUTPUT" --references "$TEXT" --target-lang sql --notation sql \
    --training "$TEXT/train.sql" ${DATABASE:+--database "$DATABASE"} \
    --checkpoint "$RUN/checkpoints/average.pt" --describe recipe=text2sql set="$SET" split="$SPLIT" arch="$ARCH" \
    target="$TARGET" seed="$SEED" --result "$OUT/result.json"
