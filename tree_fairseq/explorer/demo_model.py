"""Finds the model that comes with the package, so that the explorer works right after the installation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from tree_fairseq.errors import DataFolderError

FOLDER = Path(__file__).resolve().parent / "demo"

_MODEL, _SENTENCES, _BASELINE = "model.safetensors", "sentences.txt", "baseline"


@dataclass(frozen=True)
class DemoModel:
    """A released model (``tree-fairseq release``).

    Attributes:
        folder: its dictionaries and ``tree.json``
        model: its weights
        sentences: a file with sentences for it, one a line
        baseline: the weights of a model to compare it with, in a folder with its dictionaries, or None
    """

    folder: Path
    model: Path
    sentences: Path
    baseline: Optional[Path] = None


def demo_model(folder: Path = FOLDER) -> DemoModel:
    """Finds the model that comes with the package.

    Its folder is one that ``tree-fairseq release`` wrote, with ``sentences.txt`` beside the model; a folder
    ``baseline`` in it may have another model. Raises DataFolderError if there is no model, as in a checkout where none
    has been made.
    """
    found = _files(folder)
    if not found.model.is_file() or not found.sentences.is_file():
        raise DataFolderError(
            f"there is no demo model in {folder}. Explore a model of yours (tree-fairseq explore data-bin --path "
            f"checkpoint.pt), or make one: tree-fairseq release data-bin --path checkpoint.pt --output {folder}, and "
            f"sentences for it, one a line, in {found.sentences}"
        )
    return found


def demo_arguments(folder: Path = FOLDER) -> list[str]:
    """Returns the arguments that ``--demo`` stands for, whether or not there is such a model."""
    demo = _files(folder)
    arguments = [str(demo.folder), "--path", str(demo.model), "--input", str(demo.sentences)]
    if demo.baseline is not None:
        arguments += ["--baseline", str(demo.baseline), str(demo.baseline.parent)]
    return arguments


def _files(folder: Path) -> DemoModel:
    baseline = folder / _BASELINE / _MODEL
    return DemoModel(folder, folder / _MODEL, folder / _SENTENCES, baseline if baseline.is_file() else None)
