#!/usr/bin/env bash
# IWSLT'14 German-English: with trees, Nguyen et al. (2020), Tables 1 and 3; without, Patel & Flanigan, Table 1.
set -euo pipefail
. "$(dirname "$0")/../lib/recipe.sh"
. "$(dirname "$0")/../lib/iwslt.sh"

# Data: fetched where --data is an empty folder; lower-cased Moses tokens, joint BPE
DATASET=iwslt14 SOURCE=de TARGET=en FETCH=iwslt14_de_en
BPE_SIZE=10000
OWN_USAGE='  --setting S         treeformer: plain text, as in the paper of Treeformer, options of its own (--setting treeformer --help)'

# Without trees: settings of another paper
treeformer() {
    . "$LIBRARY/treeformer.sh"
    VARIANT=treeformer LENPEN=0.6
    . "$LIBRARY/iwslt14_treeformer.sh"
}

case " $* " in *" --arch treeformer"* | *" --setting treeformer "*) treeformer ;; esac
recipe "$@"; exit # on one line: bash reads no further, so that this file may change meanwhile
