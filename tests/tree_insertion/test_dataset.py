"""Partial trees of trajectories, against walking; their draws, in a resumed run and in workers; distributions."""

from __future__ import annotations

import inspect
import math
from collections import Counter

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary, LanguagePairDataset, ListDataset
from fairseq.data.iterators import EpochBatchIterator
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import symbol_trees
from tests.tree_insertion.allowed_sets import allowed_sets, trajectory
from tests.tree_insertion.partial_trees import slot_mask
from tests.tree_insertion.slot_batches import tree_slots
from tests.tree_insertion.test_dictionary import dictionary_of, ids_of, parents_of
from tree_fairseq.support.processes import ProcessPool
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.tree_insertion.dataset import (
    PartialTreeSampler,
    TargetDistribution,
    TreeInsertionDataset,
    collate_partial_trees,
    spread,
)
from tree_fairseq.tree_insertion.oracles import CentralityOracle, PartialTree, ProgramOracle
from tree_fairseq.tree_insertion.store import EncodedTree, InsertionStore, TrajectorySampler, write_stores
from tree_fairseq.tree_insertion.target import KINDS, TargetTree
from tree_fairseq.trees.notations import notation_named

LABELS = np.arange(10, 20)
ORACLES = {"centrality": CentralityOracle, "program": ProgramOracle}


def some_state(tree, chooser: np.random.Generator) -> tuple[TargetTree, np.ndarray, PartialTree, int]:
    """A target, the ids of its labels, and a state on the path to it."""
    target = TargetTree.of(tree)
    labels = np.array([9, *chooser.choice(LABELS, len(target) - 1)])
    path = trajectory(CentralityOracle(target), chooser)
    step = int(chooser.integers(path.length + 1))
    return target, labels, path.partial_tree(labels, np.array(target.parents, np.int32), step), step


@given(symbol_trees(max_leaves=16), st.sampled_from(sorted(ORACLES)), st.integers(0, 99))
@settings(max_examples=80)
def test_states_are_the_partial_trees_of_the_trajectory(tree, oracle, seed):
    target = TargetTree.of(tree)
    chooser = np.random.default_rng(seed)
    labels = np.array([9, *chooser.choice(LABELS, len(target) - 1)])
    path = trajectory(ORACLES[oracle](target), chooser)
    for step in range(path.length + 1):
        state = path.partial_tree(labels, np.array(target.parents, np.int32), step)
        expected = allowed_sets(target, path.steps <= step)
        assert state.labels.tolist() == labels[expected.nodes].tolist()
        assert state.parents.tolist() == expected.parents.tolist()
        assert state.slots.tolist() == expected.slots.tolist()
        assert state.insertions.tolist() == labels[expected.candidates].tolist()
        for values in (state.labels, state.parents, state.slots, state.insertions, state.ranks):
            assert values.dtype == np.int64


def assert_padded(partial: dict, row: int, state: PartialTree, pad: int) -> None:
    """The row of a batch holds a state, and no nodes after it."""
    spare = partial["labels"].size(1) - len(state.labels)
    assert partial["labels"][row].tolist() == [*state.labels, *[pad] * spare]
    assert partial["parents"][row].tolist() == [*state.parents, *[-1] * spare]


def states_of(path, labels) -> list[tuple[int, ...]]:
    return [tuple(labels[path.steps <= step].tolist()) for step in range(path.length + 1)]


LINES = ("( f ( g a b ) c )", "( g a )", "x", "( f ( f ( g a b c ) d ) ( g a b ) x )")
TREES = [notation_named("bracket").read(line) for line in LINES]
TRAJECTORIES = 4


@pytest.fixture(scope="module")
def dictionary():
    return dictionary_of(*TREES)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    return stored_in(tmp_path_factory.mktemp("store") / "all", TRAJECTORIES)


def stored_in(prefix, count: int) -> InsertionStore:
    trees = [EncodedTree.of(tree) for tree in TREES]
    write_stores({prefix: trees}, TrajectorySampler("centrality", count), ProcessPool())
    return InsertionStore(prefix)


def data_of(stored, dictionary, every_epoch=True, **draw) -> TreeInsertionDataset:
    sources = Dictionary()
    for word in "abcd":
        sources.add_symbol(word)
    texts = [torch.tensor([*range(4, 4 + size), sources.eos()]) for size in (3, 1, 2, 4)]
    targets = [torch.tensor([*ids_of(tree, dictionary)[1:], dictionary.eos()]) for tree in TREES]
    pairs = LanguagePairDataset(
        ListDataset(texts),
        [len(text) for text in texts],
        sources,
        ListDataset(targets),
        [len(target) for target in targets],
        dictionary,
    )
    return TreeInsertionDataset(
        pairs,
        stored,
        dictionary,
        sampler=PartialTreeSampler(**{"count": TRAJECTORIES, "distribution": TargetDistribution(), **draw}),
        every_epoch=every_epoch,
    )


def drawn(data, epoch: int) -> list[tuple]:
    data.set_epoch(epoch)
    return [tuple(data[index]["partial_trees"][0].labels.tolist()) for index in range(len(data))]


def test_a_batch_holds_partial_trees_and_whole_ones(stored, dictionary):
    data = data_of(stored, dictionary)
    data.set_epoch(3)
    batch = data.collater([data[index] for index in range(len(data))])
    assert set(batch["net_input"]) == {"src_tokens", "src_lengths", "source_lengths", "partial_tree"}
    partial = batch["net_input"]["partial_tree"]
    slots = 0
    for row, index in enumerate(batch["id"].tolist()):
        state = data[index]["partial_trees"][0]
        assert_padded(partial, row, state, dictionary.pad())
        assert partial["labels"][row, 0] == dictionary.root
        slots += slot_mask(state.parents).sum()
        assert data[index]["labels"].tolist() == ids_of(TREES[index], dictionary).tolist()
        assert data[index]["parents"].tolist() == parents_of(TREES[index]).tolist()
        assert dictionary.string(batch["target"][row]) == LINES[index]
    assert batch["ntokens"] == slots == len(batch["slot_target"]["slot"].unique())
    assert batch["nsentences"] == len(TREES)


def test_every_state_of_every_trajectory_is_drawn_equally_often(stored, dictionary):
    data = data_of(stored, dictionary)
    index = 0
    trajectories = [stored[index].trajectory(number) for number in range(TRAJECTORIES)]
    expected: Counter = Counter()
    labels = ids_of(TREES[index], dictionary)
    for each in trajectories:
        for state in states_of(each, labels):
            expected[state] += 1 / (TRAJECTORIES * (each.length + 1))
    epochs = 3000
    found: Counter = Counter()
    for epoch in range(1, epochs + 1):
        data.set_epoch(epoch)
        found[tuple(data[index]["partial_trees"][0].labels.tolist())] += 1 / epochs
    assert found.keys() == expected.keys()
    assert all(found[state] == pytest.approx(share, abs=0.04) for state, share in expected.items())
    assert {1, len(labels)} <= {len(state) for state in found}


@given(st.integers(1, 12), st.integers(1, 12))
def test_states_are_spread_and_equally_likely(count, states):
    found: Counter = Counter()
    for start in range(states):
        chosen = spread(start, count, states)
        assert chosen[0] == start and len(set(chosen)) == len(chosen) == min(count, states)
        gaps = np.diff([*sorted(chosen), sorted(chosen)[0] + states])
        assert max(gaps) - min(gaps) <= 1
        found.update(chosen)
    assert set(found.values()) == {min(count, states)} and len(found) == states


@pytest.mark.parametrize("count", [1, 3, 100])
def test_several_partial_trees_of_a_target_are_of_one_trajectory(stored, dictionary, count):
    data, single = data_of(stored, dictionary, states=count), data_of(stored, dictionary)
    for epoch in (1, 2, 3):
        data.set_epoch(epoch)
        single.set_epoch(epoch)
        examples = [data[index] for index in range(len(data))]
        for index, example in enumerate(examples):
            found = {tuple(tree.labels.tolist()) for tree in example["partial_trees"]}
            paths = [stored[index].trajectory(number) for number in range(TRAJECTORIES)]
            labels = ids_of(TREES[index], dictionary)
            states = [states_of(path, labels) for path in paths]
            assert any(found <= set(each) and len(example["partial_trees"]) == min(count, len(each)) for each in states)
            first = single[index]["partial_trees"][0]
            assert example["partial_trees"][0].labels.tolist() == first.labels.tolist()
        batch = data.collater(examples)
        rows = [
            (place, tree)
            for place, index in enumerate(batch["id"].tolist())
            for tree in examples[index]["partial_trees"]
        ]
        assert batch["partial_states"] == len(rows) and batch["nsentences"] == len(TREES)
        assert ("sentences" in batch["net_input"]) == (count > 1)
        if count > 1:
            assert batch["net_input"]["sentences"].tolist() == [place for place, _ in rows]
        for labels, (_, tree) in zip_equal(batch["net_input"]["partial_tree"]["labels"], rows):
            assert labels[: len(tree.labels)].tolist() == tree.labels.tolist()


def test_only_some_trajectories_may_be_drawn(stored, dictionary):
    data = data_of(stored, dictionary, count=1)
    path, labels = stored[3].trajectory(0), ids_of(TREES[3], dictionary)
    assert {drawn(data, epoch)[3] for epoch in range(1, 200)} == set(states_of(path, labels))


def test_draws_are_those_of_seed_and_epoch(stored, dictionary):
    data, again = data_of(stored, dictionary), data_of(stored, dictionary)
    history = [drawn(data, epoch) for epoch in range(1, 9)]
    assert drawn(again, 6) == history[5] and len(set(map(tuple, history))) > 1
    other = data_of(stored, dictionary, seed=2)
    assert [drawn(other, epoch) for epoch in range(1, 9)] != history


@pytest.mark.parametrize("workers", [0, 1])
def test_iterators_draw_anew_in_every_epoch_and_resume(stored, dictionary, workers):
    """fairseq keeps the workers of a data loader from epoch to epoch."""
    batches = [[0, 1], [2, 3]]
    # fairseq 0.12.2 always keeps them and has no such argument.
    has_choice = "persistent_workers" in inspect.signature(EpochBatchIterator).parameters
    persistent = {"persistent_workers": True} if has_choice else {}

    def iterator_of(data):
        return EpochBatchIterator(
            data,
            data.collater,
            batches,
            num_workers=workers,
            reuse_dataloader=True,
            disable_shuffling=True,
            **persistent,
        )

    def states(batch):
        partial = batch["net_input"]["partial_tree"]["labels"]
        return {
            index: tuple(row[row != dictionary.pad()].tolist()) for index, row in zip(batch["id"].tolist(), partial)
        }

    reference = data_of(stored, dictionary)
    data = data_of(stored, dictionary)
    iterator = iterator_of(data)
    for epoch in range(1, 4):
        expected = dict(enumerate(drawn(reference, epoch)))
        found = {}
        epoch_iterator = iterator.next_epoch_itr(shuffle=False)
        for number, batch in enumerate(epoch_iterator):
            found |= states(batch)
            if epoch == 3 and number == 0:
                saved = iterator.state_dict()
        assert found == expected
    resumed = iterator_of(data_of(stored, dictionary))
    resumed.load_state_dict(saved)
    [rest] = list(resumed.next_epoch_itr(shuffle=False))
    assert states(rest) == {index: found[index] for index in batches[1]}


def test_unknown_targets_and_padding_of_buckets(stored, dictionary):
    """Padded targets, as --num-batch-buckets makes them, have no more nodes."""
    data = data_of(stored, dictionary)
    padded = torch.tensor([*ids_of(TREES[1], dictionary)[1:], dictionary.eos(), dictionary.pad(), dictionary.pad()])
    data.dataset.tgt.dataset[1] = padded
    assert data[1]["labels"].tolist() == ids_of(TREES[1], dictionary).tolist()


PAD, KEEP = 1, 2


def batch_of(states: list[PartialTree]) -> tuple[dict, torch.Tensor]:
    partial = collate_partial_trees(states, PAD)
    slots = torch.zeros(*partial["labels"].shape, KINDS, dtype=torch.bool)
    slots.view(-1)[partial["slots"]] = True
    return partial, slots


def distribution_of(state: PartialTree, kind: str, temperature: float) -> dict[int, dict[int, float]]:
    """By slot and label, straight from the definition."""
    found: dict[int, dict[int, float]] = {}
    for slot in np.flatnonzero(slot_mask(state.parents)).tolist():
        own = np.flatnonzero(state.slots == slot)
        ranks = state.ranks[own].tolist()
        if not ranks:
            found[slot] = {KEEP: 1.0}
        else:
            weights = [1.0 if kind == "uniform" else math.exp(-rank / temperature) for rank in ranks]
            shares: dict[int, float] = {}
            for answer, weight in zip(state.insertions[own].tolist(), weights):
                shares[answer] = shares.get(answer, 0.0) + weight / sum(weights)
            found[slot] = shares
    return found


@given(
    st.lists(st.tuples(symbol_trees(max_leaves=10), st.integers(0, 99)), min_size=1, max_size=4),
    st.sampled_from([("rank", 0.1), ("rank", 1.0), ("rank", 10.0), ("uniform", 0.1)]),
)
@settings(max_examples=12)
def test_every_slot_has_its_distribution(drawn, distribution):
    kind, temperature = distribution
    states = [some_state(tree, np.random.default_rng(seed))[2] for tree, seed in drawn]
    partial, slots = batch_of(states)
    for row, state in enumerate(states):
        count = len(state.labels)
        assert slots[row, :count].equal(torch.from_numpy(slot_mask(state.parents))) and not slots[row, count:].any()
        assert_padded(partial, row, state, PAD)
    target = tree_slots(states, partial, TargetDistribution(kind, temperature))
    assert target["slot"].dtype == target["label"].dtype == torch.int64
    assert target["probability"].dtype == torch.float32
    assert bool((target["slot"].diff() >= 0).all()) and bool((target["probability"] > 0).all())
    numbers = torch.nonzero(slots.flatten()).flatten().tolist()
    assert target["slot"].unique().tolist() == partial["slots"].tolist() == numbers
    found: dict[tuple[int, int], dict[int, float]] = {}
    width = KINDS * slots.shape[1]
    for slot, label, share in zip(*(target[name].tolist() for name in ("slot", "label", "probability"))):
        row_of_slot = found.setdefault(divmod(slot, width), {})
        assert label not in row_of_slot
        row_of_slot[label] = share
    for row, state in enumerate(states):
        for slot, shares in distribution_of(state, kind, temperature).items():
            own = found.pop((row, slot))
            for label in shares.keys() | own.keys():
                assert own.get(label, 0.0) == pytest.approx(shares.get(label, 0.0), rel=1e-5, abs=1e-38)
    assert not found


def test_a_share_that_vanishes_is_left_out():
    state = PartialTree(np.array([4]), np.array([-1]), np.zeros(2, np.int64), np.array([7, 8]), np.array([0, 50]))
    target = tree_slots([state], batch_of([state])[0], TargetDistribution("rank", 0.1))
    assert target["label"].tolist() == [7] and target["probability"].tolist() == [1.0]
