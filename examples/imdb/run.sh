#!/usr/bin/env bash
# IMDB: positive and negative reviews of many sentences, Nguyen et al. (ICLR 2020), Table 2.
set -euo pipefail
. "$(dirname "$0")/../lib/classification.sh"

# Data: aclImdb/{train,test}/{pos,neg}/*.txt, or the archive; 2,500 reviews of train validate
DATASET=imdb FETCH=imdb
SENTENCES=punct # each sentence of a review gets a tree of its own
THRESHOLD=5     # rarer words are unknown
TOY_CORPUS_FLAGS=(--limit 120 --valid 20)

# Optimisation: a batch has to hold the longest review
BATCH_TOKENS=4096 DEVICE_TOKENS=4096 POSITIONS=4096

# Ablations: those of Table 3; leaves that see their sentence alone; the mean of all roots, or a root over all sentences
ABLATIONS=(
    "leaf-attention-sentence --leaf-attention sentence" "document-root-mean --document-root mean" "document-root-super --document-root super"
)
CONTROLS=(right-branching random)
LENGTH_BOUNDS=(100 200 400 800)
settings() { CORPUS_FLAGS+=(--workers "$WORKERS"); }

recipe "$@"; exit # on one line: bash reads no further, so that this file may change meanwhile
