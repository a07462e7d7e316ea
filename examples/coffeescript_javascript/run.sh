#!/usr/bin/env bash
# CoffeeScript and JavaScript, tree to tree: Shiv & Quirk's translator of programs (NeurIPS 2019, Figure 6; ICLR
# submission, Table 2).
set -euo pipefail
. "$(dirname "$0")/../lib/structural.sh"

# Data: generated, compiled by CoffeeScript's compiler and parsed by acorn; or the programs of Chen et al. in --data
DATASET=coffeescript SOURCE_NOTATION=bracket TARGET_NOTATION=bracket RAW=.raw
SETTINGS=(CJ-A-short CJ-B-short CJ-A-long CJ-B-long JC-A-short JC-B-short JC-A-long JC-B-long)
GENERATED='programs of Chen et al.; generated where it is not given'
TRAIN_PAIRS=100000 TEST_PAIRS=10000

settings() {
    SETTING=${SETTING:-CJ-A-short}
    case $SETTING in
        CJ-*) SOURCE=cs TARGET=js ;;
        JC-*) SOURCE=js TARGET=cs ;;
    esac
    case $SETTING in *-long) BATCH_SIZE=64 ;; esac # as in the paper
}

get_data() { :; }

make_corpus() {
    if [ -n "$DATA" ]; then
        published_programs cs js
        return
    fi
    local train=${SUBSET:-$TRAIN_PAIRS} test=$TEST_PAIRS flags=()
    if [ -n "$TOY" ]; then train=120 test=15 flags=(--toy); fi
    run python -m preprocess.programs coffeescript --setting "${SETTING#??-}" --train "$train" --valid "$test" --test "$test" \
        --output "$CORPUS" "${flags[@]}"
}

# Model: 4+4 layers, d = 256, positions of 2048, ffn 512 come with the architecture (ffn 1024 with the stock transformer)
DEFAULT_ARCH=tree_positional_transformer_program_translation

# Optimisation: 128 examples a batch, 64 long ones; average of the last 5 epochs
LIMITS=(--max-epoch 20)
AVERAGE=5

# Generation
BEAM=5 MAX_LENGTH=400

# Scores: whole programs
PRIMARY=accuracy

recipe "$@"; exit # on one line: bash reads no further, so that this file may change meanwhile
