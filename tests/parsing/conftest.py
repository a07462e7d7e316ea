"""Texts and models that several tests of parsing share."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.parsing.fake_parsers import LOG_VARIABLE
from tree_fairseq.parsing import corpus
from tree_fairseq.parsing.corpus import ParsedCorpus, parse_corpus
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.support.processes import ProcessPool

_ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def parse_log(tmp_path, monkeypatch) -> Path:
    """The file in which the fake parsers of this process and its children record sentences."""
    path = tmp_path / "parsed.log"
    monkeypatch.setenv(LOG_VARIABLE, str(path))
    return path


@pytest.fixture
def small_blocks(monkeypatch) -> None:
    monkeypatch.setattr(corpus, "_SMALLEST", 100)


def parse_file(text: Path, folder: Path, options: ParserOptions, workers: int = 0, **arguments) -> ParsedCorpus:
    with ProcessPool(workers) as pool:
        return parse_corpus(text, folder, options, pool=pool, **arguments)


def content(parsed) -> bytes:
    return b"".join(path.read_bytes() for path, _ in parsed)


def write_text(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def toy_lines(count: int, seed: int = 0) -> list[str]:
    """Lines with entities, split words, blank lines and many repetitions."""
    chooser = random.Random(seed)
    vocabulary = "the,old,man,boats,do,n&apos;t,(,-LRB-,un@@ for@@ tunate,&quot;,straße,.".split(",")
    return [
        "" if chooser.random() < 0.05 else " ".join(chooser.choices(vocabulary, k=chooser.randint(1, 9)))
        for _ in range(count)
    ]


@pytest.fixture(scope="session")
def english_models() -> Path:
    pytest.importorskip("stanza", reason="Stanza is not installed")
    for folder in (_ROOT / "examples/quickstart/stanza-en", _ROOT.parent / "shared/models/stanza-en-gum"):
        if (folder / "constituency.pt").is_file():
            return folder
    pytest.skip("no Stanza models are at hand")


@pytest.fixture(scope="session")
def gum_models() -> Path:
    pytest.importorskip("stanza", reason="Stanza is not installed")
    folder = _ROOT.parent / "shared/models/stanza-en-gum"
    if not (folder / "constituency.pt").is_file():
        pytest.skip("the Stanza models of GUM are not beside the repository")
    return folder
