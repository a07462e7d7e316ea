"""Encoding of chunks compared with encoding of single trees, chains with collapsed trees; processes that die."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import strategies
from tests.data_bin.corpora import write_lines
from tree_fairseq.data_bin.tree_chunks import ChunkTask, EncodedChunk, encode_chunks, encode_forests
from tree_fairseq.errors import MixedChildrenError, UnclosedTreeError, WorkerDiedError
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.support.processes import ProcessPool
from tree_fairseq.trees.bracket import read_forest, write_forest
from tree_fairseq.trees.spans import encode
from tree_fairseq.trees.text import Chunk, inspect_text
from tree_fairseq.trees.tree import Tree, forest_leaves


def tasks_of(path, chunk_lines: int = 10_000, options: ParserOptions = ParserOptions("brackets")) -> list[ChunkTask]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tree_fairseq.trees.text.CHUNK_LINES", chunk_lines)
        chunks = inspect_text(path).chunks
    return [ChunkTask(path, chunk, options) for chunk in chunks]


def encoded(tasks: list[ChunkTask], workers: int = 1) -> list[EncodedChunk]:
    with ProcessPool(workers) as pool:
        return list(encode_chunks(tasks, pool))


def chains_of(tree: Tree) -> Counter:
    """The slow twin: walk down each unary chain that covers more than one word."""
    chains, stack = Counter(), [tree]
    while stack:
        node = stack.pop()
        chain = [node.label]
        while len(node.children) == 1 and not node.children[0].is_leaf:
            node = node.children[0]
            chain.append(node.label)
        if len(chain) > 1 and len(node.leaves()) > 1:
            chains[tuple(chain)] += 1
        stack += [child for child in node.children if not child.is_leaf]
    return chains


@settings(deadline=None, max_examples=60)
@given(st.lists(strategies.forests(), max_size=6), st.integers(1, 4))
def test_chunks_equal_the_encoding_of_each_tree(tmp_path_factory, forests, chunk_lines):
    folder = tmp_path_factory.mktemp("encode")
    path = write_lines(folder / "text", [write_forest(forest) for forest in forests])
    lines = []
    labels, chains = Counter(), Counter()
    text, sentences = b"", 0
    for chunk in encoded(tasks_of(path, chunk_lines)):
        names, block = list(chunk.labels), chunk.trees
        first = 0
        for leaves, nodes in zip(block.leaf_counts, block.node_counts):
            rows = block.rows[first : first + nodes]
            lines.append((int(leaves), [names[label] for label in rows[:, 0]], rows[:, 1:].tolist()))
            first += nodes
        labels.update(chunk.labels)
        chains.update(chunk.chains)
        text += chunk.text
        sentences += chunk.sentences
        assert first == len(block.rows) and not chunk.failed
    expected = [encode(forest) for forest in forests]
    assert sentences == sum(map(len, forests))
    assert lines == [(len(spans.leaves), spans.labels, spans.spans.tolist()) for spans in expected]
    assert labels == Counter(label for spans in expected for label in spans.labels)
    assert chains == sum((chains_of(tree) for forest in forests for tree in forest), Counter())
    assert text.decode() == "".join(" ".join(forest_leaves(forest)) + "\n" for forest in forests)


@pytest.mark.parametrize("workers", [1, 3])
def test_the_first_malformed_line_is_reported(tmp_path, workers):
    lines = ["(NN a)"] * 30
    lines[17] = "(NN a"
    lines[25] = "(S (NN a) b)"
    path = write_lines(tmp_path / "train.en", lines)
    tasks = tasks_of(path, 3, ParserOptions(name="brackets"))
    with pytest.raises(UnclosedTreeError, match=f"{path}:18:"):
        encoded(tasks, workers)
    lines[17] = "(NN a)"
    write_lines(path, lines)
    with pytest.raises(MixedChildrenError, match=f"{path}:26:"):
        encoded(tasks_of(path, 3, ParserOptions(name="brackets")), workers)


def test_a_malformed_line_gets_a_flat_tree_if_requested(tmp_path):
    path = write_lines(tmp_path / "train.en", ["(NN a)", "(S (NN a) (VB b)", ""])
    options = ParserOptions(name="brackets", on_parse_error="flat")
    [chunk] = encoded(tasks_of(path, options=options))
    assert chunk.failed == {2: 1}
    assert chunk.text == b"a\na b\n\n"


@settings(deadline=None, max_examples=60)
@given(st.lists(strategies.forests(), min_size=1, max_size=8), st.data())
def test_lines_with_other_blanks_are_encoded_alike(tmp_path_factory, forests, data):
    folder = tmp_path_factory.mktemp("encode")
    lines = [write_forest(forest) for forest in forests]
    spaced = [line.replace(" ", data.draw(st.sampled_from([" ", "  ", "\t"]))) for line in lines]
    [chunk] = encoded(tasks_of(write_lines(folder / "text", spaced)))
    slow = encode_forests(((encode(forest), 0) for forest in forests), 1)
    assert chunk.text == slow.text and chunk.sentences == slow.sentences and not chunk.failed
    assert chunk.labels == slow.labels and chunk.chains == slow.chains
    for counts, expected in zip(chunk.trees[:2], slow.trees[:2]):
        assert counts.tolist() == expected.tolist()
    assert np.array_equal(chunk.trees.rows[:, 1:], slow.trees.rows[:, 1:])
    names = [list(each.labels)[number] for each in (chunk, slow) for number in each.trees.rows[:, 0]]
    assert names[: len(names) // 2] == names[len(names) // 2 :]


@pytest.mark.parametrize("workers", [1, 3])
def test_sentences_are_parsed_with_any_number_of_workers(tmp_path, workers):
    path = write_lines(tmp_path / "train.en", ["a b c", "", "( d"] * 5)
    chunks = encoded(tasks_of(path, 4, ParserOptions(name="right-branching")), workers)
    assert b"".join(chunk.text for chunk in chunks) == path.read_bytes()
    assert sum(chunk.sentences for chunk in chunks) == 10
    written = [line.written for line in LineParser(ParserOptions(name="right-branching")).parse_lines(["a b c"])]
    expected = encode(read_forest(written[0]))
    assert chunks[0].trees.rows[: len(expected.labels), 1:].tolist() == expected.spans.tolist()


def test_a_killed_worker_is_noticed_within_seconds(tmp_path, monkeypatch):
    # Two blanks: this line is read by itself.
    path = write_lines(tmp_path / "train.en", ["(NN a)"] * 22 + ["(NN  a)"] + ["(NN a)"] * 17)
    main_process = os.getpid()

    def killed(line, **place):
        if place["line_number"] == 23 and os.getpid() != main_process:
            os.kill(os.getpid(), signal.SIGKILL)
        return encode(read_forest(line))

    monkeypatch.setattr("tree_fairseq.data_bin.tree_chunks.read_spans", killed)
    started = time.monotonic()
    with pytest.raises(WorkerDiedError, match="train.en"):
        encoded(tasks_of(path, 5), 3)
    assert time.monotonic() - started < 10
    monkeypatch.undo()
    assert sum(len(chunk.trees.leaf_counts) for chunk in encoded(tasks_of(path, 5), 3)) == 40


def test_deep_trees_are_encoded(tmp_path):
    forests = [(strategies.deep_tree(20_000),), (strategies.deep_tree(20_000, branching=False),)]
    path = write_lines(tmp_path / "train.en", [write_forest(forest) for forest in forests])
    [chunk] = encoded(tasks_of(path))
    block = chunk.trees
    assert block.node_counts.tolist() == [39_999, 20_000]
    assert np.array_equal(block.rows[:39_999, 1:], encode(forests[0]).spans)
    # Chains over one word are not visible to a model.
    assert chunk.chains == {}


def test_a_chunk_may_have_no_lines(tmp_path):
    path = tmp_path / "train.en"
    path.write_bytes(b"")
    [chunk] = encoded([ChunkTask(path, Chunk(0, 0, 1), ParserOptions("brackets"))], 2)
    assert (len(chunk.trees.leaf_counts), len(chunk.trees.rows), chunk.labels, chunk.text) == (0, 0, {}, b"")
