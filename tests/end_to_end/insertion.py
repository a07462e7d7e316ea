"""Systems that grow trees by insertions, and their baselines, on a corpus of little programs."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tests.end_to_end.commands import lines_of, prefixes_of, run, train_by
from tests.end_to_end.shared import Shared
from tests.end_to_end.tiny_programs import write_corpus
from tree_fairseq.trees.notations import notation_named

TASK = ("--task", "tree_insertion")
BRACKET = notation_named("bracket")
CROSS_ENTROPY = ("--criterion", "label_smoothed_cross_entropy", "--label-smoothing", 0.1)
SEQUENCES = ("--arch", "sequence_insertion_transformer_tiny")
PARSED, TREE_ENCODER = ("--tree-parser", "right-branching"), ("--insertion-encoder", "tree")
# Flags of preprocessing and of training.
TREES = {
    "numbered": ((), ("--eval-accuracy", "--best-checkpoint-metric", "accuracy", "--maximize-best-checkpoint-metric")),
    "parsed source": (PARSED, TREE_ENCODER),
    "absolute positions": ((), ("--absolute-positions", "--max-target-positions", 40)),
}
BASELINES = {
    "left to right": ((), ("--arch", "insertion_left_to_right_tiny", *CROSS_ENTROPY)),
    "left to right, tree": (PARSED, ("--arch", "insertion_left_to_right_tiny", *TREE_ENCODER, *CROSS_ENTROPY)),
    "binary": ((), SEQUENCES),
    "uniform": ((), (*SEQUENCES, "--target-distribution", "uniform")),
    "tree gru": ((), ("--arch", "tree_gru_tiny", *CROSS_ENTROPY)),
}
KINDS = {**TREES, **BASELINES}


class System(NamedTuple):
    text: Path
    data: Path
    folder: Path
    log: str

    @property
    def best(self) -> Path:
        return self.folder / "checkpoint_best.pt"


def preprocess(text: Path, destination: Path, *arguments: object) -> Path:
    flags = ("--destdir", destination, "--target-notation", "bracket", "--trajectories", 2, *arguments)
    run("preprocess", *TASK, "-s", "nl", "-t", "lf", *prefixes_of(text), *flags)
    return destination


def train(data: Path, folder: Path, *arguments: object) -> str:
    """Runs ``fairseq-train`` for four epochs, or as the arguments say; returns its log."""
    defaults = {
        "--task": TASK[1], "--arch": "tree_insertion_transformer_tiny", "--criterion": "slot_kl_divergence",
        "--batch-size": 16, "--max-epoch": 4,
    }  # fmt: skip
    return train_by(defaults, data, folder, *arguments)


def system_of(shared: Shared, kind: str) -> System:
    """A trained system; those that are preprocessed alike have the same folder of data."""
    at_first, later = KINDS[kind]
    text, _ = shared("programs", lambda folder: write_corpus(folder))
    name = "-".join(word.strip("-") for word in ("insertion", *at_first))
    data, _ = shared(name, lambda folder: preprocess(text, folder, *at_first))
    folder, log = shared(f"insertion {kind}", lambda folder: train(data, folder, *later))
    return System(text, data, folder, log)


def generate(system: System, *arguments: object) -> str:
    return run("generate", system.data, *TASK, "--path", system.best, "--cpu", *arguments)


def steps_and_marks(output: str) -> dict[int, tuple[int, list[str]]]:
    found = {number: line.split() for number, line in lines_of("I", output).items()}
    return {number: (int(steps), marks) for number, (steps, *marks) in found.items()}
