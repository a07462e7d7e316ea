"""Compares beam search with Treeformer and with fairseq's transformer on the same sentences."""

from __future__ import annotations

from tests.benchmarks.figures import time_ratio
from tests.benchmarks.measuring import Settings, side_by_side
from tests.benchmarks.reporting import Report, milliseconds
from tests.benchmarks.translation_models import Search, Task, build, stock_batch
from tree_fairseq.treeformer import model  # noqa: F401  (registers the architectures)

BATCH, COLUMNS, TARGETS, BEAM = 32, 30, 30, 5


def positions(search: Search) -> int:
    inputs = search.batch["net_input"]
    encoded = search.model.encoder(inputs["src_tokens"], inputs["src_lengths"])
    return encoded["cells"][0].width if "cells" in encoded else len(encoded["encoder_out"][0])


def run(settings: Settings) -> Report:
    size, columns, targets = settings.choose((BATCH, COLUMNS, TARGETS), (2, 6, 3))
    sizes, task = settings.choose("iwslt_de_en", "tiny"), Task()
    architectures = {"chart": f"treeformer_{sizes}", "stock": f"transformer_{sizes}"}
    batch = stock_batch(task, size, columns - 1, targets)
    works = {name: Search(build(arch, task), task, batch, targets, BEAM) for name, arch in architectures.items()}
    timing = side_by_side(works, settings.choose(5, 1))
    rows = [("beam search", "memory", "sentences a second", "ms, fastest to slowest", "processor ms")]
    for name, architecture in architectures.items():
        taken = timing[name]
        cells = (str(positions(works[name])), f"{size / taken.median:.2f}", taken.spread)
        rows.append((architecture, *cells, milliseconds(taken.processor_median)))
    what = "beam search, times as many sentences a second as the stock transformer"
    return Report(
        "treeformer_generate",
        f"b={size}, beam {BEAM}, n={columns}, hypotheses of {targets} tokens and EOS",
        [time_ratio("ratio", timing["chart"], timing["stock"], 0.95, what=what, processor=True)],
        [rows],
        [
            "Both search with fairseq's SequenceGenerator; the time includes the encoder. The figure compares "
            "processor time.\n"
            "Memory: positions of each sentence to which the decoder attends."
        ],
    )
