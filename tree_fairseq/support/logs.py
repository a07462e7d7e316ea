"""The standard error of commands: logs, and messages of errors in place of tracebacks.

Logs leave out deprecations that fairseq alone could mend, and lines that are meant for developers of libraries. Every
other line and warning stays.

fairseq's commands, once they have imported the plugin, and the package's own end with a message and an exit status when
something is wrong. The errors of a program that imports the package reach that program as usual. With
``TREE_FAIRSEQ_TRACEBACK=1`` in the environment every command shows tracebacks.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import functools
import linecache
import logging
import os
import re
import sys
import warnings
from pathlib import Path
from traceback import walk_tb
from types import TracebackType
from typing import Any, Callable

from tree_fairseq.errors import TreeFairseqError, did_you_mean, missing

FORMAT = {"fmt": "%(asctime)s | %(levelname)s | %(name)s | %(message)s", "datefmt": "%Y-%m-%d %H:%M:%S"}
"""The form that fairseq's commands give to their lines."""

DEPRECATIONS = (
    "hydra.experimental",
    r"\s*The version_base parameter is not specified",
    r"\s*The strict flag in the compose API is deprecated",
    "In 'config': Usage of deprecated keyword in package header",
    r"\s*'config' is validated against ConfigStore schema",
    r".torch\.cuda\.amp\.autocast",
    r".torch\.nn\.utils\.weight_norm",
    "Support for mismatched key_padding_mask and attn_mask",
    "'pin_memory' argument is set as true",
)
"""The beginnings of warnings, as regular expressions."""

FOR_DEVELOPERS = {
    "fairseq.dataclass.utils": ("Error when composing. Overrides: ",),
    "fairseq.data.iterators": ("grouped total_num_itrs = ",),
    "fairseq.tasks.fairseq_task": (
        "can_reuse_epoch_itr = ", "creating new batches for epoch ", "rebuild_batches = ", "reuse_dataloader = ",
    ),
    "fairseq.trainer": ("detected shared parameter: ",),
    "fairseq_cli.train": ("num. expert model params: 0 (",),
    "hydra.core.utils": ("Setting JobRuntime:",),
    "matplotlib.font_manager": ("generated new fontManager",),
}  # fmt: skip
"""The beginnings of lines, by logger."""


def keep_clean() -> None:
    """Keeps these warnings and lines out of the logs, and gives a log the form that fairseq means it to have.

    They are made by fairseq 0.12, which calls hydra and torch in ways that both have deprecated since. Pinned memory,
    which fairseq always asks for, is ignored by torch on machines without a GPU. A second call does nothing.
    """
    for beginning in DEPRECATIONS:
        warnings.filterwarnings("ignore", beginning)
    _leave_out_lines()
    if is_command():
        prepare_streams()
        _undo_debug_form()


def log_to_standard_error() -> None:
    """Makes a program of this package log as fairseq's commands do, unless logging is set up already."""
    _undo_debug_form()
    _leave_out_lines()
    logging.basicConfig(format=FORMAT["fmt"], datefmt=FORMAT["datefmt"], level=logging.INFO, stream=sys.stderr)


def prepare_streams() -> None:
    """Lets a command run without standard output or error, and end quietly when the reader of its output has left."""
    sys.stdout, sys.stderr = (stream or open(os.devnull, "w") for stream in (sys.stdout, sys.stderr))
    atexit.register(_flush_output)


def _flush_output() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()


def _is_for_users(beginnings: tuple[str, ...], record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith(beginnings)


_FILTERS = {name: functools.partial(_is_for_users, beginnings) for name, beginnings in FOR_DEVELOPERS.items()}


def _leave_out_lines() -> None:
    for name, is_kept in _FILTERS.items():
        logging.getLogger(name).addFilter(is_kept)  # a logger adds a filter once


def _undo_debug_form() -> None:
    """Gives the root logger fairseq's form and level again, if they were set for debugging.

    fairseq-fixed 0.12.3 has a module that calls ``logging.basicConfig(level=DEBUG)`` when it is imported, before the
    commands that generate and validate set their logs up.
    """
    root = logging.getLogger()
    for handler in root.handlers:
        if root.level == logging.DEBUG and handler.formatter and handler.formatter._fmt == logging.BASIC_FORMAT:
            handler.setFormatter(logging.Formatter(**FORMAT))
            root.setLevel(os.environ.get("LOGLEVEL", "INFO").upper())


TRACEBACK = "TREE_FAIRSEQ_TRACEBACK"
_MANY_CHOICES = 20
_HINT = f"(This message is fairseq's. {TRACEBACK}=1 shows where it comes from.)"
# The last lines of a traceback that another process has sent as text: a worker that loads data, or one of several that
# train.
_SENT = re.compile(r"Traceback \(most recent call last\):.*^tree_fairseq\.errors\.\w+: (.*)", re.DOTALL | re.MULTILINE)
# What fairseq raises about its options, files, checkpoints and optional libraries.
_OF_FAIRSEQ = (AssertionError, Exception, ImportError, NotImplementedError, RuntimeError, ValueError)


def traceback_wanted() -> bool:
    """Whether the environment asks for tracebacks."""
    return os.environ.get(TRACEBACK, "0") not in ("", "0")


def failed(error: BaseException, logger: logging.Logger) -> int:
    """Ends a command: logs the message of an error and returns 1, or raises the error if tracebacks are wanted."""
    if traceback_wanted():
        raise error
    logger.error("%s", message_of(error) or str(error))
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
    if found := _NO_SPLIT.fullmatch(text):
        splits = sorted({path.name.split(".")[0] for path in Path(found[2]).glob("*.*-*.*")})
        if found[1] in splits:
            return f"{found[2]} has a split {found[1]!r}, but not for these languages and this --dataset-impl"
        return f"{found[2]} has no split {found[1]!r}, but {', '.join(splits) or 'none'}"
    if isinstance(error, FileNotFoundError) and error.errno is None and _fairseq_raised(error):
        return f"--user-dir {text} does not exist; --user-dir $(tree-fairseq path) is that of this package"
    if isinstance(error, FileNotFoundError) and error.filename:
        return str(missing(error.filename, "file or folder"))
    if isinstance(error, (TreeFairseqError, OSError)):
        return text
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if type(error).__module__.startswith(("hydra.", "omegaconf.")):
        found = _OVERRIDE.search(text)
        if found is None:
            return text.splitlines()[0]
        group, name, value = found.groups()
        flag = "--" + name.replace("_", "-")
        return f"{flag} is missing: --{group} needs it" if value == "null" else f"{flag} cannot be {value}"
    if _NO_GPU.search(text):
        return "torch finds no GPU here: leave out --fp16, --bf16, --amp and --tree-device cuda"
    if type(error) in _OF_FAIRSEQ and text and _fairseq_raised(error):
        return f"{text}\n{_HINT}"
    return None


_NO_SPLIT = re.compile(r"Dataset not found: (\S+) \((.*)\)")
_NO_GPU = re.compile(r"not compiled with CUDA|no NVIDIA driver|No CUDA GPUs|has no attribute 'xla_device'")
_OVERRIDE = re.compile(r"override (\w+)\.(\w+)=(\S+)")


def _fairseq_raised(error: BaseException) -> bool:
    """Whether the innermost statement is in a file of fairseq, and is ``assert`` or ``raise``."""
    frame, number = next(reversed(list(walk_tb(error.__traceback__))), (None, 0))
    if frame is None or not frame.f_globals.get("__name__", "").startswith(("fairseq.", "fairseq_cli.")):
        return False
    # The line of a failed assertion may be any of its lines; only the statement itself raises this error with a text.
    line = linecache.getline(frame.f_code.co_filename, number).strip()
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


def name_nearest(stock: Callable[..., Any]) -> Callable[..., Any]:
    """``ArgumentParser.error``, which names the nearest of many choices in place of all; a row of the table."""

    def error(self: argparse.ArgumentParser, message: str) -> None:
        found = re.fullmatch(r"argument (\S+): invalid choice: '([^']*)' \(choose from (.*)\)", message, re.DOTALL)
        choices = [choice.strip("' ") for choice in found[3].split(",")] if found else []
        if len(choices) > _MANY_CHOICES and is_command():
            near = did_you_mean(found[2], choices) or f"There are {len(choices)} others."
            self.exit(2, f"{self.prog}: error: argument {found[1]}: there is no {found[2]!r}. {near}\n")
        stock(self, message)

    return error


def short_report(other: Callable[..., Any]) -> Callable[..., Any]:
    """A ``sys.excepthook`` that shows the message of an error of the user, and leaves other errors to the one before.

    It is a row of the table of repairs.
    """
    if "fairseq_cli.hydra_train" in sys.modules:
        # Otherwise hydra prints the error itself, with a part of the traceback.
        os.environ.setdefault("HYDRA_FULL_ERROR", "1")

    def report(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if isinstance(error, BrokenPipeError) and is_command():
            drop_output()
            raise SystemExit(0)
        message = message_of(error) if is_command() and not traceback_wanted() else None
        if message is None:
            other(kind, error, traceback)
        else:
            sys.stderr.write(f"{message}\n")

    return report
