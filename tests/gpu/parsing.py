"""Parses sentences with Stanza on the device, and compares trees and speed with those of one process on the CPU."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.commands import quiet
from tests.benchmarks.corpora import english_sentences, write_lines
from tests.benchmarks.figures import Figure
from tests.gpu.device import Device
from tests.gpu.parts import Options, Result
from tree_fairseq.parsing.corpus import parse_corpus
from tree_fairseq.parsing.parsers import ParserOptions

SENTENCES, BATCH = 2_000, 200
SAME_TREES = 0.99  # Share of trees that have to be the same: scores that are nearly equal may change places


def run(device: Device, options: Options, result: Result) -> Iterator[None]:
    count, batch = options.choose((SENTENCES, BATCH), (20, 5))
    sentences = english_sentences(count)
    parses = {}
    with tempfile.TemporaryDirectory() as name, quiet():
        folder = Path(name)
        write_lines(folder / "first", sentences[:batch])
        write_lines(folder / "all", sentences)
        for place in dict.fromkeys((str(device.torch), "cpu")):
            parses[place] = _parse(folder, place, batch, options)
    ours, peer = parses[str(device.torch)], parses["cpu"]
    same = sum(a == b for a, b in zip(ours[2], peer[2]))
    rates = [(count - batch) / max(parsed[1] - parsed[0], 1e-3) for parsed in (ours, peer)]
    result.figures = [
        Figure(
            "same_trees", same / count, SAME_TREES, False, "share of Stanza's trees that are those of the CPU",
            f"{same} trees", f"{count} trees",
        ),
        Figure(
            "parsing", rates[0] / rates[1], None, False, "sentences a second of Stanza, over one process on the CPU",
            *(f"{rate:.0f} a second" for rate in rates),
        ),
    ]  # fmt: skip
    result.details = {place: {"seconds of start": parsed[0], "seconds": parsed[1]} for place, parsed in parses.items()}
    result.notes = [
        f"Parsing: {count} sentences in batches of {batch} with the models of {options.parser_dir.name}; the time "
        f"without that of the start and {batch} sentences."
    ]
    yield


def _parse(folder: Path, place: str, batch: int, options: Options) -> tuple[float, float, list[str]]:
    """Returns the seconds for the first batch and for all sentences, each with the start, and the trees."""
    settings = ParserOptions(
        name="stanza", lang="en", parser_dir=str(options.parser_dir), batch_size=batch, device=place
    )
    seconds, trees = [], []
    for name in ("first", "all"):
        start = time.perf_counter()
        # In this process: Stanza's models are loaded once for each text, on the device.
        parsed = parse_corpus(folder / name, folder / f"{place.replace(':', '-')}-{name}", settings)
        seconds.append(time.perf_counter() - start)
        trees = [line for path, _ in parsed.shards for line in path.read_text(encoding="utf-8").splitlines()]
    return seconds[0], seconds[1], trees
