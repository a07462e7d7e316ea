"""The store returns the trees that were written, is valid for fairseq, and refuses damaged files."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pytest
from fairseq.data.indexed_dataset import MMapIndexedDataset
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import strategies
from tests.data_bin.corpora import block_of
from tree_fairseq.data_bin import index_files, tree_store
from tree_fairseq.data_bin.tree_store import TreeBlock, TreeStore, TreeStoreWriter
from tree_fairseq.errors import CorruptFileError
from tree_fairseq.trees.spans import TreeSpans, decode, encode
from tree_fairseq.trees.tree import Forest, forest_leaves


def write_store(prefix, forests: list[Forest], parts: int = 1) -> list[str]:
    """Writes forests in several blocks; returns the label names."""
    names: list[str] = []
    with TreeStoreWriter(prefix) as writer:
        for part in range(parts):
            writer.add(block_of(forests[part * len(forests) // parts : (part + 1) * len(forests) // parts], names))
    return names


many_forests = st.lists(strategies.forests(), max_size=6)


@settings(deadline=None, max_examples=60)
@given(many_forests, st.integers(1, 3))
def test_written_trees_can_be_read(tmp_path_factory, forests, parts):
    prefix = tmp_path_factory.mktemp("store") / "train.en-de.en.tree"
    names = write_store(prefix, forests, parts)
    store = TreeStore(prefix)
    assert len(store) == len(forests)
    for index, forest in enumerate(forests):
        tree = store[index]
        spans = np.stack([tree.start, tree.end, tree.depth], axis=1)
        labels = [names[label] for label in tree.label]
        assert tree.num_leaves == len(forest_leaves(forest))
        assert decode(TreeSpans(forest_leaves(forest), labels, spans)) == forest
    assert store.leaf_counts.tolist() == [len(forest_leaves(forest)) for forest in forests]
    assert store.block().node_counts.tolist() == [len(encode(forest).labels) for forest in forests]


@settings(deadline=None, max_examples=30)
@given(st.lists(strategies.forests(), min_size=1, max_size=6), st.data())
def test_a_block_has_the_lines_in_their_order(tmp_path_factory, forests, data):
    prefix = tmp_path_factory.mktemp("store") / "tree"
    names = write_store(prefix, forests)
    first = data.draw(st.integers(0, len(forests)))
    last = data.draw(st.integers(first, len(forests)) | st.none())
    expected = block_of(forests[first:last], list(names))
    for got, wanted in zip(TreeStore(prefix).block(first, last), expected):
        assert np.array_equal(got, wanted)


def test_fairseq_reads_the_files(tmp_path):
    forests = [(strategies.deep_tree(5),), (), (strategies.deep_tree(3), strategies.deep_tree(2, branching=False))]
    write_store(tmp_path / "tree", forests)
    dataset, store = MMapIndexedDataset(str(tmp_path / "tree")), TreeStore(tmp_path / "tree")
    assert len(dataset) == len(store) == 3
    for index in range(3):
        tree = store[index]
        rows = np.stack(tree[1:], axis=1).reshape(-1)
        assert dataset[index].tolist() == [tree.num_leaves, *rows.tolist()]


def test_values_of_more_than_sixteen_bits_are_kept(tmp_path):
    block = TreeBlock(
        np.array([70_000], np.int32), np.array([1], np.int32), np.array([[70_001, 0, 70_000, 65_536]], np.int32)
    )
    with TreeStoreWriter(tmp_path / "tree") as writer:
        writer.add(block)
    tree = TreeStore(tmp_path / "tree")[0]
    assert (tree.num_leaves, *(int(column[0]) for column in tree[1:])) == (70_000, 70_001, 0, 70_000, 65_536)


def test_a_store_may_have_no_lines(tmp_path):
    assert write_store(tmp_path / "tree", []) == []
    store = TreeStore(tmp_path / "tree")
    assert len(store) == 0 and len(store.leaf_counts) == 0 and len(store.block().rows) == 0


def test_a_pickled_store_opens_its_files_again(tmp_path):
    write_store(tmp_path / "tree", [(strategies.deep_tree(4),)])
    store = TreeStore(tmp_path / "tree")
    pickled = pickle.dumps(store)
    assert len(pickled) < 1000
    assert np.array_equal(pickle.loads(pickled)[0].depth, store[0].depth)


@pytest.mark.parametrize("index", [-1, 1, 10**12])
def test_missing_lines_are_refused(tmp_path, index):
    write_store(tmp_path / "tree", [(strategies.deep_tree(4),)])
    with pytest.raises(IndexError):
        TreeStore(tmp_path / "tree")[index]


def test_no_index_is_left_after_an_error_while_writing(tmp_path):
    with pytest.raises(RuntimeError), TreeStoreWriter(tmp_path / "tree"):
        raise RuntimeError
    assert not (tmp_path / "tree.idx").exists()


@pytest.mark.parametrize("suffix", ["bin", "idx"])
def test_any_truncation_is_noticed(tmp_path, suffix):
    write_store(tmp_path / "tree", [(strategies.deep_tree(4),), ()])
    path = tmp_path / f"tree.{suffix}"
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(CorruptFileError, match=f"tree.{suffix}"):
            TreeStore(tmp_path / "tree")
    path.write_bytes(content + b"\0\0\0\0")
    with pytest.raises(CorruptFileError, match=f"tree.{suffix}"):
        TreeStore(tmp_path / "tree")
    path.unlink()
    with pytest.raises(CorruptFileError, match="missing"):
        TreeStore(tmp_path / "tree")


def test_any_wrong_byte_of_the_index_is_noticed(tmp_path):
    write_store(tmp_path / "tree", [(strategies.deep_tree(4),), ()])
    path = tmp_path / "tree.idx"
    content = path.read_bytes()
    for position in range(len(content)):
        wrong = bytearray(content)
        wrong[position] ^= 0x41
        path.write_bytes(wrong)
        with pytest.raises(CorruptFileError):
            TreeStore(tmp_path / "tree")


def test_an_index_of_other_tokens_is_refused(tmp_path):
    write_store(tmp_path / "tree", [(strategies.deep_tree(4),)])
    write_store(tmp_path / "other", [(strategies.deep_tree(7),)])
    (tmp_path / "other.idx").rename(tmp_path / "tree.idx")
    with pytest.raises(CorruptFileError, match="where its index asks for"):
        TreeStore(tmp_path / "tree")


@settings(deadline=None, max_examples=40)
@given(many_forests, st.integers(1, 3))
def test_labels_are_replaced_in_place(tmp_path_factory, forests, lines_at_a_time):
    folder = tmp_path_factory.mktemp("relabel")
    names = write_store(folder / "store", forests)
    ids = np.arange(len(names), dtype=np.int32)[::-1] + 7
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_files, "LINES_AT_A_TIME", lines_at_a_time)
        tree_store.relabel(folder / "store", ids)
    before = [block_of([forest], names.copy()) for forest in forests]
    after = TreeStore(folder / "store")
    for line, block in enumerate(before):
        assert after[line].label.tolist() == ids[block.rows[:, 0]].tolist()
        assert np.array_equal(np.stack(after[line][2:], axis=1), block.rows[:, 1:])
        assert after[line].num_leaves == block.leaf_counts[0]


def test_memory_does_not_grow_with_the_lines(tmp_path, monkeypatch):
    # A block is half a megabyte, so that the 10 kB of caches that Python fills the first time do not count.
    lines = 2048
    monkeypatch.setattr(index_files, "LINES_AT_A_TIME", lines)
    block = TreeBlock(np.full(lines, 2, np.int32), np.full(lines, 3, np.int32), np.ones((3 * lines, 4), np.int32))
    peaks = []
    for blocks in (8, 64):
        tracemalloc.start()
        with TreeStoreWriter(tmp_path / "tree") as writer:
            for _ in range(blocks):
                writer.add(block)
        tree_store.relabel(tmp_path / "tree", np.arange(2, dtype=np.int32))
        assert sum(len(counts) for _, counts in TreeStore(tmp_path / "tree").leaf_count_blocks()) == lines * blocks
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0] < 1_000_000
