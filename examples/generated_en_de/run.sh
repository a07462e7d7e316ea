#!/bin/sh
# The recipe is in recipe.ini; --help lists the options.
exec python3 "$(dirname "$0")/../lib/run.py" "$(dirname "$0")" "$@"
