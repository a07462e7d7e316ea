#!/usr/bin/env bash
# IWSLT'13 French-English. Stanza has no French constituency model: the source is bracketed trees of another parser.
set -euo pipefail
. "$(dirname "$0")/../lib/recipe.sh"
. "$(dirname "$0")/../lib/iwslt.sh"

# Data: fetched where --data is an empty folder; lower-cased Moses tokens, joint BPE
DATASET=iwslt13 SOURCE=fr TARGET=en FETCH=iwslt13_en_fr
BPE_SIZE=10000

# Trees: made from OUT/words by preprocess/benepar_trees.py, one line for one line
DEFAULT_PARSER=brackets
TREES_NEEDED="Give --trees DIR with train.fr, valid.fr and test.fr, trees of the lines of OUT/words; \
README.md of this recipe has the command that makes them."

recipe "$@"; exit # on one line: bash reads no further, so that this file may change meanwhile
