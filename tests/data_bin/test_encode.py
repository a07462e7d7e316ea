"""Chunks against encoding tree by tree, chains against collapsing trees, and processes that die."""

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
from tree_fairseq.data_bin import encode as encoding
from tree_fairseq.data_bin.encode import (
    ChunkTask,
    encode_chunks,
    read_chunk_labels,
    read_chunk_sizes,
    read_chunk_text,
    read_chunk_trees,
)
from tree_fairseq.data_bin.inputs import Chunk, inspect_text
from tree_fairseq.errors import MixedChildrenError, UnclosedTreeError, WorkerDiedError
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.parsing.processes import ProcessPool
from tree_fairseq.trees.bracket import read_forest, write_forest
from tree_fairseq.trees.spans import encode
from tree_fairseq.trees.tree import Tree, forest_leaves


def in_processes(tasks, workers):
    with ProcessPool(workers) as pool:
        return encode_chunks(tasks, pool)


def tasks_of(path, folder, chunk_lines: int = 10_000, options: ParserOptions | None = None) -> list[ChunkTask]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tree_fairseq.data_bin.inputs.CHUNK_LINES", chunk_lines)
        chunks = inspect_text(path).chunks
    return [ChunkTask(path, chunk, folder / f"{index}.npz", options) for index, chunk in enumerate(chunks)]


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
def test_against_encoding_tree_by_tree(tmp_path_factory, forests, chunk_lines):
    folder = tmp_path_factory.mktemp("encode")
    path = write_lines(folder / "text", [write_forest(forest) for forest in forests])
    lines = []
    labels, chains = Counter(), Counter()
    text = b""
    for chunk_path in in_processes(tasks_of(path, folder, chunk_lines), 1):
        names, counts, chunk_chains = read_chunk_labels(chunk_path)
        block = read_chunk_trees(chunk_path)
        first = 0
        for leaves, nodes in zip(block.leaf_counts, block.node_counts):
            rows = block.rows[first : first + nodes]
            lines.append((int(leaves), [names[label] for label in rows[:, 0]], rows[:, 1:].tolist()))
            first += nodes
        labels.update(dict(zip(names, counts)))
        chains.update(dict(chunk_chains))
        text += read_chunk_text(chunk_path)
        assert read_chunk_sizes(chunk_path) == (len(block.leaf_counts), sum(block.leaf_counts), len(block.rows), [])
    encoded = [encode(forest) for forest in forests]
    assert lines == [(len(spans.leaves), spans.labels, spans.spans.tolist()) for spans in encoded]
    assert labels == Counter(label for spans in encoded for label in spans.labels)
    assert chains == sum((chains_of(tree) for forest in forests for tree in forest), Counter())
    assert text.decode() == "".join(" ".join(forest_leaves(forest)) + "\n" for forest in forests)


@pytest.mark.parametrize("workers", [1, 3])
def test_the_first_bad_line_is_reported(tmp_path, workers):
    lines = ["(NN a)"] * 30
    lines[17] = "(NN a"
    lines[25] = "(S (NN a) b)"
    path = write_lines(tmp_path / "train.en", lines)
    tasks = tasks_of(path, tmp_path, 3, ParserOptions(name="brackets"))
    with pytest.raises(UnclosedTreeError, match=f"{path}:18:"):
        in_processes(tasks, workers)
    lines[17] = "(NN a)"
    write_lines(path, lines)
    with pytest.raises(MixedChildrenError, match=f"{path}:26:"):
        in_processes(tasks_of(path, tmp_path, 3, ParserOptions(name="brackets")), workers)


def test_a_bad_line_can_have_a_flat_tree(tmp_path):
    path = write_lines(tmp_path / "train.en", ["(NN a)", "(S (NN a) (VB b)", ""])
    options = ParserOptions(name="brackets", on_parse_error="flat")
    [chunk] = in_processes(tasks_of(path, tmp_path, options=options), 1)
    assert read_chunk_sizes(chunk).failed == [2]
    assert read_chunk_text(chunk) == b"a\na b\n\n"


def test_what_is_done_is_not_done_again(tmp_path):
    path = write_lines(tmp_path / "train.en", ["(NN a)"] * 9)
    tasks = tasks_of(path, tmp_path, 3)
    before = [os.stat(chunk).st_mtime_ns for chunk in in_processes(tasks, 1)]
    tasks[1].output.unlink()
    path.write_bytes(path.read_bytes().replace(b"a", b"b"))
    in_processes(tasks, 1)
    after = [os.stat(task.output).st_mtime_ns for task in tasks]
    assert [old == new for old, new in zip(before, after)] == [True, False, True]


def test_a_killed_worker_is_noticed_within_seconds(tmp_path, monkeypatch):
    path = write_lines(tmp_path / "train.en", ["(NN a)"] * 40)
    main_process = os.getpid()

    def killed(line, **place):
        if place["line_number"] == 23 and os.getpid() != main_process:
            os.kill(os.getpid(), signal.SIGKILL)
        return encode(read_forest(line))

    monkeypatch.setattr(encoding, "read_spans", killed)
    started = time.monotonic()
    with pytest.raises(WorkerDiedError, match="train.en"):
        in_processes(tasks_of(path, tmp_path, 5), 3)
    assert time.monotonic() - started < 10
    assert not (tmp_path / "4.npz").exists()
    # The same again, without the accident, goes on from there.
    monkeypatch.undo()
    chunks = in_processes(tasks_of(path, tmp_path, 5), 3)
    assert sum(read_chunk_sizes(chunk).lines for chunk in chunks) == 40


def test_deep_trees(tmp_path):
    forests = [(strategies.deep_tree(20_000),), (strategies.deep_tree(20_000, branching=False),)]
    path = write_lines(tmp_path / "train.en", [write_forest(forest) for forest in forests])
    [chunk] = in_processes(tasks_of(path, tmp_path), 1)
    block = read_chunk_trees(chunk)
    assert block.node_counts.tolist() == [39_999, 20_000]
    assert np.array_equal(block.rows[:39_999, 1:], encode(forests[0]).spans)
    # A chain over one word is none that a model can see.
    assert read_chunk_labels(chunk).chains == []


def test_a_chunk_of_nothing(tmp_path):
    path = tmp_path / "train.en"
    path.write_bytes(b"")
    [chunk] = in_processes([ChunkTask(path, Chunk(0, 0, 1), tmp_path / "0.npz", None)], 2)
    assert read_chunk_sizes(chunk) == (0, 0, 0, [])
