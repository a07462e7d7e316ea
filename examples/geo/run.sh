#!/usr/bin/env bash
# GEO: questions about geography to lambda calculus, Shiv & Quirk's semantic parser (NeurIPS 2019, Table 1).
set -euo pipefail
. "$(dirname "$0")/../lib/structural.sh"

# Data: train.txt, test.txt and, where there is one, dev.txt; question<TAB>logical form. 100 lines of train validate where
# there is no dev.txt, and are trained on as well, as the literature trains on all 600
DATASET=geo FETCH=geo SOURCE=nl TARGET=lf
SOURCE_NOTATION='' TARGET_NOTATION=bracket # a sentence, a tree
VALID=100 KEEP_VALID=yes
THRESHOLD_SOURCE=2 # rarer words of the source are unknown, as in the paper

# Model: 4+4 layers, d = 256, ffn 1024, positions of 2048 come with the architecture
DEFAULT_ARCH=tree_positional_transformer_semantic_parsing

# Optimisation: 128 examples a batch, five batches an epoch; average of the last 10 of the checkpoints of every tenth epoch
LIMITS=(--max-epoch 500)
SAVE_INTERVAL=10 AVERAGE=10

# Generation
BEAM=5 MAX_LENGTH=200

# Scores: the order of what stands under and/or is free, as in the literature
PRIMARY=accuracy_unordered

recipe "$@"; exit # on one line: bash reads no further, so that this file may change meanwhile
