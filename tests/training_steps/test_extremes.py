"""Training steps on very deep trees, long sentences, empty sources and extreme logits stay finite, and need no more
memory than attention does.

``TREE_FAIRSEQ_LONG_TESTS=1`` takes trees of depth 5,000 and sentences of 2,000 words.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.end_to_end import structural
from tests.nn.tiny import kept_storages
from tests.training_steps.cases import FIRST, Case, Folders, Step
from tree_fairseq.trees.bracket import write_forest
from tree_fairseq.trees.tree import Tree

IS_LONG = os.environ.get("TREE_FAIRSEQ_LONG_TESTS", "0") != "0"
SIZES = {"deep": 5000, "wide": 2000} if IS_LONG else {"deep": 120, "wide": 120}
INSERTIONS = 500 if IS_LONG else 40
"""Nodes of the trees that are inserted: finding the best insertions takes the third power of the depth."""
COMPANIONS = 0 if IS_LONG else 1
HALVES = (torch.float16, torch.bfloat16)
WITHOUT_ATTENTION = ("tree_lstm_classifier_tiny", "lstm_classifier_tiny")


def sentence(size: int, shape: str, word_tag: str = "NN", label: str = "S") -> str:
    """A tree over ``size`` words in brackets, as deep as can be, or flat; or nothing."""
    if shape == "empty":
        return ""
    words = [Tree(word_tag, [Tree(word)]) for word in random.Random(0).choices(("man", "dog", "the"), k=size)]
    tree = words[-1]
    for word in reversed(words[:-1]):
        tree = Tree(label, [word, tree])
    return write_forest((tree if shape == "deep" else Tree(label, words),))


def program(size: int, shape: str) -> str:
    names = random.Random(0).choices(("all", "in", "and"), k=size - 1)
    if shape == "deep":
        return f"{' '.join(f'( {name}' for name in names)} rivers {') ' * len(names)}".rstrip()
    return f"( and {' '.join(names)} )"


class ExtremeFolders(Folders):
    """Preprocessed folders; the first training example of each has a size and a shape: ``deep``, ``wide`` or ``empty``.

    A wide sentence has a target of the same length; a deep one, and a request for a deep program, are short on the
    other side. An empty example has a source without words, and a usual target.
    """

    sizes = (6, 4, 4)

    def __init__(self, base: Path, size: int, shape: str):
        super().__init__(base)
        self.size, self.shape = size, shape

    def first_examples(self, kind: str) -> list[tuple[str, ...]]:
        words = " ".join(random.Random(1).choices(("film", "plot", "good", "is"), k=self.size))
        request = {"wide": words, "deep": "show rivers", "empty": ""}[self.shape]
        translated = " ".join(["mann"] * (self.size if self.shape == "wide" else 3))
        document = words if self.shape == "deep" else words.replace("film", ".")
        return {
            "translation": [(sentence(self.size, self.shape), translated)],
            "programs": [(request, program(5 if self.shape == "empty" else self.size, self.shape))],
            "trees": [(sentence(self.size, "deep", "-", "1"),)],
            "documents": [(f"{document}\tpos",)],
            "sentence": [(f"{words}\t1",)],
            "rated": [(f"{words}\t{words}\t4.500",)],
        }[kind]

    def flags(self, name: str) -> tuple[object, ...]:
        # A program of one label with many children needs symbols of that arity, so wide ones are binarised.
        return ("--binarization", "lcrs") if self.shape == "wide" and name in structural.MODALITIES else ()

    def _preprocess(self, *arguments) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tree_fairseq.tree_insertion.preprocessing.MOST_NODES", self.size)
            super()._preprocess(*arguments)


def extreme_step(case: Case, folders: ExtremeFolders, companions: int = 1) -> Step:
    most = str(3 * folders.size + 10)
    target = () if "classif" in case.arch else ("--max-target-positions", most)
    flags = (*case.flags, "--max-source-positions", most, *target)
    step = Step(Case(case.name, case.folder, case.arch, flags), folders)
    dataset = step.task.dataset("train")
    step.batch = dataset.collater([dataset[number] for number in range(1 + companions)])
    return step


def named(cases: list[Case]):
    return pytest.mark.parametrize("case", cases, ids=[case.arch for case in cases])


@pytest.fixture(scope="module")
def extreme_folders(tmp_path_factory):
    made: dict[tuple[str, int], ExtremeFolders] = {}

    def folders(shape: str, size: int) -> ExtremeFolders:
        if (shape, size) not in made:
            made[shape, size] = ExtremeFolders(tmp_path_factory.mktemp(f"{shape}-{size}"), size, shape)
        return made[shape, size]

    return folders


def size_of(case: Case, shape: str) -> int:
    return min(SIZES[shape], INSERTIONS) if case.folder.startswith("insertion") else SIZES[shape]


def saved_bytes(step: Step) -> int:
    """Bytes that the forward pass keeps for the backward pass; runs both, and checks that all is finite."""
    with kept_storages() as kept:
        loss = step()
    assert loss.isfinite()
    assert not [name for name, gradient in step.gradients().items() if not gradient.isfinite().all()]
    return sum(kept.values())


@named(FIRST)
def test_a_deep_tree(case, extreme_folders):
    size = size_of(case, "deep")
    kept = []
    for length in (size, size // 2):
        step = extreme_step(case, extreme_folders("deep", length), COMPANIONS)
        weights = sum(weight.numel() * weight.element_size() for weight in step.model.parameters())
        kept.append(max(saved_bytes(step) - weights, 0) + 100_000)
    # Attention is quadratic.
    assert kept[0] <= (2.1 if case.arch in WITHOUT_ATTENTION else 4.1) * kept[1]


@named([case for case in FIRST if case.arch != "lstm"])  # stock, whose attention takes 16 GB for 2,000 words
def test_a_long_sentence(case, extreme_folders):
    step = extreme_step(case, extreme_folders("wide", size_of(case, "wide")), COMPANIONS)
    saved_bytes(step)


@named([case for case in FIRST if case.folder in ("translation", "sequence-to-tree", "insertion")])
def test_an_empty_source(case, extreme_folders):
    folders = extreme_folders("empty", 8)
    for companions in (0, 2):
        step = extreme_step(case, folders, companions)
        assert (step.batch["net_input"]["src_lengths"] <= 1).any()
        saved_bytes(step)


class Extreme(torch.autograd.Function):
    """Logits at the ends of half precision, with the gradient of those that they replace."""

    @staticmethod
    def forward(context, logits: Tensor) -> Tensor:
        # The greatest number of float16, also in bfloat16: losses are sums in single precision.
        return torch.where(logits > 0, 65504.0, -65504.0).to(logits)

    @staticmethod
    def backward(context, gradient: Tensor) -> Tensor:
        return gradient


def replace_logits(model, given, output):
    """A hook: the logits of any model of the package become extreme."""
    if isinstance(output, dict):
        return {**output, "logits": Extreme.apply(output["logits"])}
    if isinstance(output, tuple):
        return (Extreme.apply(output[0]), *output[1:])
    return Extreme.apply(output)


@named(FIRST)
def test_logits_at_the_ends_of_half_precision(case, folders):
    step = Step(case, folders).without_dropout()
    hook = step.model.register_forward_hook(replace_logits)
    for dtype in HALVES:
        loss = step.in_precision(dtype)()
        assert loss.isfinite(), dtype
        wrong = [name for name, gradient in step.gradients().items() if not gradient.isfinite().all()]
        assert not wrong, dtype
    hook.remove()
