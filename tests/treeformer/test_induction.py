"""Induced trees against recursion over the paper's loop."""

from __future__ import annotations

import pytest
import torch

from tests.nn.tiny import PAD, build, pairs, stack, tiny_task
from tests.treeformer import direct_chart
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.treeformer.induction import sentence_splits
from tree_fairseq.trees.tree import Tree

TASK = tiny_task()
LENGTHS = (9, 1, 5, 2, 7)


def model_of(*flags: str, seed: int = 0):
    return build(TASK, "--treeformer-height", "4", *flags, arch="treeformer_tiny", seed=seed).double()


def recursive(weights, leaves, starts, end, first=0, last=None):
    """The tree over the words ``[first, last)``, where ``weights`` has (start, length) of tokens."""
    last = len(leaves) if last is None else last
    if last - first == 1:
        return Tree("X", [Tree(leaves[first])])
    begin, stop = starts[first], (starts + [end])[last]
    best = max(range(first + 1, last), key=lambda middle: weights[begin, stop - begin][starts[middle] - begin - 1])
    return Tree(
        "X", [recursive(weights, leaves, starts, end, first, best), recursive(weights, leaves, starts, end, best, last)]
    )


@pytest.mark.parametrize("left_pad", [True, False])
def test_trees_are_the_recursion_over_the_loops_of_the_paper(left_pad):
    model, sentences = model_of(), pairs(TASK, *LENGTHS)
    tokens = stack([pair.source for pair in sentences], left_pad, width=12)
    splits = sentence_splits([model.encoder], tokens, PAD)
    for pair, found in zip_equal(sentences, splits):
        n = len(pair.source)
        alone = stack([pair.source], True)
        states = model.encoder(alone, torch.tensor([n + 1]))["encoder_out"][0][:, 0]
        chart = model.encoder.chart
        weights = {
            cell: shares.tolist()
            for cell, shares in direct_chart.split_weights(states, chart.composition(), chart.query[0], n).items()
        }
        leaves = [f"w{k}" for k in range(n)]
        assert found.tree([[leaf] for leaf in leaves]) == recursive(weights, leaves, list(range(n)), n)
        # Words of three pieces: only splits between words are looked at.
        starts = list(range(0, n, 3))
        pieces = [leaves[start : start + 3] for start in starts]
        words = ["".join(word) for word in pieces]
        expected = recursive(weights, words, starts, n)
        assert found.tree(pieces, words) == expected
        spelled = found.tree(pieces)
        assert spelled.leaves() == leaves
        if n > 3:
            assert len(spelled.children) == 2
        for start in range(n):
            for length in range(2, n - start + 1):
                assert found.weights(start, start + length) == pytest.approx(weights[start, length])


def test_an_ensemble_takes_the_mean():
    models, [pair] = [model_of(seed=seed) for seed in (0, 1)], pairs(TASK, 6)
    tokens = stack([pair.source], True)
    one, two, both = (
        sentence_splits([model.encoder for model in some], tokens, PAD)[0] for some in (models[:1], models[1:], models)
    )
    assert both.weights(0, 6) == pytest.approx((one.weights(0, 6) + two.weights(0, 6)) / 2)
