#!/bin/sh
# From parallel text to trees, two trained models, translations, BLEU and a picture; --help lists the options.
exec python3 "$(dirname "$0")/quickstart.py" "$0" "$@"
