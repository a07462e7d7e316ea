"""A training step on one document over the number of its sentences: rows of sentences against the document as one
forest.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Callable

import numpy as np

from tests.benchmarks.classification_models import LABELS, Task, build, sequence_batch
from tests.benchmarks.measuring import Settings, peak_bytes, side_by_side
from tests.benchmarks.random_trees import random_tree
from tests.benchmarks.reporting import Figure, Report, megabytes, milliseconds
from tests.benchmarks.translation_models import TrainingStep
from tree_fairseq.classification.criterion import TreeClassificationCriterion
from tree_fairseq.classification.sentence_trees import SentenceTree, collate_sentences
from tree_fairseq.drawing.plots import Line, Plot, plots_to_svg
from tree_fairseq.nn.tree_batch import NodeArrays

# Few words, as the update of a large table would hide what grows with the document.
LEAVES, NODES, WORDS = 20, 13, 1_000
SENTENCES = (10, 20, 50, 100, 150, 200)
MEMORY_LIMIT = 2e9
NAMES = {
    "sentence": "--leaf-attention sentence",
    "document": "--leaf-attention document",
    "dense": "document as one forest",
}
PICTURE = "documents.svg"


class Steps:
    """Training steps of the Tree-Transformer of tiny size, as a classifier of documents of equally long sentences.

    Args:
        task: of the models
    """

    def __init__(self, task: Task):
        self.task = task
        criterion = TreeClassificationCriterion(task, label_smoothing=0.0)
        attention = {"sentence": "sentence", "document": "document", "dense": "document"}
        self.steps = {
            name: TrainingStep(build("tree", task, leaf_attention=kind), task, criterion)
            for name, kind in attention.items()
        }

    def works(self, sentences: int) -> dict[str, Callable[[], object]]:
        """A step of each on the same document of so many sentences."""
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
    """The trees of equally long sentences, one after another in one text."""
    offset = np.repeat(np.arange(len(trees), dtype=np.int32) * LEAVES, [len(tree) for tree in trees])
    label, start, end, depth = (
        np.concatenate([getattr(tree, name) for tree in trees]) for name in ("label", "start", "end", "depth")
    )
    return NodeArrays(label, start + offset, end + offset, depth)


def run(settings: Settings) -> Report:
    """Memory and time over the number of sentences, in a table and a picture."""
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
    path = Path(settings.output) / PICTURE
    path.parent.mkdir(parents=True, exist_ok=True)
    plots = [
        plot("Peak memory of a training step", "MB", memory, 1e-6),
        plot("Training step", "milliseconds", seconds, 1e3),
    ]
    path.write_text(plots_to_svg(plots), encoding="utf-8", newline="\n")
    half = max(number for number in numbers if 2 * number <= most)
    return Report(
        "documents",
        f"one document of {LEAVES} leaves and {NODES} nodes a sentence, d=64, 2 layers, 4 heads, {WORDS} words",
        [
            Figure(
                "memory_growth", memory["sentence"][most] / memory["sentence"][half] / (most / half), 1.05, at_most=True
            ),
            Figure("memory_saving", memory["dense"][widest] / memory["document"][widest], 10),
            Figure("speedup", seconds["dense"][widest] / seconds["document"][widest], 5),
        ],
        [table("peak MB", numbers, memory, megabytes), table("processor ms", numbers, seconds, milliseconds)],
        [
            "A step: forward pass, cross-entropy of the root, backward pass, Adam's update. Peak MB: the most that "
            "torch's CPU "
            "allocator had in use at once beyond what was in use before the step, by torch's profiler.\n"
            f"memory_growth: with {NAMES['sentence']}, {most} sentences against {half}, divided by {most / half:g}.\n"
            f"memory_saving and speedup: {NAMES['document']} against the same function of the document as one forest, "
            f"{widest} sentences.\n"
            + "\n".join(f"{NAMES[name]}: {straight_line(memory[name])}" for name in ("sentence", "document"))
            + f"\nDrawn in {path}"
        ],
    )


def fits(measured: dict[int, int], number: int) -> bool:
    """Whether what grows with the square of the number of sentences stays within the limit."""
    if not measured:
        return True
    last = max(measured)
    return measured[last] * (number / last) ** 2 < MEMORY_LIMIT


def straight_line(measured: dict[int, int]) -> str:
    """How well bytes follow a straight line."""
    numbers, taken = (np.array(values, float) for values in zip(*measured.items()))
    slope, constant = np.polyfit(numbers, taken, 1)
    unexplained = ((taken - constant - slope * numbers) ** 2).sum() / ((taken - taken.mean()) ** 2).sum()
    return f"{slope / 1e6:.2f} MB a sentence, R^2 = {1 - unexplained:.5f}"


def table(title: str, numbers: Sequence[int], measured: dict[str, dict], shown: Callable) -> list[tuple[str, ...]]:
    """A row for each number of sentences."""
    rows = [(f"sentences: {title}", *NAMES.values())]
    cells = lambda number: (shown(measured[name][number]) if number in measured[name] else "not run" for name in NAMES)
    return rows + [(str(number), *cells(number)) for number in numbers]


def plot(title: str, unit: str, measured: dict[str, dict], scale: float) -> Plot:
    """The same as lines."""
    lines = [
        Line(NAMES[name], [(number, scale * value) for number, value in values.items()])
        for name, values in measured.items()
    ]
    return Plot(title, "sentences", unit, lines)
