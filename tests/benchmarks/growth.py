"""Measures how a training step grows with the length of sentences, and what trees of the worst shapes cost."""

from __future__ import annotations

import multiprocessing
import random
import resource
import time
from collections.abc import Sequence
from typing import Callable

import numpy as np
import torch

import tree_fairseq
from tests.benchmarks.figures import Figure
from tests.benchmarks.growth_methods import METHODS, Method
from tests.benchmarks.measuring import Settings, side_by_side
from tests.benchmarks.random_trees import random_tree
from tests.benchmarks.reporting import Report
from tree_fairseq.nn.tree_batch import NodeArrays
from tree_fairseq.trees.spans import reduced_depth

LABELS, SENTENCES = 60, 2
LENGTHS, WORST = (25, 50, 100, 200, 400), 1000
Measure = Callable[[Method, Sequence[NodeArrays], int, int], tuple[float, int]]


def right(leaves: int) -> list[tuple[int, int]]:
    """Spans of a chain of branches to the right."""
    return [(start, leaves) for start in range(leaves - 1)]


def left(leaves: int) -> list[tuple[int, int]]:
    """Spans of a chain of branches to the left."""
    return [(0, end) for end in range(leaves, 1, -1)]


def comb(leaves: int) -> list[tuple[int, int]]:
    """Spans that lose a leaf on the left and on the right in turn."""
    return [((k + 1) // 2, leaves - k // 2) for k in range(leaves - 1)]


def star(leaves: int) -> list[tuple[int, int]]:
    """One node over all leaves."""
    return [(0, leaves)]


def binary(leaves: int) -> list[tuple[int, int]]:
    """Spans that are halved down to two leaves."""
    spans, stack = [], [(0, leaves)]
    while stack:
        start, end = stack.pop()
        if end - start > 1:
            spans.append((start, end))
            middle = (start + end) // 2
            stack += [(middle, end), (start, middle)]
    return spans


SHAPES = {"right-branching": right, "left-branching": left, "comb": comb, "star": star, "full binary": binary}


def tree_of(spans: Sequence[tuple[int, int]]) -> NodeArrays:
    start, end = np.array(spans, np.int32).T
    return NodeArrays(np.full(len(spans), 5, np.int32), start, end, reduced_depth(start, end))


def run(settings: Settings) -> Report:
    """Measures ratios to the stock model by length, then time and memory of the worst shapes."""
    tree_fairseq.register()
    figures, tables = [], []
    for method in METHODS:
        rows, ratios = [(f"words, {method.name}", "step over stock, processor time", "smallest to largest")], []
        for leaves in settings.choose(LENGTHS, (4, 8)):
            generator, nodes = random.Random(0), max(1, leaves * 2 // 3)
            count = settings.choose(max(2, 800 // leaves), 2)
            trees = [random_tree(generator, leaves, nodes, LABELS) for _ in range(count)]
            ours, stock = method.works(trees, leaves)
            timing = side_by_side({"ours": ours, "stock": stock}, settings.choose(7, 1))
            pairs = zip(timing["ours"].processor_seconds, timing["stock"].processor_seconds)
            rounds = [own / other for own, other in pairs]
            ratios.append(timing["ours"].processor_median / timing["stock"].processor_median)
            rows.append((str(leaves), f"{ratios[-1]:.2f}", f"{min(rounds):.2f} to {max(rounds):.2f}"))
        tables.append(rows)
        what = "greatest over smallest ratio of a step to the stock one, from the shortest to the longest sentences"
        figures.append(Figure(f"{method.name}_growth", max(ratios) / min(ratios), 1.1, True, what))
        shapes = settings.choose(list(SHAPES), ["comb"] if method is METHODS[0] else [])
        if method.reads_trees and shapes:
            # A quick run measures in this process, whose memory is that of everything so far.
            measure = settings.choose(in_process, _measure)
            figures += worst_shapes(method, shapes, settings.choose(WORST, 20), tables, measure)
    return Report(
        "growth",
        f"tiny models; worst shapes: {SENTENCES} sentences of {settings.choose(WORST, 20)} words",
        figures,
        tables,
        ["Stock models have as many positions as leaves and nodes. Steps include the collating of trees. Memory is the "
         "largest resident memory of a process, which the interpreter and its libraries share."],
    )  # fmt: skip


def worst_shapes(method: Method, shapes: Sequence[str], leaves: int, tables: list, measure: Measure) -> list[Figure]:
    """Measures two steps on each shape, each model in a process of its own; adds a table."""
    rows = [(f"shape, {method.name}", "seconds, ours", "stock", "ratio", "MB, ours", "stock", "ratio")]
    times, memories = [], []
    for name in shapes:
        trees = [tree_of(SHAPES[name](leaves))] * SENTENCES
        (own, own_peak), (other, other_peak) = (measure(method, trees, leaves, place) for place in (0, 1))
        times.append(own / other)
        memories.append(own_peak / other_peak)
        rows.append(
            (name, f"{own:.2f}", f"{other:.2f}", f"{times[-1]:.2f}", f"{own_peak / 1e6:.0f}", f"{other_peak / 1e6:.0f}",
             f"{memories[-1]:.2f}")
        )  # fmt: skip
    tables.append(rows)
    return [
        Figure(f"{method.name}_time", max(times), 2, True, f"worst shape, {leaves} words: times as long as stock"),
        Figure(f"{method.name}_memory", max(memories), 1.5, True, f"worst shape, {leaves} words: times stock's memory"),
    ]


def in_process(method: Method, trees: Sequence[NodeArrays], leaves: int, place: int) -> tuple[float, int]:
    """Runs two steps in a new process: processor seconds of the second, and the peak of resident memory in bytes."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_measure, (method, trees, leaves, place))


def _measure(method: Method, trees: Sequence[NodeArrays], leaves: int, place: int) -> tuple[float, int]:
    torch.set_num_threads(1)
    tree_fairseq.register()
    work = method.works(trees, leaves)[place]
    work()
    begin = time.process_time()
    work()
    return time.process_time() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
