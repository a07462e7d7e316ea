"""Measures a training step on a document by its number of sentences: as rows of sentences, and as one forest."""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from typing import Callable

import numpy as np

from tests.benchmarks.classification_models import LABELS, Task, build, sequence_batch
from tests.benchmarks.figures import Figure, byte_ratio
from tests.benchmarks.measuring import Settings, peak_bytes, side_by_side
from tests.benchmarks.random_trees import random_tree
from tests.benchmarks.reporting import PEAK_NOTE, Report, megabytes, milliseconds, size_plot, size_table, write_picture
from tests.benchmarks.translation_models import TrainingStep
from tree_fairseq.classification.criterion import TreeClassificationCriterion
from tree_fairseq.classification.dataset import SentenceTree, collate_sentences
from tree_fairseq.nn.tree_batch import NodeArrays

# Few words, because the update of a large table would hide the growth with the document.
LEAVES, NODES, WORDS = 20, 13, 1_000
SENTENCES = (10, 20, 50, 100, 150, 200)
MEMORY_LIMIT = 2e9
NAMES = {
    "sentence": "--leaf-attention sentence",
    "document": "--leaf-attention document",
    "dense": "document as one forest",
}


class Steps:
    """Training steps of a tiny Tree-Transformer, as a classifier of documents with equally long sentences."""

    def __init__(self, task: Task):
        self.task = task
        criterion = TreeClassificationCriterion(task, label_smoothing=0.0)
        attention = {"sentence": "sentence", "document": "document", "dense": "document"}
        self.steps = {
            name: TrainingStep(build("tree", task, leaf_attention=kind), task, criterion)
            for name, kind in attention.items()
        }

    def works(self, sentences: int) -> dict[str, Callable[[], object]]:
        generator = random.Random(0)
        trees = [random_tree(generator, LEAVES, NODES, LABELS) for _ in range(sentences)]
        rows = [SentenceTree(k * LEAVES, LEAVES, tree) for k, tree in enumerate(trees)]
        whole = [SentenceTree(0, sentences * LEAVES, forest(trees))]
        batches = {name: self._batch(whole if name == "dense" else rows, sentences) for name in NAMES}
        return {name: functools.partial(step, batches[name]) for name, step in self.steps.items()}

    def _batch(self, rows: Sequence[SentenceTree], sentences: int) -> dict:
        batch = sequence_batch(self.task, 1, sentences * LEAVES)
        pad = self.task.source_dictionary.pad()
        text = batch["net_input"]["src_tokens"][0]
        batch["net_input"]["sentence_trees"] = collate_sentences([(text, rows)], pad, pad)
        return batch


def forest(trees: Sequence[NodeArrays]) -> NodeArrays:
    """Joins the trees of equally long sentences to a forest over one text."""
    offset = np.repeat(np.arange(len(trees), dtype=np.int32) * LEAVES, [len(tree) for tree in trees])
    label, start, end, depth = (
        np.concatenate([getattr(tree, name) for tree in trees]) for name in ("label", "start", "end", "depth")
    )
    return NodeArrays(label, start + offset, end + offset, depth)


def run(settings: Settings) -> Report:
    numbers = settings.choose(SENTENCES, (2, 4))
    steps = Steps(Task(words=WORDS))
    memory: dict[str, dict[int, int]] = {name: {} for name in NAMES}
    seconds: dict[str, dict[int, float]] = {name: {} for name in NAMES}
    for number in numbers:
        works = steps.works(number)
        if not fits(memory["dense"], number):
            del works["dense"]
        slow = {name: works.pop(name) for name in [*works] if name == "dense"}
        timing = side_by_side(works, settings.choose(7, 1)) | side_by_side(slow, settings.choose(2, 1))
        for name, work in {**works, **slow}.items():
            memory[name][number] = peak_bytes(work)
            seconds[name][number] = timing[name].processor_median
    most, widest = numbers[-1], max(memory["dense"])
    memory_by_name, seconds_by_name = ({NAMES[name]: values[name] for name in NAMES} for values in (memory, seconds))
    plots = [
        size_plot("Peak memory of a training step", "sentences", "MB", memory_by_name, 1e-6),
        size_plot("Training step", "sentences", "milliseconds", seconds_by_name, 1e3),
    ]
    path = write_picture(settings.output, "documents.svg", plots)
    half = max(number for number in numbers if 2 * number <= most)
    growth = memory["sentence"][most] / memory["sentence"][half] / (most / half)
    dense, own = seconds["dense"][widest], seconds["document"][widest]
    sizes = [f"{megabytes(memory['sentence'][number])} MB" for number in (most, half)]
    grown = f"memory of {most} sentences over {half}, divided by {most / half:g}"
    saved = "rows of sentences, times less memory than one forest"
    faster = "rows of sentences, times as fast as one forest"
    return Report(
        "documents",
        f"a document with {LEAVES} leaves and {NODES} nodes in a sentence, d=64, 2 layers, 4 heads, {WORDS} words",
        [
            Figure("memory_growth", growth, 1.05, True, grown, *sizes),
            byte_ratio("memory_saving", memory["document"][widest], memory["dense"][widest], 10, what=saved),
            Figure("speedup", dense / own, 5, False, faster, f"{milliseconds(own)} ms", f"{milliseconds(dense)} ms"),
        ],
        [
            size_table("sentences: peak MB", numbers, memory_by_name, megabytes),
            size_table("sentences: processor ms", numbers, seconds_by_name, milliseconds),
        ],
        [
            "A step: forward pass, cross-entropy of the root, backward pass, Adam's update.\n"
            + PEAK_NOTE
            + f"memory_growth: {NAMES['sentence']}, {most} sentences and {half}; the ratio is divided by "
            f"{most / half:g}.\n"
            f"memory_saving and speedup: {NAMES['document']} and the same function of the document as one forest, "
            f"{widest} sentences.\n"
            + "\n".join(f"{NAMES[name]}: {straight_line(memory[name])}" for name in ("sentence", "document"))
            + f"\nDrawn in {path}"
        ],
    )


def fits(measured: dict[int, int], number: int) -> bool:
    """Returns whether memory, which grows with the square of the number of sentences, stays within the limit."""
    if not measured:
        return True
    last = max(measured)
    return measured[last] * (number / last) ** 2 < MEMORY_LIMIT


def straight_line(measured: dict[int, int]) -> str:
    """Describes how well bytes follow a straight line."""
    numbers, taken = (np.array(values, float) for values in zip(*measured.items()))
    slope, constant = np.polyfit(numbers, taken, 1)
    unexplained = ((taken - constant - slope * numbers) ** 2).sum() / ((taken - taken.mean()) ** 2).sum()
    return f"{slope / 1e6:.2f} MB for each sentence, R^2 = {1 - unexplained:.5f}"
