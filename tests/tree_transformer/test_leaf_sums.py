"""Sums over leaves against the matrix they stand for."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tree_fairseq.tree_transformer.tree_structure import LeafSums

ROWS, LEAVES = 5, 4


@settings(max_examples=50, deadline=None)
@given(places=st.lists(st.tuples(st.integers(0, LEAVES - 1), st.integers(0, ROWS - 1))), seed=st.integers(0, 99))
def test_values_and_gradients_are_those_of_the_matrix(places, seed):
    torch.manual_seed(seed)
    leaf, row = torch.tensor(sorted(places), dtype=torch.int64).view(-1, 2).unbind(1)
    share = torch.randn(len(leaf), dtype=torch.double)
    matrix = torch.zeros(ROWS, LEAVES, dtype=torch.double).index_put((row, leaf), share, accumulate=True)
    weight = torch.randn(LEAVES, 3, dtype=torch.double, requires_grad=True)
    lists = LeafSums.build(row, leaf, share, row.sort(stable=True).indices, ROWS, LEAVES)
    sums = lists(weight)
    torch.testing.assert_close(sums, matrix @ weight)
    # Gradients often come as views, of any strides.
    probe = torch.randn(3, ROWS, dtype=torch.double).t()
    torch.testing.assert_close(torch.autograd.grad(sums, weight, probe)[0], matrix.t() @ probe)
    torch.testing.assert_close(lists.transposed()(probe), matrix.t() @ probe)


@pytest.mark.parametrize("nodes", [ROWS, 0])
def test_embedded_sums_are_those_of_the_matrix_times_a_table(nodes):
    torch.manual_seed(0)
    ranks = 3
    matrix = torch.randn(ranks * nodes, LEAVES, dtype=torch.double)
    leaf, row = (
        each.flatten() for each in torch.meshgrid(torch.arange(LEAVES), torch.arange(len(matrix)), indexing="ij")
    )
    lists = LeafSums.build(row, leaf, matrix[row, leaf], row.sort(stable=True).indices, len(matrix), LEAVES)
    weight = torch.randn(LEAVES, 2, dtype=torch.double, requires_grad=True)
    table = torch.randn(ranks, 4, dtype=torch.double, requires_grad=True)
    found = lists.embed(weight, table)
    expected = torch.einsum("xmh,xw->wmh", (matrix @ weight).view(ranks, nodes, 2), table).flatten(1)
    torch.testing.assert_close(found, expected)
    probe = torch.randn_like(found)
    for mine, theirs in zip(*(torch.autograd.grad(each, (weight, table), probe) for each in (found, expected))):
        torch.testing.assert_close(mine, theirs)
