"""A progress bar with sentences per second and the time that is left, and the counts for the log."""

from __future__ import annotations

import sys
import time

from tqdm import tqdm

_SECONDS_BETWEEN_LOG_LINES = 30


class Progress:
    """What a run has done so far.

    Args:
        name: of the file, shown before the bar.
        lines: how many lines this process will meet.
        shown: whether to draw a bar.
    """

    def __init__(self, name: str, lines: int, shown: bool):
        self.parsed_sentences = 0
        self.known_sentences = 0
        self.shards = 0
        self._started: float | None = None
        # Until sentences are counted, a line is taken for one. Where nobody watches (a log file), the bar is a line now and then.
        interval = 0.5 if sys.stderr.isatty() else _SECONDS_BETWEEN_LOG_LINES
        self._bar = tqdm(total=lines, desc=name, unit="sent", disable=not shown, mininterval=interval, maxinterval=2 * interval, smoothing=0.05)

    def planned(self, lines: int, sentences: int, known: int) -> None:
        """A shard was read: it has so many sentences, and so many of them need not be parsed."""
        if self._bar.total is not None:
            self._bar.total += sentences - lines
        self.known_sentences += known
        self._start()
        self._bar.update(known)

    def skipped(self, lines: int) -> None:
        """A shard was there already."""
        self._bar.update(lines)

    def parsed(self, sentences: int) -> None:
        """So many sentences were parsed."""
        self._start()
        self.parsed_sentences += sentences
        self._bar.update(sentences)

    def shard_done(self) -> None:
        """A shard was written."""
        self.shards += 1

    def _start(self) -> None:
        if self._started is None:
            self._started = time.monotonic()

    def sentences_per_second(self) -> float:
        """Sentences parsed per second since the first batch was planned."""
        seconds = time.monotonic() - self._started if self._started is not None else 0.0
        return self.parsed_sentences / seconds if seconds > 0 else 0.0

    def close(self) -> None:
        """End the bar."""
        self._bar.close()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
