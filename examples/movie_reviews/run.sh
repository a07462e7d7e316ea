#!/usr/bin/env bash
# Movie reviews: Pang and Lee's polarity dataset 2.0, positive and negative documents of many sentences, in ten folds.
set -euo pipefail
. "$(dirname "$0")/../lib/classification.sh"

# Data: pos.txt and neg.txt, a document a line, or the archive; one tenth tests, 180 documents of the others validate
DATASET=movie_reviews FETCH=movie_reviews
SENTENCES=punct # each sentence of a review gets a tree of its own
THRESHOLD=2     # rarer words are unknown
TOY_CORPUS_FLAGS=(--valid 20)
OPTIONS=fold FOLD=1
OWN_USAGE='  --fold K            the tenth to test on, 1 to 10; 1 where not given'
settings() {
    [[ $FOLD =~ ^([1-9]|10)$ ]] || die "--fold $FOLD: give a number from 1 to 10"
    VARIANT=fold-$FOLD CORPUS_FLAGS+=(--fold "$FOLD")
}

# Optimisation: a batch has to hold the longest review
BATCH_TOKENS=4096 DEVICE_TOKENS=4096 POSITIONS=4096

# Ablations: those of Table 3; leaves that see their sentence alone; the mean of all roots, or a root over all sentences
ABLATIONS=(
    "leaf-attention-sentence --leaf-attention sentence" "document-root-mean --document-root mean" "document-root-super --document-root super"
)
CONTROLS=(right-branching random)
LENGTH_BOUNDS=(400 600 800 1000)

recipe "$@"; exit # on one line: bash reads no further, so that this file may change meanwhile
