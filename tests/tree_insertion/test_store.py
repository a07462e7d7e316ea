"""TrajectorySampler on disk: what was written comes back, equal trees lie there once, and damage is noticed."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from fairseq.data import indexed_dataset
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.strategies import symbol_trees
from tree_fairseq.errors import CorruptFileError
from tree_fairseq.support.processes import ProcessPool
from tree_fairseq.tree_insertion.oracles import CentralityOracle, trajectories
from tree_fairseq.tree_insertion.store import (
    EncodedTree,
    InsertionStore,
    TrajectorySampler,
    encode_item,
    write_store,
    write_stores,
)
from tree_fairseq.tree_insertion.target import TargetTree
from tree_fairseq.trees.tree import Tree

FIELDS = ("steps", "starts", "slots", "candidates", "ranks")


def made_of(tree: Tree, seed: int = 0):
    target, generator = TargetTree.of(tree), np.random.default_rng(seed)
    return target.parents, trajectories(CentralityOracle(target), 4, generator)


def write(prefix, *trees: Tree) -> InsertionStore:
    write_store(prefix, (encode_item(*made_of(tree)) for tree in trees), range(len(trees)))
    return InsertionStore(prefix)


@given(st.lists(symbol_trees(), min_size=1, max_size=4), st.lists(st.integers(0, 3), max_size=4))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_was_written_comes_back(tmp_path, trees, repeated):
    repeated = [number for number in repeated if number < len(trees)]
    write_store(tmp_path / "x", [encode_item(*made_of(tree)) for tree in trees], [*range(len(trees)), *repeated])
    store = InsertionStore(tmp_path / "x")
    lines = [*trees, *(trees[number] for number in repeated)]
    assert len(store) == len(lines)
    assert store.counts[0].tolist() == [len(TargetTree.of(tree)) for tree in lines] and store.counts[1].tolist() == [
        4
    ] * len(lines)
    for index, tree in enumerate(lines):
        parents, paths = made_of(tree)
        assert store[index].parents.tolist() == parents and store[index].trajectory_count == len(paths)
        for number, path in enumerate(paths):
            found = store[index].trajectory(number)
            assert found.length == path.length
            assert all(getattr(found, name).tolist() == getattr(path, name).tolist() for name in FIELDS)


def test_fairseq_reads_the_files_and_equal_lines_share_an_item(tmp_path):
    write_store(tmp_path / "x", [np.array([2, 1, 70000]), np.array([3, 1, -1, 4])], [0, 1, 0])
    dataset = indexed_dataset.MMapIndexedDataset(str(tmp_path / "x"))
    assert [item.tolist() for item in dataset] == [[2, 1, 70000], [3, 1, -1, 4], [2, 1, 70000]]
    assert (tmp_path / "x.bin").stat().st_size == 4 * 7


def test_a_pickled_store_opens_its_files_again(tmp_path):
    store = write(tmp_path / "x", Tree("f", [Tree("x")]))
    again = pickle.loads(pickle.dumps(store))
    assert again[0].parents.tolist() == store[0].parents.tolist() == [-1, 0, 1]


@pytest.mark.parametrize("suffix", ["bin", "idx"])
def test_any_cut_is_noticed(tmp_path, suffix):
    write(tmp_path / "x", Tree("f", [Tree("x"), Tree("y")]))
    path = tmp_path / f"x.{suffix}"
    content = path.read_bytes()
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        with pytest.raises(CorruptFileError, match=f"x.{suffix}"):
            InsertionStore(tmp_path / "x")
    path.unlink()
    with pytest.raises(CorruptFileError, match="is missing"):
        InsertionStore(tmp_path / "x")


def test_an_error_while_writing_leaves_no_index(tmp_path):
    def items():
        yield np.array([1, 2, 3])
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_store(tmp_path / "x", items(), [0, 1])
    assert not (tmp_path / "x.idx").exists()


def test_trajectories_depend_on_the_tree_and_the_seed_alone(tmp_path):
    trees = [EncodedTree.of(Tree("f", [Tree(label) for label in "abcdefgh"[:count]])) for count in range(1, 9)] * 20
    distinct = list(dict.fromkeys(trees))
    sampler = TrajectorySampler("centrality", 3)
    stores = [
        written(tmp_path / name, order, sampler, workers)
        for name, order, workers in (("one", distinct, 1), ("other", distinct[::-1], 1), ("many", trees, 2))
    ]
    for number, tree in enumerate(distinct):
        items = [stores[0].item(number), stores[1].item(len(distinct) - 1 - number), stores[2].item(trees.index(tree))]
        assert items[0].tolist() == items[1].tolist() == items[2].tolist() == sampler.item(tree).tolist()
    other = TrajectorySampler("centrality", 3, seed=2)
    assert any(sampler.item(tree).tolist() != other.item(tree).tolist() for tree in distinct)


def written(prefix, trees, sampler: TrajectorySampler, workers: int = 1) -> InsertionStore:
    with ProcessPool(workers) as pool:
        write_stores({prefix: trees}, sampler, pool)
    return InsertionStore(prefix)
