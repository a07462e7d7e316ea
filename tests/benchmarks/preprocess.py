"""Compares preprocessing of trees with ``fairseq-preprocess``, and parsing with bare Stanza; times a second run."""

from __future__ import annotations

import itertools
import shutil
import statistics
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Callable

import torch
from fairseq_cli import preprocess

from tests.benchmarks.commands import preprocess_arguments, quiet
from tests.benchmarks.corpora import ParallelText, english_sentences, write_lines
from tests.benchmarks.figures import Figure, time_ratio
from tests.benchmarks.measuring import BUNDLED_PARSER, Settings, no_garbage_collection, side_by_side
from tests.benchmarks.reporting import Report
from tree_fairseq.parsing.corpus import parse_corpus
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.support.processes import ProcessPool

LINES, LEAVES, NODES = 40_000, 30, 20
SENTENCES, WORKERS, BATCH = 2_000, 2, 100


def run(settings: Settings) -> Report:
    with tempfile.TemporaryDirectory() as folder, quiet():
        binarizing, binarized = binarize(Path(folder), settings)
        parsing, parse_figures = parse(Path(folder), settings)
    return Report(
        "preprocess",
        f"{WORKERS} workers; lines of {LEAVES} words under {NODES} nodes; sentences of the bundled grammar and model",
        [binarized, *parse_figures],
        [binarizing, parsing],
        [
            "Binarizing: the functions of the commands, in this process, without the time to start. The figure is that "
            "of the source alone, because both treat the target alike.\n"
            f"Parsing: batches of {BATCH}. The start ends when a batch of other sentences is parsed; the rest is "
            f"{SENTENCES} sentences. Bare Stanza is already imported, gets all sentences in one call and runs in one "
            "thread, where it is fastest. Two processes need two free cores.\n"
            "The second run finds the finished shards of the first, and needs neither processes nor a model."
        ],
    )


def binarize(folder: Path, settings: Settings) -> tuple[list[tuple[str, ...]], Figure]:
    """Compares bracketed input with its leaves through stock fairseq; returns a table and the ratio of speeds."""
    text = ParallelText(folder, settings.choose(LINES, 200), LEAVES, NODES)
    stock = preprocess.main.__wrapped__
    numbers = itertools.count()

    def command(main: Callable, prefix: Path, *flags: str) -> Callable[[], None]:
        def work() -> None:
            destination = folder / f"bin{next(numbers)}"
            main(preprocess_arguments(prefix, destination, "--workers", str(WORKERS), *flags))
            shutil.rmtree(destination)

        return work

    trees = ("--tree-parser", "brackets")
    works = {
        ("source", "stock"): command(stock, text.leaves, "--only-source"),
        ("source", "trees"): command(preprocess.main, text.trees, "--only-source", *trees),
        ("source and target", "stock"): command(stock, text.leaves),
        ("source and target", "trees"): command(preprocess.main, text.trees, *trees),
    }
    timing = side_by_side(works, settings.choose(5, 1))
    rows = [("fairseq-preprocess", "lines a second", "seconds", "ms, fastest to slowest", "ratio")]
    for (sides, kind), taken in timing.items():
        ratio = timing[sides, "stock"].median / taken.median
        label = f"{sides}, {'stock on the leaves' if kind == 'stock' else 'bracketed'}"
        rows.append((label, f"{text.lines / taken.median:.0f}", f"{taken.median:.2f}", taken.spread, f"{ratio:.2f}"))
    what = "bracketed input, times as many lines a second as stock fairseq on its leaves"
    return rows, time_ratio("binarize_ratio", timing["source", "trees"], timing["source", "stock"], 0.9, what=what)


class ParsingRuns:
    """Parses the same sentences with the package and with bare Stanza, and times the start and the rest.

    The start ends when other sentences are parsed: a batch of them by bare Stanza, and a text by the package, so that
    each process has loaded its models.
    """

    def __init__(self, folder: Path, workers: int, count: int, batch: int):
        self.folder, self.workers, self.count, self.batch = folder, workers, count, batch
        # Enough for a shard for each process.
        first = 4 * workers * batch
        sentences = english_sentences(first + count)
        self.warm_up, self.sentences = sentences[:first], sentences[first:]
        write_lines(folder / "warm-up", self.warm_up)
        write_lines(folder / "text", self.sentences)
        self.options = ParserOptions(
            name="stanza", lang="en", parser_dir=str(BUNDLED_PARSER), batch_size=batch, device="cpu"
        )
        self.seconds: dict[str, list[float]] = defaultdict(list)

    def bare(self) -> None:
        """Times Stanza's pipeline in this process, in one thread, because it is slower in two."""
        begin = time.perf_counter()
        pipeline = bare_stanza(self.batch)
        pipeline([sentence.split(" ") for sentence in self.warm_up[: self.batch]])
        ready = time.perf_counter()
        pipeline([sentence.split(" ") for sentence in self.sentences])
        self.seconds["bare start"].append(ready - begin)
        self.seconds["bare rest"].append(time.perf_counter() - ready)

    def package(self) -> None:
        """Times two runs, the second of which finds the finished shards of the first."""
        with tempfile.TemporaryDirectory(dir=self.folder) as name, ProcessPool(self.workers) as pool:

            def seconds(text: str) -> float:
                begin = time.perf_counter()
                parse_corpus(self.folder / text, Path(name) / text, self.options, pool=pool)
                return time.perf_counter() - begin

            start, rest = seconds("warm-up"), seconds("text")
            self.seconds["start"].append(start)
            self.seconds["rest"].append(rest)
            self.seconds["second"].append(seconds("text"))


def parse(folder: Path, settings: Settings) -> tuple[list[tuple[str, ...]], list[Figure]]:
    """Times several processes of the package, bare Stanza in one process, and a second run."""
    torch.set_num_threads(1)
    runs = ParsingRuns(folder, *settings.choose((WORKERS, SENTENCES, BATCH), (1, 20, 5)))
    for _ in range(settings.choose(5, 1)):
        with no_garbage_collection():
            runs.bare()
        with no_garbage_collection():
            runs.package()
    median = {name: statistics.median(values) for name, values in runs.seconds.items()}
    rows = [("parsing", "start, seconds", "rest, seconds", "sentences a second", "with the start")]
    for label, start, rest in (
        ("bare Stanza, 1 process", median["bare start"], median["bare rest"]),
        (f"the package, {WORKERS} processes", median["start"], median["rest"]),
    ):
        rows.append(
            (label, f"{start:.2f}", f"{rest:.2f}", f"{runs.count / rest:.0f}", f"{runs.count / (start + rest):.0f}")
        )
    rows.append(
        ("second run, from finished shards", "", f"{median['second']:.2f}", f"{runs.count / median['second']:.0f}", "")
    )
    bare, rest, second = (median[name] for name in ("bare rest", "rest", "second"))
    parsed = f"parsing by {WORKERS} processes, times the sentences a second of bare Stanza in one"
    cached = "from finished shards, times as fast as the first run"
    figures = [
        Figure("parse_ratio", bare / rest, 1.7, False, parsed, f"{rest:.2f} s", f"{bare:.2f} s"),
        Figure("cache_speedup", rest / second, 20, False, cached, f"{second:.3f} s", f"{rest:.2f} s"),
    ]
    return rows, figures


def bare_stanza(batch: int) -> Callable[[list[list[str]]], object]:
    import stanza

    resources = tempfile.mkdtemp()
    (Path(resources) / "resources.json").write_text("{}")
    pipeline = stanza.Pipeline(
        "en",
        dir=resources,
        package=None,
        download_method=None,
        allow_unknown_language=True,
        logging_level="ERROR",
        processors={"tokenize": "default", "pos": "default", "constituency": "default"},
        tokenize_pretokenized=True,
        pos_model_path=str(BUNDLED_PARSER / "tagger.pt"),
        pos_pretrain_path=str(BUNDLED_PARSER / "pretrain.pt"),
        constituency_model_path=str(BUNDLED_PARSER / "constituency.pt"),
        constituency_pretrain_path=str(BUNDLED_PARSER / "pretrain.pt"),
        constituency_batch_size=batch,
        device="cpu",
    )
    shutil.rmtree(resources)
    return pipeline
