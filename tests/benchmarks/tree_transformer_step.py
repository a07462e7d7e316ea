"""Compares a training step of the Tree-Transformer with one of fairseq's transformer."""

from __future__ import annotations

from tests.benchmarks.figures import time_ratio
from tests.benchmarks.measuring import Settings, peak_bytes, side_by_side
from tests.benchmarks.reporting import TIME_HEADINGS, Report, megabytes, time_cells
from tests.benchmarks.translation_models import Task, TrainingStep, build, stock_batch, tree_batch

BATCH, LEAVES, NODES, TARGETS = 32, 30, 20, 30


def run(settings: Settings) -> Report:
    """Times both on the same number of source positions, n + m and EOS."""
    size = settings.choose(BATCH, 2)
    task, own = Task(), f"transformer_{settings.choose('iwslt_de_en', 'tiny')}"
    tree, stock = (TrainingStep(build(f"{kind}{own}", task), task) for kind in ("tree_", ""))
    batches = {
        "tree": tree_batch(task, size, LEAVES, NODES, TARGETS),
        "stock": stock_batch(task, size, LEAVES + NODES, TARGETS),
    }
    works = {"tree": lambda: tree(batches["tree"]), "stock": lambda: stock(batches["stock"])}
    timing = side_by_side(works, settings.choose(10, 1))
    rows = [("step", "source positions", *TIME_HEADINGS, "peak MB")]
    for name, label in (("tree", f"tree_{own}"), ("stock", own)):
        positions = f"{LEAVES} + {NODES} + 1" if name == "tree" else f"{LEAVES + NODES} + 1"
        rows.append((label, positions, *time_cells(timing[name]), megabytes(peak_bytes(works[name]))))
    what = "training step, times as long as the stock transformer's"
    return Report(
        "tree_transformer_step",
        f"b={size}, n={LEAVES} leaves, m={NODES} nodes, {TARGETS} target tokens, {len(task.source_dictionary)} "
        "subwords",
        [time_ratio("ratio", timing["tree"], timing["stock"], 1.05, at_most=True, what=what, processor=True)],
        [rows],
        ["A step: forward pass, label-smoothed loss, backward pass, Adam's update. Embeddings share their weights."],
    )
