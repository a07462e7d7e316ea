"""Runs targets guided by coverage: by atheris where it is installed, otherwise by hypothesis, whose goal is more lines.

``python -m tests.fuzz --seconds 60`` runs every target that long, each in a process of its own, and prints the inputs
that break the law as files, for ``tests/fuzz/regressions``.
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
    """The inputs that once broke the law of a target."""
    return sorted((REGRESSIONS / target.name).glob("*"))


def keep(target: Target, data: bytes, folder: Path) -> Path:
    """Writes an input that breaks the law into a folder."""
    path = folder / target.name / hashlib.sha256(data).hexdigest()[:12]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


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


def run(target: Target, seconds: float, folder: Path) -> int:
    """Fuzzes a target for some seconds; the result is the number of inputs that broke the law."""
    found = 0
    for data in [*target.seeds(), *(path.read_bytes() for path in regressions(target))]:
        found += _attempt(target, data, folder)
    try:
        import atheris
    except ImportError:
        return found + _with_hypothesis(target, seconds, folder)
    known: set[str] = set()

    def read(data: bytes) -> None:
        nonlocal found
        try:
            hold(target.read, data)
        except Exception as error:
            # The same statement breaks for many inputs: each is kept once.
            place = "".join(traceback.format_tb(error.__traceback__)[-1:]) + type(error).__name__
            if place not in known:
                known.add(place)
                found += _attempt(target, data, folder)

    corpus = folder / "corpus" / target.name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(target.seeds()):
        (corpus / f"seed-{number}").write_bytes(data)
    # libFuzzer ends the process when its time is up.
    flags = [f"-max_total_time={max(1, int(seconds))}", f"-max_len={LARGEST}", "-rss_limit_mb=4096", "-timeout=60"]
    atheris.Setup([sys.argv[0], *flags, "-verbosity=0", "-print_final_stats=1", str(corpus)], read)
    atheris.Fuzz()
    return found


def _with_hypothesis(target: Target, seconds: float, folder: Path) -> int:
    end, found = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        last: list[bytes] = []

        def remembering(data: bytes, last=last) -> None:
            last[:] = [data]
            target.read(data)

        try:
            search(Target(target.name, remembering, target.seeds), 500)
        except Exception:
            found += _attempt(target, last[0], folder)
    return found


def _attempt(target: Target, data: bytes, folder: Path) -> bool:
    """Whether an input breaks the law; it is then kept, and its traceback is printed."""
    try:
        hold(target.read, data)
    except Exception:
        path = keep(target, data, folder)
        sys.stdout.write(f"\n{target.name}: {path}\n{traceback.format_exc()}")
        sys.stdout.flush()
        return True
    return False
