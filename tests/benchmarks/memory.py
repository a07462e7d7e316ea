"""Compares the peak memory of training steps of all methods with that of stock models on as many positions."""

from __future__ import annotations

import functools
import random
import tempfile
from pathlib import Path
from typing import Callable

import torch

import tree_fairseq
from tests.benchmarks import classification_models
from tests.benchmarks.commands import quiet
from tests.benchmarks.figures import byte_ratio
from tests.benchmarks.insertion_corpus import write_domain
from tests.benchmarks.insertion_decoders import SEQUENCE, TREE, Decoder, Size, preprocess_domain
from tests.benchmarks.measuring import Settings, peak_bytes
from tests.benchmarks.reporting import PEAK_NOTE, Report, megabytes
from tests.benchmarks.structural_beam import ARITIES, task_for, vocabulary_of
from tests.benchmarks.translation_models import Task, TrainingStep, build, stock_batch, tree_batch
from tests.benchmarks.tree_positions import random_places

BATCH, LEAVES, NODES, TARGETS = 32, 30, 20, 30
SYMBOLS, CLASSIFIED = 30, 25

Steps = tuple[Callable[[], object], Callable[[], object]]


def run(settings: Settings) -> Report:
    tree_fairseq.register()
    size, sizes = settings.choose((BATCH, "iwslt_de_en"), (2, "tiny"))
    pairs: dict[str, tuple[str, float | None, Callable[[], Steps]]] = {
        "tree_transformer": ("Tree-Transformer, times the stock transformer's", 1.2, lambda: translation(size, sizes)),
        "classifier": ("Tree-Transformer as a classifier, times the stock transformer's", 1.2,
                       lambda: classification(settings.choose(CLASSIFIED, 2))),
        "tree_positional": ("tree positions, times the stock transformer's", 1.2, lambda: symbols(size)),
        "treeformer": ("Treeformer, which has ten times the memory to attend to, times the stock transformer's", None,
                       lambda: charts(size, sizes)),
    }  # fmt: skip
    rows, figures = [("training step", "ours, MB", "stock, MB")], []
    for name, (what, goal, make) in pairs.items():
        measured = [peak_bytes(warmed(step)) for step in make()]
        figures.append(byte_ratio(name, *measured, goal, True, f"memory of a training step: {what}"))
        rows.append((what.partition(", times")[0], *map(megabytes, measured)))
    measured = insertion(settings)
    what = "memory of a training step: insertion, times the left-to-right decoder's"
    figures.append(byte_ratio("insertion", *measured, 2, True, what))
    rows.append(("insertion", *map(megabytes, measured)))
    return Report(
        "memory",
        f"b={size}, n={LEAVES} leaves, m={NODES} nodes, {TARGETS} target tokens, sizes of {sizes}; classifiers: "
        f"b={settings.choose(CLASSIFIED, 2)}, n=40; symbol trees of {SYMBOLS} nodes",
        figures,
        [rows],
        ["The second step of each model, after Adam has made its moments.\n" + PEAK_NOTE],
    )


def warmed(step: Callable[[], object]) -> Callable[[], object]:
    """Runs a step once, so that the next one does not make Adam's moments, and returns it."""
    step()
    return step


def translation(size: int, sizes: str) -> Steps:
    task = Task()
    ours = step_of(f"tree_transformer_{sizes}", task, tree_batch(task, size, LEAVES, NODES, TARGETS))
    return ours, step_of(f"transformer_{sizes}", task, stock_batch(task, size, LEAVES + NODES, TARGETS))


def charts(size: int, sizes: str) -> Steps:
    task = Task()
    batch = stock_batch(task, size, LEAVES, TARGETS)
    return step_of(f"treeformer_{sizes}", task, batch), step_of(f"transformer_{sizes}", task, batch)


def step_of(architecture: str, task: Task, batch: dict) -> Callable[[], object]:
    return functools.partial(TrainingStep(build(architecture, task), task), batch)


def symbols(size: int) -> Steps:
    """Returns steps of semantic parsers that write as many symbols, with tree positions and without."""
    task = task_for(vocabulary_of(ARITIES, binarization="lcrs"))
    batch = stock_batch(task, size, LEAVES, SYMBOLS)
    # The columns are START, which has the root's place, and the symbols.
    chance = random.Random(0)
    trees = [random_places(chance, SYMBOLS) for _ in range(size)]
    names = ("tree_positional_transformer_semantic_parsing", "transformer_semantic_parsing")
    parents = torch.tensor([[-1, -1, *(parent + 1 for parent in tree[0][1:])] for tree in trees])
    branches = torch.tensor([[-1, *tree[1]] for tree in trees])
    shared = {**batch, "target": batch["target"] % len(task.target_dictionary)}
    batches = []
    for more in ({"previous_symbol_tree": {"parents": parents, "branches": branches}}, {}):
        previous = batch["net_input"]["prev_output_tokens"] % len(task.target_dictionary)
        batches.append({**shared, "net_input": {**batch["net_input"], "prev_output_tokens": previous, **more}})
    ours, stock = (
        functools.partial(TrainingStep(build(name, task, share_all_embeddings=False), task), batch)
        for name, batch in zip(names, batches)
    )
    return ours, stock


def classification(size: int) -> Steps:
    task = classification_models.Task()
    leaves = 40
    ours = classification_models.training_step("tree", task)
    stock = classification_models.training_step("stock", task)
    return (
        functools.partial(ours, classification_models.tree_batch(task, size, leaves)),
        functools.partial(stock, classification_models.sequence_batch(task, size, 2 * leaves - 1)),
    )


def insertion(settings: Settings) -> tuple[int, int]:
    """Returns the memory of steps of the decoder by insertion and of that from left to right, on the same trees."""
    with tempfile.TemporaryDirectory() as name, quiet():
        folder = Path(name)
        write_domain(folder / "text", settings.data, settings.choose(None, 8))
        preprocess_domain(folder / "text", folder / "bin")
        found = []
        for kind in (TREE, SEQUENCE):
            decoder = Decoder(kind, folder / "bin", settings.choose(Size(4, 256, 8), Size(1, 16, 2)))
            batches = decoder.batches("train")
            decoder.step(batches[0])
            # The largest of some batches: they differ in length.
            found.append(max(peak_bytes(functools.partial(decoder.step, batch)) for batch in batches[:4]))
    return found[0], found[1]
