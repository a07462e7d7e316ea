"""Progress of steps that take long: how much is done, how fast, and how much time is left.

A terminal shows a bar that moves. Elsewhere, such as in a log file, a line of its own appears every ten seconds. A step
that is over sooner shows nothing.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator
from typing import Any, TextIO, TypeVar

from tqdm import tqdm

Item = TypeVar("Item")

SECONDS_BETWEEN_LINES = 10
_SECONDS_IN_A_TERMINAL = 0.5
_LINE = "{desc}: {n_fmt} of {total_fmt}{unit}, {rate_noinv_fmt}, {remaining} left"
_LINE_WITHOUT_TOTAL = "{desc}: {n_fmt}{unit}, {rate_noinv_fmt}"


class Bar(tqdm):
    """Has no thread, and shares no lock with forked processes: one that dies while it draws would keep the lock."""

    monitor_interval = 0


Bar.set_lock(threading.RLock())


def progress_bar(description: str, total: int | None, unit: str = "", shown: bool = True) -> Bar:
    """A bar on standard error; call its ``update(count)``, and close it, for instance by a ``with`` block.

    Args:
        description: what is done, such as the name of a file
        total: how many units there are, None if that is not known
        unit: a plural, such as ``lines``; ``B`` stands for bytes
        shown: whether anything is shown
    """
    shown = shown and sys.stderr is not None
    terminal = shown and sys.stderr.isatty()
    seconds = _SECONDS_IN_A_TERMINAL if terminal else SECONDS_BETWEEN_LINES
    options: dict[str, Any] = {"mininterval": seconds, "maxinterval": 2 * seconds, "delay": seconds, "smoothing": 0.05}
    if not terminal:
        form = _LINE if total is not None else _LINE_WITHOUT_TOTAL
        options |= {"file": _Lines(sys.stderr), "bar_format": form}
    if unit == "B":
        options |= {"unit_scale": True, "unit_divisor": 1024}
    return Bar(total=total, desc=description, unit=f" {unit}", disable=not shown, **options)


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
