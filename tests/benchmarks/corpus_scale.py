"""Memory, disk and time of ``fairseq-preprocess``, and of the start of training, by the number of lines."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

import tree_fairseq
from tests.benchmarks.corpora import ParallelText
from tests.benchmarks.measuring import Settings
from tests.benchmarks.reporting import Figure, Report
from tests.benchmarks.watching import Watched, bytes_in, watch

LEAVES, NODES, WORKERS = 30, 20, 2
PLUGIN = str(Path(tree_fairseq.__file__).parent)
# Registers a parser that counts as expensive, so that its trees come from the parse cache in the second run.
_CHEAP = "from fairseq_cli.preprocess import cli_main; import tests.benchmarks.cheap_parser; cli_main()"
WAYS = {
    "stock, leaves": ("leaves", ()),
    "brackets": ("trees", ("--tree-parser", "brackets")),
    "parser": ("leaves", ("--tree-parser", "cheap")),
    "warm parse cache": ("leaves", ("--tree-parser", "cheap")),
}
Measured = dict[str, dict[int, Watched]]


def run(settings: Settings) -> Report:
    sizes = settings.lines or settings.choose((10_000, 100_000, 1_000_000), (100, 300))
    measured: Measured = {way: {} for way in WAYS}
    rows = [("lines, input", "seconds", "ms a line", "parent MB", "worker MB", "disk, peak over final")]
    starts = [("training starts, lines", "processor seconds", "stock", "loader MB", "stock")]
    extra_seconds, loader_ratio = [], []
    for lines in sizes:
        with tempfile.TemporaryDirectory(dir=settings.folder) as name:
            folder = Path(name)
            text = ParallelText(folder, lines, LEAVES, NODES)
            for way in WAYS:
                measured[way][lines], final = preprocess(folder, text, way)
                rows.append(_row(f"{lines:,} {way}", lines, measured[way][lines], final))
                if way == "brackets":
                    ours, stock = (start(folder, kind) for kind in ("tree_translation", "translation"))
                    extra_seconds.append(ours["seconds"] - stock["seconds"])
                    loader_ratio.append(ours["loader"] / stock["loader"])
                    starts.append(
                        (f"{lines:,}", f"{ours['seconds']:.2f}", f"{stock['seconds']:.2f}")
                        + tuple(f"{each['loader'] / 1e6:.0f}" for each in (ours, stock))
                    )
                shutil.rmtree(folder / "bin", ignore_errors=True)
    first, last = min(sizes), max(sizes)
    figures = [
        Figure(
            f"{role}_growth_{way.split(',')[0].replace(' ', '_')}", growth(measured, way, role, first, last), 1.1, True
        )
        for way in list(WAYS)[1:]
        for role in ("parent", "worker")
    ]
    figures += [
        Figure("start_extra_seconds", max(extra_seconds), 10, at_most=True),
        Figure("loader_memory_ratio", max(loader_ratio), 1.1, at_most=True),
    ]
    return Report(
        "corpus_scale",
        f"{WORKERS} workers; lines of {LEAVES} words under {NODES} nodes and their tags; a parser that costs nothing",
        figures,
        [rows, starts],
        [
            "Memory is the most that a process had resident. Growth: the memory at the most lines over that at the "
            "fewest, less the bytes by which stock fairseq's own grows.\n"
            "Disk: destination and staging folder together, at most, over the destination in the end.\n"
            "Training: the task, its data set, the batches of an epoch, and the first batch from one loading process, "
            "whose memory is what it does not share with files. The time is the processor's, of the command itself."
        ],
    )


def preprocess(folder: Path, text: ParallelText, way: str) -> tuple[Watched, int]:
    """Runs the command and returns what was watched, and the size of the destination."""
    kind, flags = WAYS[way]
    prefix, destination = getattr(text, kind), folder / "bin"
    plugin = ["--user-dir", PLUGIN, "--task", "tree_translation"] if flags else []
    program = ["-m", "fairseq_cli.preprocess"]
    if "cheap" in flags:
        flags, program = (*flags, "--parse-cache", str(folder / "cache")), ["-c", _CHEAP]
    command = [sys.executable, *program, *plugin, "-s", "en", "-t", "de", "--trainpref", str(prefix)]
    command += ["--destdir", str(destination), "--workers", str(WORKERS), *flags]
    watched = watch(command, folder / "log", [destination, folder / "bin.building"])
    return watched, bytes_in(destination)


def start(folder: Path, task: str) -> dict[str, float]:
    """Starts training on the folder in a process of its own, as :mod:`tests.benchmarks.training_start` does."""
    command = [sys.executable, "-m", "tests.benchmarks.training_start", str(folder / "bin"), task]
    watch(command, folder / "log", [])
    return json.loads((folder / "log").read_text().splitlines()[-1])


def growth(measured: Measured, way: str, role: str, first: int, last: int) -> float:
    """Returns the growth of a process's memory, apart from stock fairseq's own."""
    own, stock = (
        {lines: getattr(measured[name][lines], role) for lines in (first, last)} for name in (way, next(iter(WAYS)))
    )
    return (own[last] - max(0, stock[last] - stock[first])) / own[first]


def _row(label: str, lines: int, watched: Watched, final: int) -> tuple[str, ...]:
    return (
        label,
        f"{watched.seconds:.1f}",
        f"{1e3 * watched.seconds / lines:.3f}",
        f"{watched.parent / 1e6:.0f}",
        f"{watched.worker / 1e6:.0f}",
        f"{watched.disk / final:.2f}",
    )
