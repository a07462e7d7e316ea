#!/usr/bin/env bash
# FOR to LAMBDA, tree to tree: Shiv & Quirk's translator of programs (NeurIPS 2019, Figure 5; ICLR submission, Table 1).
set -euo pipefail
. "$(dirname "$0")/../lib/structural.sh"

# Data: generated, short (SYN-S) or long (SYN-L); or the programs in --data, of Drissi et al. (rebuild) or of Chen et al.
DATASET=for2lam SOURCE=for TARGET=lam
SOURCE_NOTATION=bracket TARGET_NOTATION=bracket RAW=.raw
SETTINGS=(SYN-S SYN-L rebuild)
GENERATED='published programs; generated where it is not given'
TRAIN_PAIRS=100000 TEST_PAIRS=10000

settings() {
    if [ -n "$DATA" ] && [ -f "$DATA/test_For.json" ]; then SETTING=${SETTING:-rebuild}; fi
    [ "$SETTING" != rebuild ] || [ -n "$DATA" ] || die "--setting rebuild needs --data DIR with test_For.json and validation_For.json"
}

get_data() { :; }

make_corpus() {
    if [ -n "$DATA" ] && [ -f "$DATA/preprocessed_progs_train.json" ]; then
        published_programs for lam
        return
    fi
    local train=${SUBSET:-$TRAIN_PAIRS} test=$TEST_PAIRS given=()
    if [ -n "$TOY" ]; then train=120 test=15; fi
    if [ "$SETTING" = rebuild ]; then given=(--data "$DATA"); fi
    run python -m preprocess.programs for2lam --setting "$SETTING" --train "$train" --valid "$test" --test "$test" \
        --workers "$WORKERS" --output "$CORPUS" "${given[@]}"
}

# Model: 4+4 layers, d = 256, positions of 2048, ffn 512 come with the architecture (ffn 1024 with the stock transformer)
DEFAULT_ARCH=tree_positional_transformer_program_translation

# Optimisation: 128 examples a batch; average of the last 5 epochs
LIMITS=(--max-epoch 20)
AVERAGE=5

# Generation
BEAM=5 MAX_LENGTH=500

# Scores: whole programs
PRIMARY=accuracy

recipe "$@"; exit # on one line: bash reads no further, so that this file may change meanwhile
