#!/usr/bin/env bash
# ATIS: questions about flights to lambda calculus.
set -euo pipefail
. "$(dirname "$0")/../lib/structural.sh"
. "$(dirname "$0")/../lib/semantic_parsing.sh"

# Data: train.txt, dev.txt, test.txt; question<TAB>logical form. Where test.txt is missing, dev.txt is the test set and
# 400 lines of train validate
DATASET=atis FETCH=atis
VALID=400

# Optimisation: seven times the examples of GEO, so fewer epochs
LIMITS=(--max-epoch 120)
SAVE_INTERVAL=2

# Generation
MAX_LENGTH=250

recipe "$@"; exit # on one line: bash reads no further, so that this file may change meanwhile
