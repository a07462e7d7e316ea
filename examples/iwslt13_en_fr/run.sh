#!/usr/bin/env bash
# IWSLT'13 English-French.
set -euo pipefail
. "$(dirname "$0")/../lib/recipe.sh"
. "$(dirname "$0")/../lib/iwslt.sh"

# Data: fetched where --data is an empty folder; lower-cased Moses tokens, joint BPE
DATASET=iwslt13 SOURCE=en TARGET=fr FETCH=iwslt13_en_fr
BPE_SIZE=10000

recipe "$@"; exit # on one line: bash reads no further, so that this file may change meanwhile
