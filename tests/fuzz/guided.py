"""Searches for inputs that break the law of a target. hypothesis makes them, and aims at inputs that reach more lines.

``python -m tests.fuzz --seconds 60`` runs every target that long and keeps the inputs that break the law as files, for
``tests/fuzz/regressions``.
"""

from __future__ import annotations

import hashlib
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis import target as aim

from tests.fuzz.law import Target, hold

PACKAGE = str(Path(__file__).resolve().parents[2] / "tree_fairseq")
REGRESSIONS = Path(__file__).with_name("regressions")
LARGEST = 600


def regressions(target: Target) -> list[Path]:
    return sorted((REGRESSIONS / target.name).glob("*"))


@contextmanager
def _counting_lines(seen: set[tuple[str, int]]) -> Iterator[None]:
    def trace(frame: FrameType, event: str, argument: object):
        name = frame.f_code.co_filename
        if not name.startswith(PACKAGE):
            return None
        if event == "line":
            seen.add((name, frame.f_lineno))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def search(target: Target, examples: int, number: int | None = None, guided: bool = True) -> None:
    """Tries a number of inputs that hypothesis makes; the first that breaks the law raises, with all that it shrank to.

    A ``number`` makes the inputs the same in every run; ``guided`` aims at inputs that reach more lines.
    """
    seeds = list(target.seeds())

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.target, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.binary(max_size=LARGEST) | st.tuples(st.sampled_from(seeds), st.lists(_EDITS, max_size=6)).map(_edited))
    def attempt(data: bytes) -> None:
        lines: set[tuple[str, int]] = set()
        if guided:
            with _counting_lines(lines):
                hold(target.read, data)
            aim(float(len(lines)))
        else:
            hold(target.read, data)

    (attempt if number is None else seed(number)(attempt))()


_EDITS = st.tuples(st.integers(0, LARGEST), st.integers(0, 8), st.binary(max_size=8))


def _edited(drawn: tuple[bytes, list[tuple[int, int, bytes]]]) -> bytes:
    data, edits = drawn
    for place, length, new in edits:
        place %= len(data) + 1
        data = data[:place] + new + data[place + length :]
    return data


def fuzz(target: Target, seconds: float, folder: Path) -> int:
    """Fuzzes a target for some seconds; returns the number of inputs that broke the law, which are kept in a folder."""
    found = sum(_breaks(target, data, folder) for data in (*target.seeds(), *map(Path.read_bytes, regressions(target))))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        last: list[bytes] = []

        def remember(data: bytes, last=last) -> None:
            last[:] = [data]
            target.read(data)

        try:
            search(Target(target.name, remember, target.seeds), 500)
        except Exception:
            found += _breaks(target, last[0], folder)
    return found


def _breaks(target: Target, data: bytes, folder: Path) -> bool:
    """Whether an input breaks the law; it is then kept, and its traceback is printed."""
    try:
        hold(target.read, data)
    except Exception:
        path = folder / target.name / hashlib.sha256(data).hexdigest()[:12]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        print(f"\n{target.name}: {path}\n{traceback.format_exc()}", flush=True)
        return True
    return False
