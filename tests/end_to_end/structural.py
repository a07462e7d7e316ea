"""Systems that translate between sequences and symbol trees, on a corpus of little programs."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tests.end_to_end.commands import LABEL_SMOOTHING, prefixes_of, run, train_by
from tests.end_to_end.shared import Shared
from tests.end_to_end.tiny_programs import write_corpus

TASK = ("--task", "structural_translation")


class Modality(NamedTuple):
    """Which sides are trees."""

    source: str
    target: str


MODALITIES = {
    "sequence-to-tree": Modality("sequence", "tree"),
    "tree-to-tree": Modality("tree", "tree"),
    "tree-to-sequence": Modality("tree", "sequence"),
    "constituency-to-tree": Modality("constituency", "tree"),
}


class System(NamedTuple):
    modality: Modality
    text: Path
    data: Path
    folder: Path
    log: str

    @property
    def best(self) -> Path:
        return self.folder / "checkpoint_best.pt"


def preprocess(text: Path, destination: Path, modality: Modality, *arguments: object) -> Path:
    parser = ("--tree-parser", "right-branching") if modality.source == "constituency" else ()
    sides = ("--source-modality", modality.source, "--target-modality", modality.target)
    flags = ("--destdir", destination, *sides, *parser, *arguments)
    run("preprocess", *TASK, "-s", "source", "-t", "target", *prefixes_of(text), *flags)
    return destination


def train(data: Path, folder: Path, *arguments: object, arch="tree_positional_transformer_tiny", task=TASK) -> str:
    """Runs ``fairseq-train`` for two epochs, or as the arguments say; returns its log."""
    flags = {"--task": task[1], "--arch": arch, "--lr": "3e-3", "--batch-size": 16, "--max-epoch": 2}
    return train_by({**flags, **LABEL_SMOOTHING}, data, folder, *arguments)


def texts_for(corpus: Path, folder: Path, modality: Modality) -> Path:
    """The corpus with the sides that a modality wants; a tree source is the program itself."""
    folder.mkdir()
    for split in ("train", "valid", "test"):
        for side, kind in (("source", modality.source), ("target", modality.target)):
            lines = (corpus / f"{split}.{'lf' if kind == 'tree' else 'nl'}").read_bytes()
            (folder / f"{split}.{side}").write_bytes(lines)
    return folder


def system_of(shared: Shared, name: str) -> System:
    modality = MODALITIES[name]

    def make(folder: Path) -> str:
        data = preprocess(texts_for(corpus, folder / "text", modality), folder / "bin", modality)
        return train(data, folder / "run", "--eval-accuracy", "--max-epoch", 3)

    corpus, _ = shared("programs", lambda folder: write_corpus(folder))
    folder, log = shared(name, make)
    return System(modality, folder / "text", folder / "bin", folder / "run", log)
