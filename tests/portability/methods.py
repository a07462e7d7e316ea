"""A folder, a short training and outputs of each method, made by fairseq's own commands under one Python.

``python -m tests.portability.methods write TEXT`` writes the corpora, once for all. ``... make TEXT OWN`` preprocesses
and trains in the folder OWN. ``... read RESULT OTHER...`` generates from the folders and checkpoints in each OTHER,
goes on training from them, and writes what came out as JSON.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

UPDATES = 5
TRAIN = (
    *("--optimizer", "adam", "--lr", "5e-3", "--lr-scheduler", "inverse_sqrt", "--warmup-updates", 4, "--dropout", 0),
    *("--batch-size", 16, "--num-workers", 0, "--seed", 7, "--cpu", "--no-epoch-checkpoints", "--disable-validation"),
)
TRANSLATE = ("--criterion", "label_smoothed_cross_entropy", "--label-smoothing", 0.1)
SMALL = (
    *("--encoder-embed-dim", 32, "--encoder-ffn-embed-dim", 64, "--encoder-layers", 2, "--encoder-attention-heads", 2),
    *("--decoder-embed-dim", 32, "--decoder-ffn-embed-dim", 64, "--decoder-layers", 2, "--decoder-attention-heads", 2),
)


class Method(NamedTuple):
    text: str  # the corpus
    task: tuple  # its flags
    preprocess: tuple  # further flags of ``fairseq-preprocess``
    train: tuple  # further flags of ``fairseq-train``
    generate: tuple = ("--beam", 4, "--max-len-b", 20)  # further flags of ``fairseq-generate``


SIDES = ("--source-modality", "sequence", "--target-modality", "tree")
BRACKETS = ("-s", "en", "-t", "de", "--tree-parser", "brackets")
METHODS = {
    "tree_transformer": Method(
        "trees", ("--task", "tree_translation"), BRACKETS, ("--arch", "tree_transformer_tiny", *TRANSLATE)
    ),
    "transformer": Method(
        "trees", ("--task", "tree_translation"), BRACKETS, ("--arch", "transformer", *SMALL, *TRANSLATE)
    ),
    "treeformer": Method(
        "words", ("--task", "translation"), ("-s", "en", "-t", "de"), ("--arch", "treeformer_tiny", *TRANSLATE)
    ),
    "tree_positional": Method(
        "programs",
        ("--task", "structural_translation"),
        ("-s", "nl", "-t", "lf", *SIDES),
        ("--arch", "tree_positional_transformer_tiny", *TRANSLATE),
    ),
    "tree_insertion": Method(
        "programs",
        ("--task", "tree_insertion"),
        ("-s", "nl", "-t", "lf", "--target-notation", "bracket"),
        ("--arch", "tree_insertion_transformer_tiny", "--criterion", "slot_kl_divergence"),
        (),
    ),
    "classification": Method(
        "classes",
        ("--task", "tree_classification"),
        ("--input-format", "trees", "--tree-parser", "right-branching"),
        ("--arch", "tree_transformer_classifier_tiny", "--criterion", "tree_classification"),
        ("--scoring", "classification"),
    ),
}


def write(text: Path) -> None:
    from tests.end_to_end import tiny_classes, tiny_corpus, tiny_programs

    tiny_corpus.write_corpus(text / "trees")
    tiny_corpus.write_corpus(text / "words", bracketed=False)
    tiny_programs.write_corpus(text / "programs")
    tiny_classes.write_examples(text / "classes", "trees")


def make(text: Path, own: Path) -> None:
    """Preprocesses and trains each method; its data is ``OWN/METHOD/data-bin``, its checkpoint in ``run``."""
    from tests.end_to_end.commands import run

    for name, method in METHODS.items():
        prefixes = [
            part for split in ("train", "valid", "test") for part in (f"--{split}pref", text / method.text / split)
        ]
        data = own / name / "data-bin"
        run("preprocess", *method.task, *method.preprocess, *prefixes, "--destdir", data)
        train(name, data, own / name / "run", UPDATES)


def train(name: str, data: Path, folder: Path, updates: int) -> str:
    """Trains up to a number of updates, from where the folder's checkpoint is; returns the log."""
    from tests.end_to_end.commands import run

    method = METHODS[name]
    return run("train", data, *method.task, *method.train, *TRAIN, "--save-dir", folder, "--max-update", updates)


def read(result: Path, *others: Path) -> None:
    """Writes what :func:`outputs` finds for each of the others, in their order."""
    found = [outputs(other, result.with_suffix("")) for other in others]
    result.write_text(json.dumps(found), encoding="utf-8")


def outputs(other: Path, scratch: Path) -> dict:
    """The digests of the files of all folders, the hypotheses of all methods, and the losses of resumed trainings."""
    import fairseq

    from tests.end_to_end.commands import hypotheses, run

    found: dict = {"fairseq": fairseq.__version__, "files": {}, "hypotheses": {}, "resumed": {}}
    for name, method in METHODS.items():
        folder = other / name
        found["files"][name] = {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted((folder / "data-bin").iterdir())
            if path.suffix not in (".log", ".lock")
        }
        checkpoint = folder / "run/checkpoint_last.pt"
        output = run(
            "generate", folder / "data-bin", *method.task, "--path", checkpoint, "--cpu", "--batch-size", 8,
            *method.generate,
        )  # fmt: skip
        found["hypotheses"][name] = hypotheses(output)
        shutil.copytree(folder / "run", scratch)
        log = train(name, folder / "data-bin", scratch, UPDATES + 2)
        found["resumed"][name] = [
            bool(re.search(rf"Loaded checkpoint .* @ {UPDATES} updates", log)),
            *map(float, re.findall(r"train \| .*?\bloss ([\d.]+).*?num_updates 7\b", log)),
        ]
        shutil.rmtree(scratch)
    return found


if __name__ == "__main__":
    import fairseq  # noqa: F401  the plugin registers only where fairseq is

    import tree_fairseq

    tree_fairseq.register()
    {"write": write, "make": make, "read": read}[sys.argv[1]](*map(Path, sys.argv[2:]))
