"""The frame of the commands that prepare data sets: logging, the final report and error messages."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

from preprocess.corpora import CorpusError
from preprocess.fetch import FetchError
from tree_fairseq.errors import TreeFairseqError
from tree_fairseq.support.logs import log_to_standard_error, traceback_wanted


def run_command(command: str, run: Callable[[], None]) -> int:
    """Runs a command with logging on standard error, and returns its exit status. Errors in data have no traceback."""
    log_to_standard_error()
    try:
        run()
    except (CorpusError, FetchError, TreeFairseqError) as error:
        if traceback_wanted():
            raise
        sys.stderr.write(f"{command}: {error}\n")
        return 1
    return 0


def prepare_data_set(command: str, name: str, prepare: Callable[[], Mapping[str, int]]) -> int:
    """Prepares a data set, prints the sizes of its splits, and returns the exit status."""

    def run() -> None:
        counts = prepare()
        sizes = ", ".join(f"{split} {count}" for split, count in counts.items())
        sys.stderr.write(f"prepared {name}: {sizes}\n")

    return run_command(command, run)
