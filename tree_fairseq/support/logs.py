"""The logs of commands: their form, and what is kept out of them because a user can do nothing about it.

Only what is named here is left out: deprecations that fairseq alone could mend, and lines that are meant for developers
of libraries. Every other line and warning stays.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings

from tree_fairseq.support.error_reports import is_command

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
        _undo_debug_form()


def log_to_standard_error() -> None:
    """Makes a program of this package log as fairseq's commands do, unless logging is set up already."""
    _undo_debug_form()
    _leave_out_lines()
    logging.basicConfig(format=FORMAT["fmt"], datefmt=FORMAT["datefmt"], level=logging.INFO, stream=sys.stderr)


def _leave_out_lines() -> None:
    for name, beginnings in FOR_DEVELOPERS.items():
        logger = logging.getLogger(name)
        if not any(isinstance(kept, _Without) for kept in logger.filters):
            logger.addFilter(_Without(beginnings))


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


class _Without(logging.Filter):
    """Drops the lines that begin in some ways."""

    def __init__(self, beginnings: tuple[str, ...]):
        super().__init__()
        self._beginnings = beginnings

    def filter(self, record: logging.LogRecord) -> bool:
        return not str(record.msg).startswith(self._beginnings)
