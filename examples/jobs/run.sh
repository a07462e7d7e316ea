#!/usr/bin/env bash
# JOBS: questions about job offers to Prolog.
set -euo pipefail
. "$(dirname "$0")/../lib/structural.sh"
. "$(dirname "$0")/../lib/semantic_parsing.sh"

# Data: train.txt, test.txt and, where there is one, dev.txt; question<TAB>Prolog conjunction. 100 lines of train validate
# where there is no dev.txt, and are trained on as well, as the literature trains on all 500
DATASET=jobs FETCH=jobs TARGET_NOTATION=prolog
VALID=100 KEEP_VALID=yes

recipe "$@"; exit # on one line: bash reads no further, so that this file may change meanwhile
