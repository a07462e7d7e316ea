#!/usr/bin/env bash
# Active sentences and logical forms, tree to tree: the data of Soulos et al. (2023), Shiv & Quirk's model.
set -euo pipefail
. "$(dirname "$0")/../lib/structural.sh"

# Data: {train,validation,test,ood_new}.json; the settings are directions
DATASET=active_logical SOURCE=source TARGET=target
SOURCE_NOTATION=bracket TARGET_NOTATION=bracket
SETTINGS=(both logical-active active-logical)
SETS=(test= test1=new_words)
JOINED=yes # both sides have the same words

settings() { CORPUS_FLAGS=(--direction "${SETTING:-both}"); }

# Model: 4+4 layers, d = 256, ffn 512, positions of 2048 come with the architecture
DEFAULT_ARCH=tree_positional_transformer_program_translation
TREE+=(--share-all-embeddings)
TRANSFORMER+=(--share-all-embeddings)

# Optimisation: 128 examples a batch, 79 batches an epoch; average of the last 5 epochs
LIMITS=(--max-epoch 30)
AVERAGE=5

# Generation
BEAM=5 MAX_LENGTH=150

# Scores: whole trees
PRIMARY=accuracy

recipe "$@"; exit # on one line: bash reads no further, so that this file may change meanwhile
