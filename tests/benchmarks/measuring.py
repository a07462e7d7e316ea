"""Time and memory of candidates that do the same work, side by side in one process."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import statistics
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from torch.profiler import ProfilerActivity, profile

BUNDLED_PARSER = Path(__file__).resolve().parents[2] / "examples" / "quickstart" / "stanza-en"


@dataclass(frozen=True)
class Settings:
    """How thoroughly to measure.

    Attributes:
        quick: small sizes and few repeats, to see that a benchmark runs; its figures mean nothing
        parser_dir: Stanza models of an English parser, where parsing is timed
        output: folder of pictures
        data: folder of a domain's examples, where forms are decoded; made-up ones where it is None
        checkpoints: trained models to be taken there, the one of insertions first; they are trained anew where there
            are none
    """

    quick: bool = False
    parser_dir: Path = BUNDLED_PARSER
    output: Path = Path("out/benchmarks")
    data: Path | None = None
    checkpoints: tuple[Path, Path] | None = None

    def choose(self, full, quick):
        """``full``, or ``quick`` where a quick run was asked for."""
        return quick if self.quick else full


@dataclass(frozen=True)
class Timing:
    """Seconds of the repeats of one candidate.

    Attributes:
        seconds: by the clock
        processor_seconds: of this process, all threads together, its children left out
    """

    seconds: tuple[float, ...]
    processor_seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The figure to compare: other processes lengthen some repeats and shorten none."""
        return statistics.median(self.seconds)

    @property
    def processor_median(self) -> float:
        """Of processor time: what to look at where the machine does other things too."""
        return statistics.median(self.processor_seconds)

    def per(self, count: int) -> Timing:
        """Of one of so many works that were timed as one."""
        return Timing(*(tuple(value / count for value in values) for values in (self.seconds, self.processor_seconds)))

    @property
    def spread(self) -> str:
        """The fastest and the slowest repeat, in milliseconds."""
        return f"{1e3 * min(self.seconds):.1f} to {1e3 * max(self.seconds):.1f}"


@contextlib.contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Collects garbage first and not within: what is collected is mostly that of others."""
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
    """Leaves what there is out of later collections: looking at all modules' objects takes longer than most
    candidates.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def seconds_of(work: Callable[[], object]) -> tuple[float, float]:
    """Clock time and processor time of one call."""
    with no_garbage_collection():
        start, processor_start = time.perf_counter(), time.process_time()
        work()
        return time.perf_counter() - start, time.process_time() - processor_start


def side_by_side(candidates: Mapping[str, Callable[[], object]], repeats: int, warm_up: int = 1) -> dict[str, Timing]:
    """Times candidates in turn, so that what else the machine does meets all of them alike.

    Args:
        candidates: the work of each, by name
        repeats: timed rounds; every second one runs the candidates backwards
        warm_up: rounds that are thrown away

    Returns:
        the timing of each candidate
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


def keep_freed_memory() -> bool:
    """Makes the C library keep freed memory, as the allocators of GPUs do, for the rest of the process.

    glibc gives every block above 32 MB back to the system and asks for it anew, page by page, which
    takes several times as long as the arithmetic on it: large tensors would look slower than they are.

    Returns:
        false where the C library cannot be told so
    """
    mmap_max, trim_threshold, top_pad = -4, -1, -2
    try:
        option = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(option(mmap_max, 0) and option(trim_threshold, -1) and option(top_pad, 2**28))


def peak_bytes(work: Callable[[], object]) -> int:
    """The most memory that a call has in use at once, beyond what was in use before it.

    Counts every allocation and release that torch's CPU allocator reports to its profiler:
    activations kept for the backward pass, gradients, and temporaries within an operator alike.

    Args:
        work: one call; all it does is on the CPU
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
