# What recipes of trees that grow by insertions share: their options and stages. A run.sh sources this file, sets its data, and calls
# `recipe "$@"`.

. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. "$LIBRARY/insertion_models.sh"

DEFAULT_ARCH=tree_insertion_transformer
OWN_STAGES=bounds NEEDED_USAGE=' --domain NAME'
GENERATE_BATCH_SIZE=32

option_usage() {
    cat << USAGE
  --domain NAME       ${DOMAINS[*]}
  --arch A            $DEFAULT_ARCH (where not given), sequence_insertion_transformer, insertion_left_to_right or
                      tree_gru; with _overnight at the end the paper's size
  --simplify S        merged (where not given): calls and filters are merged; none: forms as published
  --oracle O          what tree_insertion_transformer learns from: centrality (where not given), the paper's, or exact
  --supervision S     what sequence_insertion_transformer learns from: binary (where not given) or uniform
  --stage S           $STAGE_USAGE. bounds: print how few steps the test sets can take, nothing else
  --subset N          train on N pairs
$SEED_USAGE
  --workers N         processes for preprocessing (all cores)
USAGE
}

parse_options() {
    ARCH=$DEFAULT_ARCH STAGE=score SUBSET='' DOMAIN='' SIMPLIFY=merged ORACLE=centrality SUPERVISION=binary SEED='' SEEDS=''
    WORKERS=$(getconf _NPROCESSORS_ONLN)
    read_options "data out arch stage subset domain simplify oracle supervision seed seeds workers" "$@"
    if [ -n "$DOMAIN" ]; then one_of --domain "$DOMAIN" "${DOMAINS[@]}"; fi
    [ "$STAGE" = bounds ] || [ -n "$DOMAIN" ] || { usage >&2; die "--domain is needed: ${DOMAINS[*]}"; }
    one_of --simplify "$SIMPLIFY" merged none
    one_of --oracle "$ORACLE" centrality exact
    one_of --supervision "$SUPERVISION" binary uniform
    settle_seeds
    model_flags "$ARCH"
    teaching_flags
}

# places: absolute paths; domains, forms and splits of training data have folders of their own
places() {
    data_and_out
    WORK=$OUT/$DOMAIN
    if [ "$SIMPLIFY" = none ]; then WORK+=/original; fi
    WORK+=${SUBSET:+/subset-$SUBSET}
    CORPUS=$WORK/text
    FOLDER=$WORK/data-bin
    UNORDERED=("${UNORDERED_LABELS[@]}")
    if [ "$SIMPLIFY" = none ]; then UNORDERED=(); fi # filters in each other have an order
}

# --- stages ----------------------------------------------------------------------------------------------------------

bounds() {
    run python -m preprocess.overnight bounds --data "$DATA" ${DOMAIN:+--domain "$DOMAIN"}
}

prepare() {
    local flags=(${SUBSET:+--subset "$SUBSET"} ${TOY:+--limit 120})
    run rm -rf "$CORPUS"
    run python -m preprocess.overnight prepare --data "$DATA" --domain "$DOMAIN" --simplify "$SIMPLIFY" --output "$CORPUS" "${flags[@]}"
}

preprocess() {
    run rm -rf "$FOLDER"
    run fairseq-preprocess --user-dir "$ROOT/tree_fairseq" --task tree_insertion -s nl -t lf \
        --trainpref "$CORPUS/train" --validpref "$CORPUS/valid" --testpref "$CORPUS/test" --destdir "$FOLDER" \
        --target-notation bracket --insertion-oracle both --trajectories 5 --thresholdsrc "$THRESHOLD_SOURCE" --workers "$WORKERS"
}

# train RUN FLAGS...: train (or go on from the last checkpoint) and keep the model that is best on the validation set
train() {
    local folder=$1 limits=("${LIMITS[@]}") intervals=(--save-interval-updates "$INTERVAL" --validate-interval-updates "$INTERVAL")
    shift
    batch_flags "$BATCH_SIZE" "$BATCH_SIZE" --batch-size
    if [ -n "$TOY" ]; then limits+=("${TOY_LIMITS[@]}") intervals=(); fi
    run fairseq-train "$FOLDER" --user-dir "$ROOT/tree_fairseq" --task tree_insertion -s nl -t lf \
        --arch "$ARCH" "${MODEL[@]}" "${TAUGHT[@]}" "${TRAINING[@]}" "${BATCH[@]}" --required-batch-size-multiple 1 "${limits[@]}" \
        "${intervals[@]}" --save-interval 1000000 --validate-interval 1000000 --keep-interval-updates 1 \
        --eval-accuracy ${UNORDERED[0]:+--eval-unordered "${UNORDERED[*]}"} \
        --best-checkpoint-metric accuracy --maximize-best-checkpoint-metric \
        --save-dir "$folder/checkpoints" --no-progress-bar --log-interval 100 --log-file "$folder/train.log" "$@"
}

# generate RUN
generate() {
    run fairseq-generate "$FOLDER" --user-dir "$ROOT/tree_fairseq" --task tree_insertion -s nl -t lf \
        --path "$1/checkpoints/checkpoint_best.pt" --gen-subset test --beam 1 \
        --batch-size "$GENERATE_BATCH_SIZE" --required-batch-size-multiple 1 --results-path "$1"
}

# score RUN SEED OTHER_RUN...
score() {
    local folder=$1 seed=$2 against=()
    shift 2
    if [ $# -gt 0 ]; then against=(--against "$@"); fi
    run python -m tree_fairseq.scoring structural --run "$folder" --references "$CORPUS" --data "$FOLDER" --unordered "${UNORDERED[@]}" \
        --primary accuracy_unordered --checkpoint "$folder/checkpoints/checkpoint_best.pt" "${against[@]}" \
        --describe "recipe=$RECIPE" "domain=$DOMAIN" "simplify=$SIMPLIFY" "arch=$ARCH" "learned=$LEARNED" "seed=$seed" \
        ${SUBSET:+"subset=$SUBSET"} ${TOY:+toy=1} --result "$OUT/result.json" --main-run "$MAIN_RUN"
}

# --- one system, from lines to scores ----------------------------------------------------------------------------------

# system VARIANT SEED FLAGS...: one model through all stages asked for
system() {
    local variant=$1 seed=$2 train_key
    shift 2
    run_name "$ARCH" "$WAY$variant-seed$seed" "${EXTRA[@]}"
    same_data "$RUN" "$FOLDER"
    train_key=$(key "=$BATCH_SIZE" "=$INTERVAL" "${MODEL[@]/#/=}" "${TAUGHT[@]/#/=}" "${TRAINING[@]/#/=}" "${LIMITS[@]/#/=}" \
        "${@/#/=}" "${EXTRA[@]/#/=}" "$RUN/data-key")
    stage "train-${RUN##*/}" "$train_key" train "$RUN" --seed "$seed" "$@" "${EXTRA[@]}"
    reached generate || return 0
    stage "generate-${RUN##*/}" "$(key "=$train_key")" generate "$RUN"
    reached score || return 0
    beside "$seed" "$WORK/runs/$ARCH$WAY"
    score "$RUN" "$seed" "${OTHERS[@]}"
}

# systems VARIANT FLAGS...: the same model with every seed; the last SCORED runs
systems() { each_seed 1 "$@"; }

# ablate: Table 3 of the paper, and deletion, which it names as open
ablate() {
    [ "$TEACHING" = trajectories ] || die "--stage ablate needs a tree_insertion_transformer* architecture"
    local temperature
    if [ "$ORACLE" = centrality ]; then # optimal insertions have no ranks
        for temperature in 1 10; do systems "-temperature-$temperature" --target-temperature "$temperature"; done
    fi
    systems -one-trajectory --trajectories 1
    systems -absolute-positions --absolute-positions
    systems -no-child-relations --no-child-relations
    systems -deletion --deletion
}

# recipe ARGUMENTS...: everything
recipe() {
    parse_options "$@"
    places
    get_data
    if [ "$STAGE" = bounds ]; then
        bounds
        say "done: $STAGE"
        return
    fi
    stage prepare "$(key "=$DOMAIN" "=$SIMPLIFY" "=$SUBSET" "=$TOY" "$DATA")" prepare
    reached preprocess || { say "done: $STAGE"; return 0; }
    stage preprocess "$(key "=$THRESHOLD_SOURCE" "$CORPUS"/*)" preprocess
    reached train || { say "done: $STAGE"; return 0; }
    run_name "$ARCH" "$WAY-seed${SEEDS%% *}" "${EXTRA[@]}"
    MAIN_RUN=$RUN
    main_systems ''
}
