"""The registry of targets, the law that they keep, and damage to files."""

from __future__ import annotations

import os
import resource
import signal
import struct
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Callable

from tree_fairseq.errors import TreeFairseqError

SECONDS, MEMORY = 2, 1 << 30
_PAGE = resource.getpagesize()


class Hang(Exception):
    """A target used more than two seconds of processor time."""


@dataclass(frozen=True)
class Target:
    """Something that reads bytes, and inputs to begin with."""

    name: str
    read: Callable[[bytes], object]
    seeds: Callable[[], Sequence[bytes]]


TARGETS: dict[str, Target] = {}


def target(seeds: Callable[[], Sequence[bytes]]) -> Callable[[Callable[[bytes], object]], Callable[[bytes], object]]:
    """Registers a function as the target of its name."""

    def register(read: Callable[[bytes], object]) -> Callable[[bytes], object]:
        TARGETS[read.__name__] = Target(read.__name__, read, cache(seeds))
        return read

    return register


def hold(read: Callable[[bytes], object], data: bytes) -> None:
    """Calls a target under the law; errors of the package are fine, and so is the exit of a command."""
    with _limits():
        try:
            read(data)
        except (TreeFairseqError, SystemExit):
            pass


@contextmanager
def _limits() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise Hang(f"more than {SECONDS} seconds")

    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * _PAGE
    before, handler = resource.getrlimit(resource.RLIMIT_AS), signal.signal(signal.SIGVTALRM, stop)
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, before[1]))
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


class Choices:
    """Decisions that are read from bytes; when these end, every decision is the first."""

    def __init__(self, data: bytes):
        self._data, self._place = data, 0

    def __bool__(self) -> bool:
        return self._place < len(self._data)

    def number(self, limit: int) -> int:
        width = 1 if limit <= 256 else 2 if limit <= 65536 else 4
        taken = self._data[self._place : self._place + width]
        self._place += width
        return int.from_bytes(taken, "little") % limit if limit else 0

    def of(self, options: Sequence):
        """One of several."""
        return options[self.number(len(options))]


_INTERESTING = [0, 1, -1, 255, 1 << 15, 1 << 31, (1 << 31) - 1, 1 << 32, 1 << 40, 1 << 62, (1 << 63) - 1]


def damaged(content: bytes, choices: Choices, most: int = 8) -> bytes:
    """A file with flips, cuts, zeros, swaps, repetitions and numbers that are out of place."""
    damage = bytearray(content)
    for _ in range(most):
        if not choices or not damage:
            break
        kind, place = choices.number(8), choices.number(len(damage))
        length = 1 + choices.number(64)
        if kind == 0:
            damage[place] ^= 1 << choices.number(8)
        elif kind == 1:
            damage[place] = choices.number(256)
        elif kind == 2:
            del damage[place:]
        elif kind == 3:
            damage[place : place + length] = bytes(min(length, len(damage) - place))
        elif kind == 4:
            del damage[place : place + length]
        elif kind == 5:
            other = choices.number(len(damage))
            damage[place:place] = damage[other : other + length]
        elif kind == 6:
            number = struct.pack("<q", choices.of(_INTERESTING) & (1 << 63) - 1)[: choices.of((1, 2, 4, 8))]
            damage[place : place + len(number)] = number
        else:
            damage[place : place + length] = bytes(choices.number(256) for _ in range(length))
    return bytes(damage)


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder in memory."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        yield Path(folder)
