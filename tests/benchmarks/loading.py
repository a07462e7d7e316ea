"""Loading and collating a batch with trees against the training step on it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from fairseq_cli import preprocess

from tests.benchmarks.commands import preprocess_arguments, quiet, training_task
from tests.benchmarks.corpora import ParallelText
from tests.benchmarks.measuring import Settings, side_by_side
from tests.benchmarks.reporting import Figure, Report, milliseconds
from tests.benchmarks.translation_models import WORDS, TrainingStep, build
from tree_fairseq.nn.tasks import TreeTranslationTask

LINES, LEAVES, NODES, MAX_TOKENS = 4_000, 30, 20, 4_000


def run(settings: Settings) -> Report:
    """Times both on a batch of sentences of middling length, and the batch without trees for comparison."""
    with tempfile.TemporaryDirectory() as folder, quiet():
        task = prepared_task(Path(folder), settings)
        dataset = task.dataset("train")
        batches = dataset.batch_by_size(dataset.ordered_indices(), max_tokens=settings.choose(MAX_TOKENS, 200))
        indices = batches[len(batches) // 2]
        step = TrainingStep(build("tree_transformer_iwslt_de_en", task), task)
        batch = dataset.collater([dataset[index] for index in indices])
        pairs = dataset.dataset
        works = {
            "load": lambda: dataset.collater([dataset[index] for index in indices]),
            "stock": lambda: pairs.collater([pairs[index] for index in indices]),
            "step": lambda: step(batch),
        }
        timing = side_by_side(works, settings.choose(5, 1))
    rows = [("a batch", "ms", "fastest to slowest", "processor ms", "share of the step")]
    labels = {"load": "items with trees, collated", "stock": "items without trees, collated", "step": "training step"}
    for name, label in labels.items():
        taken = timing[name]
        cells = (milliseconds(taken.median), taken.spread, milliseconds(taken.processor_median))
        rows.append((label, *cells, f"{taken.median / timing['step'].median:.4f}"))
    tokens = batch["net_input"]["src_tokens"].numel()
    return Report(
        "loading",
        f"a batch of {tokens} source tokens in {len(indices)} sentences; about {LEAVES} leaves and {NODES} nodes a "
        "sentence",
        [Figure("share_of_step", timing["load"].median / timing["step"].median, 0.05, at_most=True)],
        [rows],
        [
            "The files are memory-mapped and have been read before; one process loads and trains. Step of "
            "tree_transformer_iwslt_de_en."
        ],
    )


def prepared_task(folder: Path, settings: Settings) -> TreeTranslationTask:
    """The task on a preprocessed folder, training set loaded."""
    text = ParallelText(folder, settings.choose(LINES, 100), LEAVES, NODES, vocabulary=WORDS)
    destination = folder / "data-bin"
    preprocess.main(preprocess_arguments(text.trees, destination, "--joined-dictionary", "--tree-parser", "brackets"))
    return training_task(destination)
