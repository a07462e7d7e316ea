"""The frame of the commands that prepare data sets: logging, the final report and error messages."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping

from preprocess.corpora import CorpusError
from preprocess.fetch import FetchError
from tree_fairseq.errors import TreeFairseqError


def prepare_data_set(command: str, name: str, prepare: Callable[[], Mapping[str, int]]) -> int:
    """Prepares a data set and prints the sizes of its splits. Errors in the data are printed without a traceback.

    Args:
        command: name of the module that runs
        name: name of the data set
        prepare: writes the data set and returns the number of examples of each split

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
