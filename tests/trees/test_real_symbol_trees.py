"""Corpora of programs and logical forms as they are published, if a copy is next to the repository."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.symbols import BINARIZATIONS, TRAVERSALS, SymbolEncoding
from tree_fairseq.trees.text import read_lines

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
MOST = 150  # the number of trees of a corpus to test, taken at regular distances

ENCODINGS = [SymbolEncoding(traversal, form) for traversal in TRAVERSALS for form in BINARIZATIONS]


def second_column(path: Path) -> Iterator[str]:
    return (line.split("\t")[1] for line in read_lines(path))


def s_expressions(path: Path) -> Iterator[str]:
    """Whole examples, and the formulas alone."""
    for example in re.split(r"\n(?=\(example)", path.read_text(encoding="utf-8")):
        yield " ".join(example.split())
        yield example[example.index("(targetFormula") + len("(targetFormula") :].rsplit(")", 2)[0]


def pairs(path: Path) -> Iterator[str]:
    return (tree for line in read_lines(path) for tree in json.loads(line).values())


def values(path: Path) -> Iterator[str]:
    return map(json.dumps, json.loads(path.read_text(encoding="utf-8")))


def programs(path: Path) -> Iterator[str]:
    """Whole examples, and the two syntax trees alone."""
    for example in json.loads(path.read_text(encoding="utf-8")):
        yield from map(json.dumps, (example, example["source_ast"], example["target_ast"]))


CORPORA = [
    ("bracket", "geo/*.txt", second_column, 880),
    ("funql", "geo/funql/*.tsv", second_column, 880),
    ("prolog", "geo/prolog_raw/*.tsv", second_column, 880),
    ("bracket", "atis/*.txt", second_column, 4925),
    ("variable-free", "cogs/variable_free/*.tsv", second_column, 51155),
    ("bracket", "overnight/*.examples", s_expressions, 2 * 12602),
    ("bracket", "active_logical/*.json", pairs, 27500),
    ("json", "for2lam/*.json", values, 20000),
    ("json", "tree2tree_programs/*/*.json", programs, 3 * 185),
]


@pytest.mark.parametrize(("notation", "pattern", "texts_of", "count"), CORPORA, ids=[corpus[1] for corpus in CORPORA])
def test_text_to_symbols_and_back(notation, pattern, texts_of, count):
    paths = sorted(DATA.glob(pattern))
    if not paths:
        pytest.skip(f"{DATA / pattern} is missing")
    notation = notation_named(notation)
    step = 1 + count // MOST
    tried = 0
    for text in itertools.islice(itertools.chain.from_iterable(map(texts_of, paths)), 0, None, step):
        tree = notation.read(text)
        for encoding in ENCODINGS:
            symbols = encoding.encode(tree)
            assert " ".join(symbols).split() == symbols
            assert encoding.decode(symbols) == tree
        written = notation.write(tree)
        if notation is notation_named("json"):
            assert json.loads(written) == json.loads(text)
        else:
            assert "".join(written.split()) == "".join(text.split())
        if texts_of in (second_column, pairs):
            assert written == text, "the spacing is that of the corpus"
        tried += 1
    assert tried >= count // step
