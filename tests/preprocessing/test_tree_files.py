"""Encoding of chunks compared with encoding of single trees; processes that die."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import strategies
from tests.data_bin.corpora import write_lines
from tree_fairseq.errors import MixedChildrenError, UnclosedTreeError
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.preprocessing.tree_files import EncodedChunk, encode_chunk
from tree_fairseq.support.processes import ProcessPool
from tree_fairseq.trees.bracket import read_forest, write_forest
from tree_fairseq.trees.spans import encode
from tree_fairseq.trees.text import Chunk, inspect_text
from tree_fairseq.trees.tree import forest_leaves

BRACKETS = ParserOptions("brackets")


def encoded(
    path: Path, chunk_lines: int = 10_000, options: ParserOptions = BRACKETS, workers: int = 1
) -> list[EncodedChunk]:
    with pytest.MonkeyPatch.context() as patch, ProcessPool(workers) as pool:
        patch.setattr("tree_fairseq.trees.text.CHUNK_LINES", chunk_lines)
        text = inspect_text(path)
        return list(pool.map(partial(encode_chunk, path, options), text.chunks, f"encoded {path}"))


@settings(deadline=None, max_examples=100)
@given(st.lists(strategies.forests(), max_size=6), st.integers(1, 4), st.booleans(), st.data())
def test_chunks_equal_the_encoding_of_each_tree(tmp_path_factory, forests, chunk_lines, has_other_blanks, data):
    folder = tmp_path_factory.mktemp("encode")
    written = [write_forest(forest) for forest in forests]
    if has_other_blanks:
        written = [line.replace(" ", data.draw(st.sampled_from([" ", "  ", "\t"]))) for line in written]
    lines = []
    labels = Counter()
    text, sentences = b"", 0
    for chunk in encoded(write_lines(folder / "text", written), chunk_lines):
        names, block = list(chunk.labels), chunk.trees
        first = 0
        for leaves, nodes in zip(block.leaf_counts, block.node_counts):
            rows = block.rows[first : first + nodes]
            lines.append((int(leaves), [names[label] for label in rows[:, 0]], rows[:, 1:].tolist()))
            first += nodes
        labels.update(chunk.labels)
        text += chunk.text
        sentences += chunk.sentences
        assert first == len(block.rows) and not chunk.failed
    expected = [encode(forest) for forest in forests]
    assert sentences == sum(map(len, forests))
    assert lines == [(len(spans.leaves), spans.labels, spans.spans.tolist()) for spans in expected]
    assert labels == Counter(label for spans in expected for label in spans.labels)
    assert text.decode() == "".join(" ".join(forest_leaves(forest)) + "\n" for forest in forests)


@pytest.mark.parametrize("workers", [1, 3])
def test_the_first_malformed_line_is_reported(tmp_path, workers):
    lines = ["(NN a)"] * 30
    lines[17] = "(NN a"
    lines[25] = "(S (NN a) b)"
    path = write_lines(tmp_path / "train.en", lines)
    with pytest.raises(UnclosedTreeError, match=f"{path}:18:"):
        encoded(path, 3, workers=workers)
    lines[17] = "(NN a)"
    write_lines(path, lines)
    with pytest.raises(MixedChildrenError, match=f"{path}:26:"):
        encoded(path, 3, workers=workers)


@pytest.mark.parametrize("workers", [1, 3])
def test_sentences_are_parsed_with_any_number_of_workers(tmp_path, workers):
    path = write_lines(tmp_path / "train.en", ["a b c", "", "( d"] * 5)
    chunks = encoded(path, 4, ParserOptions(name="right-branching"), workers)
    assert b"".join(chunk.text for chunk in chunks) == path.read_bytes()
    assert sum(chunk.sentences for chunk in chunks) == 10
    written = [line.written for line in LineParser(ParserOptions(name="right-branching")).parse_lines(["a b c"])]
    expected = encode(read_forest(written[0]))
    assert chunks[0].trees.rows[: len(expected.labels), 1:].tolist() == expected.spans.tolist()


def test_a_chunk_may_have_no_lines(tmp_path):
    path = tmp_path / "train.en"
    path.write_bytes(b"")
    chunk = encode_chunk(path, BRACKETS, Chunk(0, 0, 1))
    assert (len(chunk.trees.leaf_counts), len(chunk.trees.rows), chunk.labels, chunk.text) == (0, 0, {}, b"")
