"""``python -m tests.repairs.without_a_row TARGET ...`` runs the tests of rows of the table, each without its row.

Every row has a fork of its own, which need not import torch and fairseq again. Prints a line for each row: the target
and pytest's exit status, or minus the signal that ended it.
"""

from __future__ import annotations

import inspect
import os
import signal
import sys
from pathlib import Path

import fairseq  # noqa: F401  the plugin registers only where fairseq is
import hypothesis  # noqa: F401  tests import it and the fixtures, so that forks need not
import pytest

import tests.end_to_end.fixtures
import tests.end_to_end.shared  # noqa: F401
import tree_fairseq
from tests.fork_server import import_optimisers
from tree_fairseq.repairs import REPAIRS, Repair

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60  # After these a test is ended: without its row, it would wait for ever


def undo(repair: Repair) -> None:
    for owner in repair.owners():
        function = inspect.getattr_static(owner, repair.name)
        is_static = isinstance(function, staticmethod)
        stock = (function.__func__ if is_static else function).__wrapped__
        setattr(owner, repair.name, staticmethod(stock) if is_static else stock)


def status_without(repair: Repair) -> int:
    child = os.fork()
    if child == 0:
        status = 70
        signal.alarm(SECONDS)
        try:
            undo(repair)
            silence = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silence, 1)
            os.dup2(silence, 2)
            flags = ["-q", "-x", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
            status = pytest.main([*flags, str(ROOT / repair.test)])
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    tree_fairseq.register()
    import_optimisers()
    for row in REPAIRS:
        if row.target in sys.argv[1:]:
            print(row.target, status_without(row), flush=True)
