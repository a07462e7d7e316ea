"""One corpus, one preprocessing and one short training for all tests of the real commands."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.end_to_end.commands import LABEL_SMOOTHING, prefixes_of, run, train_by
from tests.end_to_end.tiny_corpus import write_corpus

TASK = ("--task", "tree_translation")
STOCK_SIZES = (
    *("--encoder-embed-dim", 64, "--encoder-ffn-embed-dim", 128, "--encoder-layers", 2, "--encoder-attention-heads", 4),
    *("--decoder-embed-dim", 64, "--decoder-ffn-embed-dim", 128, "--decoder-layers", 2, "--decoder-attention-heads", 4),
)


@dataclass(frozen=True)
class Training:
    data: Path  # preprocessed folder
    folder: Path  # its checkpoints
    log: str  # what it said

    @property
    def best(self) -> Path:
        return self.folder / "checkpoint_best.pt"


def preprocess(source: Path, destination: Path, *arguments: object, parser: str = "brackets") -> str:
    flags = ("--destdir", destination, "--tree-parser", parser, *arguments)
    return run("preprocess", *TASK, "-s", "en", "-t", "de", *prefixes_of(source), *flags)


def train(data: object, folder: Path, *arguments: object, arch: str = "tree_transformer_tiny") -> Training:
    """Runs ``fairseq-train`` for two epochs of five updates, or as the arguments say."""
    defaults = {"--task": TASK[1], "--arch": arch, **LABEL_SMOOTHING, "--max-tokens": 320, "--max-epoch": 2}
    log = train_by(defaults, data, folder, *arguments)
    first_folder = Path(str(data).split(":")[0])
    return Training(first_folder, folder, log)


@pytest.fixture(scope="session")
def corpus(shared) -> Path:
    """Text files ``{train,valid,test}.{en,de}``, the English in brackets."""
    return shared("corpus", lambda folder: write_corpus(folder))[0]


@pytest.fixture(scope="session")
def data_bin(corpus, shared) -> Path:
    return shared("data-bin", lambda folder: preprocess(corpus, folder))[0]


@pytest.fixture(scope="session")
def trained(data_bin, shared) -> Training:
    """A Tree-Transformer after a few epochs; it has saved in the middle of the first, too."""
    logging.getLogger("fairseq").setLevel(logging.NOTSET)
    flags = ("--max-epoch", 4, "--save-interval-updates", 3)
    return Training(data_bin, *shared("trained", lambda folder: train(data_bin, folder, *flags).log))


@pytest.fixture(scope="session")
def stock_trained(data_bin, shared) -> Training:
    """A stock transformer of the same size, trained on the same folder under the same task."""
    flags = (*STOCK_SIZES, "--max-epoch", 1)
    return Training(data_bin, *shared("stock", lambda folder: train(data_bin, folder, *flags, arch="transformer").log))
