"""Partial sequences and the shares of what they lack, against the definition, slot by slot."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.tree_insertion.test_dataset import TREES, data_of, dictionary, stored  # noqa: F401  (fixtures)
from tree_fairseq.tree_insertion import dataset
from tree_fairseq.tree_insertion.dictionary import SequenceDictionary
from tree_fairseq.tree_insertion.sequences import sequence_slots

PAD, KEEP = 1, 2


def shares_of_gap(missing: list[int], distribution: dataset.TargetDistribution) -> dict[int, float]:
    if not missing:
        return {KEEP: 1.0}
    centre = (len(missing) - 1) / 2
    nearest: dict[int, float] = {}
    for place, token in enumerate(missing):
        nearest[token] = min(abs(place - centre), nearest.get(token, math.inf))
    if distribution.kind == "uniform":
        return {token: 1 / len(nearest) for token in nearest}
    scores = {token: math.exp(-distance / distribution.temperature) for token, distance in nearest.items()}
    return {token: score / sum(scores.values()) for token, score in scores.items()}


def slot_targets(
    partial: list[dataset.PartialSequence], lengths: list[int], distribution: dataset.TargetDistribution
) -> dict:
    """The target distributions of sequences of these lengths, BOS and EOS included."""
    tokens = torch.full((len(lengths), max(lengths)), PAD)
    for row, length in enumerate(lengths):
        tokens[row, :length] = KEEP
    return dataset.collate_slots(partial, sequence_slots(tokens, PAD), max(lengths), distribution, KEEP)


EXAMPLES = st.lists(st.lists(st.tuples(st.integers(4, 7), st.booleans()), max_size=9), min_size=1, max_size=4)


@given(EXAMPLES, st.sampled_from(["rank", "uniform"]), st.sampled_from([0.3, 1.0, 10.0]))
def test_shares_are_those_of_the_definition(examples, kind, temperature):
    distribution = dataset.TargetDistribution(kind, temperature, np.maximum)
    gaps, lengths, expected = [], [], {}
    width = max(sum(keeps for _, keeps in example) for example in examples) + 2
    for row, example in enumerate(examples):
        target = np.array([token for token, _ in example], np.int64)
        gaps.append(dataset.PartialSequence.of(target, np.flatnonzero([keeps for _, keeps in example])))
        missing: list[list[int]] = [[]]
        for token, keeps in example:
            if keeps:
                missing.append([])
            else:
                missing[-1].append(token)
        lengths.append(len(missing) + 1)
        for slot, tokens in enumerate(missing):
            expected.update(
                {(row * width + slot, token): share for token, share in shares_of_gap(tokens, distribution).items()}
            )
    found = slot_targets(gaps, lengths, distribution)
    pairs = list(zip(found["slot"].tolist(), found["label"].tolist()))
    assert pairs == sorted(set(pairs)) and set(pairs) <= set(expected)
    assert all(expected[pair] < 1e-12 for pair in set(expected) - set(pairs))
    assert found["probability"].tolist() == pytest.approx([expected[pair] for pair in pairs], abs=1e-6)


def test_a_cold_softmax_still_has_a_sum():
    gap = dataset.PartialSequence.of(np.arange(4, 44), np.array([], np.int64))
    found = slot_targets([gap], [2], dataset.TargetDistribution("rank", 1e-3, np.maximum))
    assert found["label"].tolist() == [4 + 19, 4 + 20] and found["probability"].tolist() == [0.5, 0.5]


def test_lengths_are_drawn_uniformly_and_then_which_tokens():
    sampler = dataset.PartialSequenceSampler(dataset.TargetDistribution(), seed=3)
    drawn = [sampler.sample(np.arange(3), (1, index))[0].tokens.tolist() for index in range(2000)]
    lengths = Counter(map(len, drawn))
    assert all(abs(lengths[count] / 2000 - 0.25) < 0.04 for count in range(4))
    ones = Counter(kept[0] for kept in drawn if len(kept) == 1)
    assert all(abs(ones[place] / lengths[1] - 1 / 3) < 0.08 for place in range(3))
    assert not len(sampler.sample(np.arange(0), (1, 1))[0].tokens)
    assert sampler.sample(np.arange(3), (1, 7))[0].tokens.tolist() == drawn[7]


def datasets_of(stored, dictionary):
    pairs = data_of(stored, dictionary).dataset
    sequences = SequenceDictionary(dictionary, 3)
    common = {"sequences": sequences, "every_epoch": True}
    return (
        dataset.SequenceInsertionDataset(
            pairs, stored, dictionary, sampler=dataset.PartialSequenceSampler(dataset.TargetDistribution()), **common
        ),
        dataset.BracketedTargetDataset(pairs, stored, dictionary, **common),
    )


def test_batches(stored, dictionary):
    insertion, bracketed = datasets_of(stored, dictionary)
    insertion.set_epoch(2)
    kept = [insertion[index]["partial_sequences"][0].tokens.tolist() for index in range(len(TREES))]
    insertion.set_epoch(3)
    assert kept != [insertion[index]["partial_sequences"][0].tokens.tolist() for index in range(len(TREES))]
    batch = insertion.collater([insertion[index] for index in range(len(TREES))])
    partial = batch["net_input"]["partial_sequence"]
    assert set(batch["net_input"]) == {"src_tokens", "src_lengths", "source_lengths", "partial_sequence", "slots"}
    exists = torch.nn.functional.pad(partial[:, 1:], (0, 1), value=dictionary.pad()) != dictionary.pad()
    assert (
        batch["slot_target"]["slot"].unique().equal(exists.flatten().nonzero().flatten())
        and batch["ntokens"] == exists.sum()
    )
    batch = bracketed.collater([bracketed[index] for index in range(len(TREES))])
    for row, index in enumerate(batch["id"].tolist()):
        target, previous = batch["bracketed_target"][row], batch["net_input"]["prev_output_tokens"][row]
        assert bracketed.sequences.string(target) == dictionary.string(batch["target"][row])
        assert bracketed.sequences.plain(target)[: (target != dictionary.pad()).sum() - 1].equal(
            dictionary.sequence(bracketed[index]["labels"], bracketed[index]["parents"])
        )
        count = int((target != dictionary.pad()).sum())
        assert target[count - 1] == previous[0] == dictionary.eos() and previous[1:count].equal(target[: count - 1])
    assert batch["ntokens"] == (batch["bracketed_target"] != dictionary.pad()).sum()
