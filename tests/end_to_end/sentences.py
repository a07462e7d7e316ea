"""Sentences and pairs of sentences to be classified or rated, and the commands on them."""

from __future__ import annotations

import random
from pathlib import Path

from tests.end_to_end.commands import run

TASK = ("--task", "tree_sentence_classification")
GOOD, BAD, PLAIN = ("good", "great"), ("bad", "dull"), ("a", "film", "it", "is")
KINDS = {
    "sentence": ("--criterion", "tree_classification", "--best-checkpoint-metric", "matthews"),
    "pair": ("--criterion", "tree_classification", "--best-checkpoint-metric", "f1"),
    "rated": ("--criterion", "tree_regression", "--best-checkpoint-metric", "pearson"),
}
FORMATS = {"sentence": (), "pair": ("--input-format", "pair"), "rated": ("--input-format", "pair", "--regression")}


def row(chooser: random.Random, kind: str) -> str:
    """A sentence is good or bad; a pair is alike if both are."""
    tells = [chooser.choice((GOOD, BAD)) for _ in range(1 if kind == "sentence" else 2)]
    texts = [" ".join([*chooser.choices(PLAIN, k=chooser.randint(0, 3)), chooser.choice(words)]) for words in tells]
    alike = tells[0] is (GOOD if kind == "sentence" else tells[-1])
    return "\t".join([*texts, f"{4.5 * alike:.3f}" if kind == "rated" else str(int(alike))])


def write_rows(folder: Path, kind: str, sizes: tuple[int, int, int] = (64, 13, 11)) -> Path:
    folder.mkdir(exist_ok=True)
    chooser = random.Random(kind)
    for split, size in zip(("train", "valid", "test"), sizes):
        (folder / f"{split}.tsv").write_text("".join(f"{row(chooser, kind)}\n" for _ in range(size)))
    return folder


def preprocess(text: Path, kind: str, destination: Path) -> Path:
    """Runs ``fairseq-preprocess`` on rows of a kind; returns the folder of the data."""
    prefixes = [part for split in ("train", "valid", "test") for part in (f"--{split}pref", text / split)]
    run("preprocess", *TASK, *FORMATS[kind], *prefixes, "--destdir", destination)
    return destination


def train(data: Path, folder: Path, kind: str, *flags: object, epochs: int = 2) -> str:
    return run(
        "train", data, *TASK, "--arch", "treeformer_classifier_tiny", "--treeformer-height", 3, *KINDS[kind],
        "--optimizer", "adam", "--lr", "3e-3", "--batch-size", 8, "--max-epoch", epochs, "--num-workers", 0,
        "--seed", 1, "--maximize-best-checkpoint-metric", "--no-epoch-checkpoints", "--log-format", "simple",
        "--save-dir", folder, "--cpu", *flags,
    )  # fmt: skip
