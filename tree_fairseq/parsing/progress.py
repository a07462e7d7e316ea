"""The progress of a parser through a file: a bar, and the counts and the speed for the log."""

from __future__ import annotations

import logging
import sys
import threading
import time
from pathlib import Path

from tqdm import tqdm

logger = logging.getLogger(__name__)

_SECONDS_BETWEEN_LOG_LINES = 30


class _Bar(tqdm):
    """Has no thread, and shares no lock with forked processes: one that dies while it draws would keep the lock."""

    monitor_interval = 0


_Bar.set_lock(threading.RLock())


class Progress:
    """A bar with the speed and the time that is left for this process's lines of a file; its ``with`` block ends it."""

    def __init__(self, path: Path, lines: int, shown: bool = True):
        self.parsed_sentences = 0
        self.known_sentences = 0
        self._path = path
        self._opened = time.monotonic()
        self._started: float | None = None
        # Until its sentences are counted, a line is taken for one. In a log file the bar is a line now and then.
        seconds = 0.5 if sys.stderr.isatty() else _SECONDS_BETWEEN_LOG_LINES
        times = {"mininterval": seconds, "maxinterval": 2 * seconds, "smoothing": 0.05}
        self._bar = _Bar(total=lines, desc=path.name, unit="sent", disable=not shown, **times)

    def planned(self, lines: int, sentences: int, known: int) -> None:
        """Counts the sentences of some lines; the known ones need not be parsed."""
        if self._bar.total is not None:
            self._bar.total += sentences - lines
        self.known_sentences += known
        self._started = self._started or time.monotonic()
        self._bar.update(known)

    def skipped(self, lines: int) -> None:
        """Counts lines that an earlier run has finished."""
        self._bar.update(lines)

    def parsed(self, sentences: int) -> None:
        """Counts sentences that were parsed."""
        self.parsed_sentences += sentences
        self._bar.update(sentences)

    def done(self, lines: int, sentences: int) -> None:
        """Counts lines that were parsed without a plan."""
        self._started = self._started or self._opened
        self.planned(lines, sentences, 0)
        self.parsed(sentences)

    def sentences_per_second(self) -> float:
        """Returns the speed since the first lines were planned."""
        seconds = time.monotonic() - self._started if self._started is not None else 0.0
        return self.parsed_sentences / seconds if seconds > 0 else 0.0

    def log(self, lines: int, sentences: int, flat_lines: int) -> None:
        """Logs the counts of the whole file, and the speed of this process."""
        logger.info(
            "%s: %d sentences on %d lines, %d parsed, %d known, %d lines with a flat tree, %.1f s, %.0f sentences/s",
            *(self._path, sentences, lines, self.parsed_sentences, self.known_sentences, flat_lines),
            *(time.monotonic() - self._opened, self.sentences_per_second()),
        )

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.close()
