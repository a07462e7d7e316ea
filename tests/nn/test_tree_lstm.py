"""The Tree-LSTM and its levels, compared with their definitions."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.nn.direct_tree_lstm import direct_tree_lstm
from tests.tree_positional.symbol_batches import columns_of, places
from tree_fairseq.nn.tree_lstm import TreeLevels, TreeLSTM


@st.composite
def batches(draw, degree: int):
    """Trees whose nodes are in random columns: parents, branches and a mask."""
    trees = draw(st.lists(places(degree, 7).filter(_is_proper), min_size=1, max_size=3))
    width = max(map(len, trees)) + draw(st.integers(0, 2))
    orders = [draw(st.permutations(range(width)))[: len(tree)] for tree in trees]
    return *columns_of(trees, orders, width), [order[0] for order in orders]


def _is_proper(tree) -> bool:
    return len(set(tree)) == len(tree)


@settings(max_examples=20, deadline=None)
@given(data=st.data(), degree=st.integers(1, 4), seed=st.integers(0, 99))
def test_it_equals_the_recursion_of_the_paper(data, degree, seed):
    tree, mask, roots = data.draw(batches(degree))
    torch.manual_seed(seed)
    lstm = TreeLSTM(3, 2, degree).double()
    features = torch.randn(*mask.shape, 3, dtype=torch.float64, requires_grad=True)
    h, c = lstm(features, tree["parents"], tree["branches"], mask)
    assert not h[~mask].any() and not c[~mask].any()

    scores, expected = torch.randn(2, *h.shape, dtype=torch.float64), 0
    for row, root in enumerate(roots):
        states = {}
        direct_tree_lstm(
            lstm, features[row], tree["parents"][row].tolist(), tree["branches"][row].tolist(), root, states
        )
        assert len(states) == mask[row].sum()
        for column, (own_h, own_c) in states.items():
            torch.testing.assert_close(h[row, column], own_h)
            torch.testing.assert_close(c[row, column], own_c)
            expected = expected + (scores[0, row, column] * own_h + scores[1, row, column] * own_c).sum()
    got = (scores[0] * h + scores[1] * c).sum()
    inputs = [features, *lstm.parameters()]
    # Trees of one node do not use the weights of children.
    gradients = (
        torch.autograd.grad(value, inputs, allow_unused=True, materialize_grads=True) for value in (got, expected)
    )
    for ours, theirs in zip(*gradients):
        torch.testing.assert_close(ours, theirs)


def test_forget_gates_read_siblings_only_in_binary_trees():
    assert TreeLSTM(3, 2, 2).full_forget_gates and not TreeLSTM(3, 2, 3).full_forget_gates
    assert TreeLSTM(3, 2, 20).from_children.weight.shape == (20, 8, 2)


def test_a_row_may_have_several_roots():
    torch.manual_seed(0)
    lstm = TreeLSTM(3, 2, 2)
    features = torch.randn(1, 4, 3)
    parents, branches = torch.tensor([[-1, 0, -1, 2]]), torch.tensor([[-1, 1, -1, 0]])
    h, _ = lstm(features, parents, branches, torch.ones(1, 4, dtype=torch.bool))
    alone, _ = lstm(features[:, 2:], parents[:, 2:].clamp(max=0), branches[:, 2:], torch.ones(1, 2, dtype=torch.bool))
    torch.testing.assert_close(h[:, 2:], alone)


def test_a_batch_may_have_no_nodes():
    h, c = TreeLSTM(3, 2, 2)(torch.randn(2, 4, 3), *torch.full((2, 2, 4), -1), torch.zeros(2, 4, dtype=torch.bool))
    assert h.shape == c.shape == (2, 4, 2) and not h.any()


def test_a_deep_tree_needs_no_recursion():
    """The root of a chain depends on its last node."""
    depth = 1200
    torch.manual_seed(0)
    lstm = TreeLSTM(1, 1, 1)
    torch.nn.init.constant_(lstm.from_features.bias, 4.0)
    features = torch.zeros(1, depth, 1)
    parents = torch.arange(-1, depth - 1)[None]
    h, _ = lstm(features, parents, torch.zeros_like(parents), torch.ones(1, depth, dtype=torch.bool))
    assert h.isfinite().all()
    assert (
        len(TreeLevels.of(parents, torch.zeros_like(parents), torch.ones(1, depth, dtype=torch.bool), 1).sizes) == depth
    )


# Levels
