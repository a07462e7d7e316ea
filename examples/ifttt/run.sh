#!/usr/bin/env bash
# IFTTT: descriptions of if-this-then-that recipes to programs, Shiv & Quirk's semantic parser (ICLR submission, Table 3).
set -euo pipefail
. "$(dirname "$0")/../lib/structural.sh"

# Data: see the README; tokens seen fewer than 5 times are unknown on both sides, as in the paper
DATASET=ifttt SOURCE=nl TARGET=lf
SOURCE_NOTATION='' TARGET_NOTATION=bracket # a sentence, a tree
THRESHOLD_SOURCE=5 THRESHOLD_TARGET=5

# Model: 4+4 layers, d = 256, ffn 1024, positions of 2048 come with the architecture
DEFAULT_ARCH=tree_positional_transformer_semantic_parsing

# Optimisation: 128 examples a batch, about 600 batches an epoch; average of the last 5 epochs
LIMITS=(--max-epoch 20)
AVERAGE=5

# Generation
BEAM=5 MAX_LENGTH=200

# Scores: channels, channels and functions, F1 of productions
SCORE_FLAGS=(--scheme ifttt --group-metrics english intelligible gold)
PRIMARY=channel_accuracy

recipe "$@"; exit # on one line: bash reads no further, so that this file may change meanwhile
