"""How a command ends when something is wrong: with a message, without a traceback, and with an exit status.

This holds for fairseq's commands, once they have imported the plugin, and for the package's own. It does not hold for a
program that imports the package: its errors reach that program as usual. With ``TREE_FAIRSEQ_TRACEBACK=1`` in the
environment every command shows tracebacks.
"""

from __future__ import annotations

import contextlib
import linecache
import logging
import os
import re
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Callable

from tree_fairseq.errors import TreeFairseqError

TRACEBACK = "TREE_FAIRSEQ_TRACEBACK"
_HINT = f"(This message is fairseq's. {TRACEBACK}=1 shows where it comes from.)"
# The last lines of a traceback that another process has sent as text: a worker that loads data, or one of several that
# train.
_SENT = re.compile(r"Traceback \(most recent call last\):.*^tree_fairseq\.errors\.\w+: (.*)", re.DOTALL | re.MULTILINE)
# What fairseq raises about its options, files, checkpoints and optional libraries.
_OF_FAIRSEQ = (AssertionError, Exception, ImportError, NotImplementedError, RuntimeError, ValueError)


def traceback_wanted() -> bool:
    """Whether the environment asks for tracebacks."""
    return os.environ.get(TRACEBACK, "0") not in ("", "0")


def failed(error: BaseException, logger: logging.Logger | None = None) -> int:
    """Ends a command: writes the message of an error to a logger, or to standard error, and returns 1.

    Raises:
        BaseException: the error itself, if the environment asks for tracebacks
    """
    if traceback_wanted():
        raise error
    message = message_of(error) or str(error)
    if logger is None:
        sys.stderr.write(f"{message}\n")
    else:
        logger.error("%s", message)
    return 1


def drop_output() -> None:
    """Drops what is buffered for the reader of standard output, which wants no more, as ``head`` does.

    Python would complain of it when it ends.
    """
    with contextlib.suppress(OSError):  # standard output need not be a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def message_of(error: BaseException) -> str | None:
    """The message of an error that the user of a command can cause, or None for any other error.

    These are the errors of this package, also those that another process has sent with its traceback, errors about
    files, and what fairseq's own code raises with a message.
    """
    text = str(error)
    if sent := _SENT.search(text):
        return sent[1].strip()
    if isinstance(error, (TreeFairseqError, OSError)):
        return text
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if type(error) in _OF_FAIRSEQ and text and _fairseq_raised(error):
        return f"{text}\n{_HINT}"
    return None


def _fairseq_raised(error: BaseException) -> bool:
    """Whether the innermost statement is in a file of fairseq, and is ``assert`` or ``raise``."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None or not traceback.tb_frame.f_globals.get("__name__", "").startswith(
        ("fairseq.", "fairseq_cli.")
    ):
        return False
    # The line of a failed assertion may be any of its lines; only the statement itself raises this error with a text.
    line = linecache.getline(traceback.tb_frame.f_code.co_filename, traceback.tb_lineno).strip()
    return isinstance(error, AssertionError) or line.startswith("raise ")


def is_command() -> bool:
    """Whether this process runs a command of fairseq or of this package, by a console script or by ``python -m``."""
    started = sys.modules.get("__main__")
    module = getattr(getattr(started, "__spec__", None), "name", "")
    path = Path(getattr(started, "__file__", None) or "")
    script = Path(sys.argv[0]).name if sys.argv else ""
    return (
        script.startswith(("fairseq-", "tree-fairseq"))
        or module.startswith(("fairseq_cli.", "tree_fairseq"))
        or path.parent.name == "fairseq_cli"
    )


def short_report(other: Callable[..., Any]) -> Callable[..., Any]:
    """A ``sys.excepthook`` that shows the message of an error of the user, and leaves other errors to the one before.

    It is a row of the table of repairs.
    """
    if "fairseq_cli.hydra_train" in sys.modules:
        # Otherwise hydra prints the error itself, with a part of the traceback.
        os.environ.setdefault("HYDRA_FULL_ERROR", "1")

    def report(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        message = message_of(error) if is_command() and not traceback_wanted() else None
        if message is None:
            other(kind, error, traceback)
        else:
            sys.stderr.write(f"{message}\n")

    return report
