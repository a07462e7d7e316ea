"""Compares the Tree-Transformer as a classifier with the transformer and Tree-LSTMs, also by length of sentence."""

from __future__ import annotations

import functools
from typing import Callable

from tests.benchmarks.classification_lengths import over_lengths
from tests.benchmarks.classification_models import WORDS, Task, sequence_batch, training_step, tree_batch
from tests.benchmarks.figures import time_ratio
from tests.benchmarks.measuring import Settings, Timing, peak_bytes, side_by_side
from tests.benchmarks.reporting import TIME_HEADINGS, Report, megabytes, milliseconds, time_cells

BATCH, LEAVES = 25, 40
LABELS = {
    "stock": "transformer",
    "tree": "Tree-Transformer",
    "tree, all nodes": "Tree-Transformer, loss at all nodes and leaves",
    "tree_lstm": "Tree-LSTM, batched by height",
    "recursive": "Tree-LSTM, a call for each node",
}


def run(settings: Settings) -> Report:
    """Times training steps at the paper's tiny size, then steps and inference for one sentence at a time."""
    size, leaves = settings.choose((BATCH, LEAVES), (2, 6))
    nodes = leaves - 1
    words = settings.choose(WORDS, 1_000)
    task, tagged = Task(words=words), Task(all_nodes=True, words=words)
    trees, sequences = tree_batch(task, size, leaves), sequence_batch(task, size, leaves + nodes)
    steps, passes = {}, {}
    for name in LABELS:
        architecture = name.split(",")[0]
        step = training_step(architecture, tagged if name.endswith("all nodes") else task)
        batch = sequences if architecture == "stock" else trees
        steps[name] = functools.partial(step, batch)
        passes[name] = functools.partial(step.passes, batch)
    timing, without_update = timed(steps, settings), timed(passes, settings)
    rows = [("training step", "positions", *TIME_HEADINGS, "without update", "peak MB")]
    for name, label in LABELS.items():
        positions = f"{leaves + nodes}" if name == "stock" else f"{leaves} + {nodes}"
        own = milliseconds(without_update[name].processor_median)
        rows.append((label, positions, *time_cells(timing[name]), own, megabytes(peak_bytes(steps[name]))))
    lengths, picture = over_lengths(settings)
    tree = timing["tree"].processor_median
    bare = {
        name: taken.processor_median / without_update["stock"].processor_median
        for name, taken in without_update.items()
    }
    stock = "training step of the Tree-Transformer, times as long as the stock transformer's"
    recursive = "training step, times as fast as a Tree-LSTM with a call for each node"
    return Report(
        "classification_step",
        f"b={size}, n={leaves} leaves, m={nodes} nodes, d=64, 2 layers, 4 heads, {len(task.source_dictionary)} words",
        [
            time_ratio("ratio", timing["tree"], timing["stock"], 1.15, at_most=True, what=stock, processor=True),
            time_ratio("speedup_tree_lstm", timing["tree"], timing["recursive"], 5, what=recursive, processor=True),
        ],
        [rows, *lengths],
        [
            "A step: forward pass, cross-entropy of the roots, backward pass, Adam's update of all words. "
            "Figures compare processor time.\n"
            f"Without the update, the Tree-Transformer takes {bare['tree']:.2f} times as long as the transformer, "
            f"and {bare['tree, all nodes']:.2f} times with the loss at all nodes.\n"
            "A step of the Tree-LSTM batched by height takes "
            f"{timing['tree_lstm'].processor_median / tree:.2f} times as long as one of the Tree-Transformer.\n"
            f"{picture}"
        ],
    )


def timed(works: dict[str, Callable[[], object]], settings: Settings) -> dict[str, Timing]:
    """Times all of them side by side, and the recursive one, which is far slower, less often."""
    fast = {name: work for name, work in works.items() if name != "recursive"}
    timing = side_by_side(fast, settings.choose(31, 1), warm_up=3)
    return timing | side_by_side({"recursive": works["recursive"]}, settings.choose(5, 1))
