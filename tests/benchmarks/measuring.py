"""Measures time and memory of candidates that do the same work, side by side in one process."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from torch.profiler import ProfilerActivity, profile

BUNDLED_PARSER = Path(__file__).resolve().parents[2] / "examples" / "quickstart" / "stanza-en"


@dataclass(frozen=True)
class Settings:
    quick: bool = False  # small sizes and few repeats, to see that a benchmark runs; the figures mean nothing
    parser_dir: Path = BUNDLED_PARSER  # Stanza models of an English parser
    output: Path = Path("out/benchmarks")  # folder of pictures
    data: Path | None = None  # folder of Overnight's examples; None for made-up ones
    checkpoints: Sequence[Path] | None = None  # trained models of insertion and from left to right; None to train both
    lines: Sequence[int] | None = None  # sizes of corpus_scale; None for its own
    folder: Path | None = None  # for the files of corpus_scale; None for the system's

    def choose(self, full, quick):
        return quick if self.quick else full


@dataclass(frozen=True)
class Timing:
    """Seconds of each repeat of one candidate: by the clock, and of the processor.

    Processor time is that of all threads of this process, without its children.
    """

    seconds: tuple[float, ...]
    processor_seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median by the clock, because other processes lengthen some repeats and shorten none."""
        return statistics.median(self.seconds)

    @property
    def processor_median(self) -> float:
        """Median of processor time, for a machine that does other work at the same time."""
        return statistics.median(self.processor_seconds)

    def per(self, count: int) -> Timing:
        """Divides the time of ``count`` equal pieces of work that were timed together."""
        return Timing(*(tuple(value / count for value in values) for values in (self.seconds, self.processor_seconds)))

    @property
    def spread(self) -> str:
        """The fastest and the slowest repeat, in milliseconds."""
        return f"{1e3 * min(self.seconds):.1f} to {1e3 * max(self.seconds):.1f}"


@contextlib.contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Collects garbage before the block and not inside it, because most garbage is that of other code."""
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextlib.contextmanager
def old_objects_kept() -> Iterator[None]:
    """Excludes existing objects from garbage collections, which would take longer than most candidates.

    A process that has excluded objects before, such as one of tests, goes on without these, too.
    """
    has_excluded_some = gc.get_freeze_count() > 0
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        if not has_excluded_some:
            gc.unfreeze()


def seconds_of(work: Callable[[], object]) -> tuple[float, float]:
    """Returns clock time and processor time of one call."""
    with no_garbage_collection():
        start, processor_start = time.perf_counter(), time.process_time()
        work()
        return time.perf_counter() - start, time.process_time() - processor_start


def side_by_side(candidates: Mapping[str, Callable[[], object]], repeats: int, warm_up: int = 1) -> dict[str, Timing]:
    """Times candidates in turn, so that other load of the machine affects all of them alike.

    Every second round runs them in reverse order; rounds of warming up are not timed.
    """
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in candidates}
    names = list(candidates)
    with old_objects_kept():
        for turn in range(warm_up + repeats):
            for name in reversed(names) if turn % 2 else names:
                elapsed = seconds_of(candidates[name])
                if turn >= warm_up:
                    seconds[name].append(elapsed)
    return {name: Timing(*zip(*values)) for name, values in seconds.items()}


def keep_freed_memory(settings: Settings) -> bool:
    """Makes the C library keep freed memory, as the allocators of GPUs do, for the rest of the process.

    glibc returns every block above 32 MB to the system and requests it again, page by page, which takes several times
    as long as the arithmetic on it: large tensors would look slower than they are. Returns False if the C library
    cannot do so, and in a quick run, which may share its process with tests.
    """
    if settings.quick:
        return False
    mmap_max, trim_threshold, top_pad = -4, -1, -2
    try:
        option = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(option(mmap_max, 0) and option(trim_threshold, -1) and option(top_pad, 2**28))


def peak_bytes(work: Callable[[], object]) -> int:
    """Returns the peak memory of a call on the CPU, minus the memory that was in use before it.

    Counts every allocation and release that torch's CPU allocator reports to its profiler: activations kept for the
    backward pass, gradients, and temporaries inside operators.
    """
    gc.collect()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        work()
    events = [event for event in recorded.profiler.kineto_results.events() if event.name() == "[memory]"]
    in_use = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        in_use += event.nbytes()
        peak = max(peak, in_use)
    return peak
