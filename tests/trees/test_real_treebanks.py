"""Treebanks as they are published, if a copy is next to the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trees.inverses import debinarize
from tree_fairseq.errors import UnsupportedCharacterError
from tree_fairseq.trees.bracket import read_forest, write_forest
from tree_fairseq.trees.spans import decode, encode, reduce_spans
from tree_fairseq.trees.symbols import BINARIZATIONS, SymbolEncoding
from tree_fairseq.trees.text import read_lines, tokens
from tree_fairseq.trees.tree import binarize, collapse_unary

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def lines_of(name):
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{path} is missing")
    lines = list(read_lines(path))
    assert len(lines) > 1000
    return path, lines


def sampled(lines):
    return list(enumerate(lines, start=1))[:: max(1, len(lines) // 2000)]


@pytest.mark.parametrize("name", [f"gum_constituency/{split}.mrg" for split in ("train", "dev", "test")])
def test_gum(name):
    path, lines = lines_of(name)
    leaf_count = node_count = 0
    for number, line in sampled(lines):
        forest = read_forest(line, path=path, line_number=number)
        encoded = encode(forest)
        assert decode(encoded) == forest
        assert write_forest(forest) == line
        assert tokens(" ".join(encoded.leaves)) == encoded.leaves
        leaf_count += len(encoded.leaves)
        node_count += len(reduce_spans(encoded.spans))
        if number % 20 == 0:
            assert collapse_unary(forest[0]).leaves() == forest[0].leaves()
            for binarization in BINARIZATIONS:
                symbols = SymbolEncoding(binarization=binarization)
                assert symbols.decode(symbols.encode(forest[0])) == forest[0]
            assert debinarize(binarize(forest[0])) == forest[0]
    assert 0.57 <= leaf_count / (leaf_count + node_count) <= 0.67


@pytest.mark.parametrize("name", ["sst/train.txt", "sst/dev.txt", "sst/test.txt"])
def test_sst(name):
    path, lines = lines_of(name)
    refused = 0
    for number, line in sampled(lines):
        if "\xa0" in line:
            # Fractions such as "2 1/2" are written with a no-break space, at which fairseq would split the word.
            with pytest.raises(UnsupportedCharacterError, match="NO-BREAK SPACE") as caught:
                read_forest(line, path=path, line_number=number)
            assert (caught.value.line, caught.value.column) == (number, line.index("\xa0") + 1)
            refused += 1
            line = line.replace("\xa0", "_")
        forest = read_forest(line, path=path, line_number=number)
        assert len(forest) == 1
        assert read_forest(write_forest(forest)) == forest
        assert all(node.label in "01234" for node in forest[0].preorder() if node.children)
    assert refused < len(lines) / 100
