#!/usr/bin/env bash
# ATIS: questions about flights to lambda calculus, Shiv & Quirk's semantic parser (NeurIPS 2019, Table 1).
set -euo pipefail
. "$(dirname "$0")/../lib/structural.sh"

# Data: train.txt, dev.txt, test.txt; question<TAB>logical form. Where test.txt is missing, dev.txt is the test set and
# 400 lines of train validate
DATASET=atis FETCH=atis SOURCE=nl TARGET=lf
SOURCE_NOTATION='' TARGET_NOTATION=bracket # a sentence, a tree
VALID=400 KEEP_VALID=no
THRESHOLD_SOURCE=2 # rarer words of the source are unknown, as in the paper

# Model: 4+4 layers, d = 256, ffn 1024, positions of 2048 come with the architecture
DEFAULT_ARCH=tree_positional_transformer_semantic_parsing

# Optimisation: 128 examples a batch; average of the last 10 of the checkpoints of every second epoch
LIMITS=(--max-epoch 120)
SAVE_INTERVAL=2 AVERAGE=10

# Generation
BEAM=5 MAX_LENGTH=250

# Scores: the order of what stands under and/or is free, as in the literature
PRIMARY=accuracy_unordered

recipe "$@"; exit # on one line: bash reads no further, so that this file may change meanwhile
