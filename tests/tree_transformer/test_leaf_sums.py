"""Sums over leaves against the matrix they stand for."""

from __future__ import annotations

import pytest
import torch

from tree_fairseq.tree_transformer.tree_structure import LeafSums

ROWS, LEAVES = 5, 4


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
