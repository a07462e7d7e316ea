"""What commands that prepare data sets have in common: what they say, and how they fail."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping

from preprocess.corpora import CorpusError
from preprocess.fetch import FetchError
from tree_fairseq.errors import TreeFairseqError


def prepare_data_set(command: str, name: str, prepare: Callable[[], Mapping[str, int]]) -> int:
    """Prepares a data set and says what there is of it; errors of ours are told, not raised.

    Args:
        command: module that runs
        name: of the data set
        prepare: writes it; returns how many examples each split has

    Returns:
        the exit status
    """
    logging.basicConfig(format="%(levelname)s | %(message)s", level=logging.INFO, stream=sys.stderr)
    try:
        counts = prepare()
    except (CorpusError, FetchError, TreeFairseqError) as error:
        sys.stderr.write(f"{command}: {error}\n")
        return 1
    sys.stderr.write(f"prepared {name}: " + ", ".join(f"{split} {count}" for split, count in counts.items()) + "\n")
    return 0
