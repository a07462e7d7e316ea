"""Compares beam search with the Tree-Transformer and with fairseq's transformer."""

from __future__ import annotations

from tests.benchmarks.figures import time_ratio
from tests.benchmarks.measuring import Settings, side_by_side
from tests.benchmarks.reporting import Report, milliseconds
from tests.benchmarks.translation_models import Search, Task, build, stock_batch, tree_batch

BATCH, LEAVES, NODES, TARGETS, BEAM = 32, 30, 20, 30, 5


def run(settings: Settings) -> Report:
    """Times both on the same number of source positions and of steps."""
    size, targets = settings.choose((BATCH, TARGETS), (2, 3))
    task, own = Task(), f"transformer_{settings.choose('iwslt_de_en', 'tiny')}"

    batches = {
        "tree": tree_batch(task, size, LEAVES, NODES, targets),
        "stock": stock_batch(task, size, LEAVES + NODES, targets),
    }
    names = {"tree": f"tree_{own}", "stock": own}
    works = {name: Search(build(names[name], task), task, batch, targets, BEAM) for name, batch in batches.items()}
    timing = side_by_side(works, settings.choose(10, 1))
    rows = [("beam search", "source positions", "sentences a second", "ms, fastest to slowest", "processor ms")]
    for name, label in names.items():
        positions = f"{LEAVES} + {NODES} + 1" if name == "tree" else f"{LEAVES + NODES} + 1"
        taken = timing[name]
        speed = f"{size / taken.median:.2f}"
        rows.append((label, positions, speed, taken.spread, milliseconds(taken.processor_median)))
    what = "beam search, times as many sentences a second as the stock transformer"
    return Report(
        "tree_transformer_generate",
        f"b={size}, beam {BEAM}, n={LEAVES} leaves, m={NODES} nodes, hypotheses of {targets} tokens and EOS",
        [time_ratio("ratio", timing["tree"], timing["stock"], 1.2, what=what, processor=True)],
        [rows],
        ["Both search with fairseq's SequenceGenerator; the time includes the encoder."],
    )
