"""Progress of steps that take long: how much is done, how fast, and how much time is left.

A terminal shows a bar that moves. Elsewhere, such as in a log file, a line of its own appears every ten seconds. A step
that is over sooner shows nothing. A process that waits for others says so from time to time (:class:`Patience`).
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TextIO, TypeVar

from tqdm import tqdm

from tree_fairseq.errors import WorkerDiedError

logger = logging.getLogger(__name__)

Item = TypeVar("Item")

SECONDS_BETWEEN_LINES = 10
_SECONDS_IN_A_TERMINAL = 0.5
WARN_SECONDS = 60.0
"""Seconds after which a process that waits for another one says so, again and again."""
GIVE_UP_SECONDS = 1800.0
"""Seconds after which it stops with an error."""
_KEPT = "what is parsed is kept"
_LINE = "{desc}: {n_fmt} of {total_fmt}{unit}, {rate_noinv_fmt}, {remaining} left"
_LINE_WITHOUT_TOTAL = "{desc}: {n_fmt}{unit}, {rate_noinv_fmt}"


class Bar(tqdm):
    """Has no thread, and shares no lock with forked processes: one that dies while it draws would keep the lock."""

    monitor_interval = 0


Bar.set_lock(threading.RLock())


def progress_bar(description: str, total: int | None, unit: str = "", shown: bool = True, **options: Any) -> Bar:
    """A bar on standard error; call its ``update(count)``, and close it, for instance by a ``with`` block.

    Args:
        description: what is done, such as the name of a file
        total: how many units there are, None if that is not known
        unit: a plural, such as ``lines``; ``B`` stands for bytes
        shown: whether anything is shown
        **options: of tqdm
    """
    terminal = sys.stderr.isatty()
    seconds = _SECONDS_IN_A_TERMINAL if terminal else SECONDS_BETWEEN_LINES
    if not terminal:
        form = _LINE if total is not None else _LINE_WITHOUT_TOTAL
        options = {"file": _Lines(sys.stderr), "bar_format": form, **options}
    if unit == "B":
        options = {"unit_scale": True, "unit_divisor": 1024, **options}
    times = {"mininterval": seconds, "maxinterval": 2 * seconds, "delay": seconds, "smoothing": 0.05}
    return Bar(total=total, desc=description, unit=f" {unit}", disable=not shown, **times, **options)


def with_progress(
    items: Iterable[Item], description: str, total: int | None = None, unit: str = "", shown: bool = True
) -> Iterator[Item]:
    """Yields the items and shows how many of them the caller has done; ``total`` is their ``len`` if they have one."""
    if total is None and hasattr(items, "__len__"):
        total = len(items)  # type: ignore[arg-type]
    with progress_bar(description, total, unit, shown) as bar:
        for item in items:
            yield item
            bar.update()


class _Lines:
    """Writes what tqdm would draw over and over as lines."""

    encoding = "utf-8"

    def __init__(self, stream: TextIO):
        self._stream = stream

    def write(self, drawn: str) -> None:
        if text := drawn.strip():
            self._stream.write(text + "\n")

    def flush(self) -> None:
        self._stream.flush()


class Patience:
    """Waits for other processes: says so every :data:`WARN_SECONDS` without any change, and gives up in the end."""

    def __init__(self) -> None:
        self._state: object = None
        self._since = self._warned = time.monotonic()

    @property
    def seconds(self) -> float:
        """The seconds since the last change."""
        return time.monotonic() - self._since

    def watch(self, state: object, waiting: Callable[[], str]) -> None:
        """Compares the state of what is waited for with the last one; ``waiting`` says who waits for what.

        Raises:
            WorkerDiedError: nothing has changed for :data:`GIVE_UP_SECONDS`
        """
        now = time.monotonic()
        if state != self._state:
            self._state, self._since, self._warned = state, now, now
        elif now - self._warned >= WARN_SECONDS:
            self._warned = now
            message = f"{waiting()}; nothing has changed for {self.seconds:.0f} seconds"
            if self.seconds >= GIVE_UP_SECONDS:
                raise WorkerDiedError(f"{message}. Give the same command again to all ranks: {_KEPT}")
            logger.warning("%s. If that rank has ended, end this command and give it again: %s", message, _KEPT)
