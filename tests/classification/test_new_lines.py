"""New lines for folders of trees and of texts, against the trees that they should become."""

from __future__ import annotations

import pytest

import tests.parsing.fake_parsers  # noqa: F401  (registers the parser "toy")
from tree_fairseq.classification.examples import LineTrees
from tree_fairseq.classification.folder import ClassificationRecord
from tree_fairseq.errors import LabelColumnError, ParserError, UnclosedTreeError
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.trees.bracket import write_forest
from tree_fairseq.trees.spans import decode

BRACKETS = ParserOptions("brackets")


def record(symbols: str = "constant", parser: str | None = "toy", binarize: bool = True) -> ClassificationRecord:
    options = None if parser is None else ParserOptions(parser).to_json()
    return ClassificationRecord("trees", True, symbols, binarize, options)


def forest_of(lines: LineTrees, line: str) -> str:
    [tree] = lines.read([line])
    return write_forest(decode(tree))


def test_new_trees_lose_their_labels_and_new_text_is_binarised():
    lines = LineTrees(record(), BRACKETS)
    assert forest_of(lines, "(3 (- It) (7 (2 's) (0 odd)))") == "(X (X It) (X (X 's) (X odd)))"
    assert forest_of(lines, "It is so odd") == "(X (X It) (X (X is) (X (X so) (X odd))))"
    assert forest_of(lines, "odd") == "(X odd)"
    assert (
        forest_of(LineTrees(record(binarize=False), BRACKETS), "It is so odd")
        == "(X (X (X It)) (X (X is) (X so) (X odd)))"
    )


def test_trees_and_text_may_be_mixed():
    lines = LineTrees(record(), BRACKETS)
    texts = ["a bc", "(1 (1 a) (1 bc))", "def", "(2 def)"]
    assert lines.read(texts) == [lines.read([text])[0] for text in texts]


def test_only_text_needs_a_parser():
    lines = LineTrees(record(parser=None), BRACKETS)
    assert forest_of(lines, "(3 (2 a) (2 b))") == "(X (X a) (X b))"
    with pytest.raises(ParserError, match="--tree-parser"):
        forest_of(lines, "a b")
    with pytest.raises(UnclosedTreeError) as caught:
        lines.read(["(1 a)", "(1 a"], str, 5, "new.txt")
    assert (caught.value.path, caught.value.line) == ("new.txt", 6)


def test_a_sentence_that_cannot_be_parsed_is_flat_before_it_is_binarised():
    lines = LineTrees(record(parser="faulty"), BRACKETS)
    good, bad = lines.read(["fine this is", "NONE of this"])
    assert len(good.leaves) == 3
    assert write_forest(decode(bad)) == "(X (X NONE) (X (X of) (X this)))"


def test_a_folder_of_texts_reads_new_text_by_its_own_parser():
    options = ParserOptions("toy", ssplit="punct")
    record = ClassificationRecord("tsv", False, "parser")
    lines = LineTrees(record, options, lambda own: own.replace(parser_dir="elsewhere"))
    assert lines.text_parser.options == options.replace(parser_dir="elsewhere")
    assert [len(decode(tree)) for tree in lines.read(["a b . c ."])] == [2]
    with pytest.raises(LabelColumnError, match="input:3: 1 tabs in a line where 0 are expected. Leave out its class"):
        lines.read(["a b .", "c .\tpositive"], first_line=2, path="input")
