"""The main program of a parsing process: it answers requests until its parent goes away."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from tree_fairseq.errors import ParserError, TreeFairseqError
from tree_fairseq.parsing.parsers import ParserOptions


@dataclass(frozen=True)
class WorkerSetup:
    """What a parsing process has to know.

    Args:
        options: the parser and its options; the device is this process's own.
        module: what registers the parser when imported; None for ready-made trees.
        search_path: where modules are found.
        parent: process id of whoever asks.
    """

    options: ParserOptions
    module: str | None
    search_path: list[str]
    parent: int


class Answerer:
    """Does what is asked of a parsing process; also used without one.

    Args:
        options: of the parser.
        parser: used in place of the one that the options name.
    """

    def __init__(self, options: ParserOptions, parser: Any = None):
        from tree_fairseq.parsing.line_parser import LineParser

        self._lines = LineParser(options, parser)

    def answer(self, kind: str, payload: Any) -> Any:
        """One request.

        Args:
            kind: ``words`` or ``text``: the payload is a batch of such requests, see `requests`. ``lines``: it is (lines, number of the first, path).

        Returns:
            for a batch its answers and the reasons of failures; for lines their `WrittenLine`.
        """
        from tree_fairseq.parsing.requests import parse_texts

        if kind == "lines":
            lines, first_line, path = payload
            return self._lines.write_lines(lines, first_line, path)
        return parse_texts(self._lines.parser, kind, payload)


def main(descriptor: int) -> None:
    """Serve the connection with this file descriptor until it is closed from the other side."""
    # The parent ends on Ctrl-C, and this process with it: one traceback is enough.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection = Connection(descriptor)
    try:
        setup: WorkerSetup = connection.recv()
        _serve(connection, setup)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _serve(connection: Connection, setup: WorkerSetup) -> None:
    sys.path[:] = [*sys.path, *(entry for entry in setup.search_path if entry not in sys.path)]
    answerer = None
    while True:
        number, kind, payload = connection.recv()
        if os.getppid() != setup.parent:
            # What a killed parent has left in the pipe is of no use to anybody.
            return
        try:
            if answerer is None:
                if setup.module is not None:
                    importlib.import_module(setup.module)
                answerer = Answerer(setup.options)
            reply = (number, answerer.answer(kind, payload), None)
        except TreeFairseqError as error:
            reply = (number, None, error)
        except Exception:
            # Anything else is a fault of the program: its place is in the traceback, which an exception loses between processes.
            reply = (number, None, ParserError(f"a parsing process failed:\n{traceback.format_exc()}"))
        connection.send(reply)
