"""Compares the time to load and collate a batch with trees with the training step on it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from fairseq_cli import preprocess

from tests.benchmarks.commands import preprocess_arguments, quiet, training_task
from tests.benchmarks.corpora import ParallelText
from tests.benchmarks.figures import time_ratio
from tests.benchmarks.measuring import Settings, side_by_side
from tests.benchmarks.reporting import TIME_HEADINGS, Report, time_cells
from tests.benchmarks.translation_models import WORDS, TrainingStep, build
from tree_fairseq.tasks.translation import TreeTranslationTask

LINES, LEAVES, NODES, MAX_TOKENS = 4_000, 30, 20, 4_000


def run(settings: Settings) -> Report:
    """Times both on a batch of sentences of medium length, and loading of the batch without trees."""
    with tempfile.TemporaryDirectory() as folder, quiet():
        task = prepared_task(Path(folder), settings)
        dataset = task.dataset("train")
        batches = dataset.batch_by_size(dataset.ordered_indices(), max_tokens=settings.choose(MAX_TOKENS, 200))
        indices = batches[len(batches) // 2]
        architecture = f"tree_transformer_{settings.choose('iwslt_de_en', 'tiny')}"
        step = TrainingStep(build(architecture, task), task)
        batch = dataset.collater([dataset[index] for index in indices])
        pairs = dataset.dataset
        works = {
            "load": lambda: dataset.collater([dataset[index] for index in indices]),
            "stock": lambda: pairs.collater([pairs[index] for index in indices]),
            "step": lambda: step(batch),
        }
        timing = side_by_side(works, settings.choose(5, 1))
    rows = [("a batch", *TIME_HEADINGS, "share of the step")]
    labels = {"load": "items with trees, collated", "stock": "items without trees, collated", "step": "training step"}
    for name, label in labels.items():
        share = timing[name].median / timing["step"].median
        rows.append((label, *time_cells(timing[name]), f"{share:.4f}"))
    tokens = batch["net_input"]["src_tokens"].numel()
    what = "loading and collating a batch, share of the training step on it"
    return Report(
        "loading",
        f"a batch of {tokens} source tokens in {len(indices)} sentences of about {LEAVES} leaves and {NODES} nodes",
        [time_ratio("share_of_step", timing["load"], timing["step"], 0.05, at_most=True, what=what, processor=True)],
        [rows],
        [
            "The files are memory-mapped and were read before. One process loads and trains. The step is that of "
            f"{architecture}."
        ],
    )


def prepared_task(folder: Path, settings: Settings, lines: int = LINES) -> TreeTranslationTask:
    text = ParallelText(folder, settings.choose(lines, 100), LEAVES, NODES, vocabulary=WORDS)
    destination = folder / "data-bin"
    preprocess.main(preprocess_arguments(text.trees, destination, "--joined-dictionary", "--tree-parser", "brackets"))
    return training_task(destination)
