#!/usr/bin/env bash
# IWSLT'14 English-German.
set -euo pipefail
. "$(dirname "$0")/../lib/recipe.sh"
. "$(dirname "$0")/../lib/iwslt.sh"

# Data: fetched where --data is an empty folder; lower-cased Moses tokens, joint BPE
DATASET=iwslt14 SOURCE=en TARGET=de FETCH=iwslt14_de_en
BPE_SIZE=10000

recipe "$@"; exit # on one line: bash reads no further, so that this file may change meanwhile
