"""What layers know of the trees of a batch, against the definitions of the paper read literally."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.nn.random_forests import collated, forests
from tree_fairseq.nn.tree_batch import Branches, TreeBatch
from tree_fairseq.tree_transformer.tree_structure import TreeStructure

PAD = 1
batches = st.lists(forests(), min_size=1, max_size=3)


class Definitions:
    """The symbols of sections 4.1 and 4.3 for one forest: sets and loops, no arrays."""

    def __init__(self, num_leaves: int, spans: list[tuple[int, int, int]]):
        self.leaves, self.nodes, self.spans = range(num_leaves), range(len(spans)), spans

    def covers(self, i: int, j: int) -> bool:
        return self.spans[i][0] <= j < self.spans[i][1]

    def subtree(self, i: int) -> list[int]:
        """R(i): nodes whose leaves are all leaves of i, and which are not above it."""
        mine = {j for j in self.leaves if self.covers(i, j)}
        return [
            t
            for t in self.nodes
            if {j for j in self.leaves if self.covers(t, j)} <= mine and self.spans[t][2] >= self.spans[i][2]
        ]

    def branch(self, i: int, j: int) -> list[int]:
        """V_j^i: the nodes from i down to leaf j."""
        return [t for t in self.subtree(i) if self.covers(t, j)]


def build(batch_of_forests, left_pad: bool, seed: int, **options):
    tokens, tree = collated(batch_of_forests, PAD, left_pad, seed)
    batch = TreeBatch.from_net_input(tree, tokens, PAD)
    options = {"count_leaf": True, "mask_subtrees": True, "dtype": torch.double, **options}
    return batch, TreeStructure.build(batch, **options)


def first_columns(batch: TreeBatch) -> list[int]:
    return [row.long().argmax().item() for row in batch.is_leaf]


@pytest.mark.parametrize("count_leaf", [True, False])
@settings(max_examples=25, deadline=None)
@given(batch_of_forests=batches, left_pad=st.booleans(), seed=st.integers(0, 99))
def test_shares_and_coverage_follow_the_definitions(count_leaf, batch_of_forests, left_pad, seed):
    batch, structure = build(batch_of_forests, left_pad, seed, count_leaf=count_leaf)
    expected_share = torch.zeros_like(structure.share)
    expected_above = torch.zeros_like(structure.above)
    for b, first in enumerate(first_columns(batch)):
        definitions = Definitions(*batch_of_forests[b])
        for i in definitions.nodes:
            covered = [j for j in definitions.leaves if definitions.covers(i, j)]
            below = [structure.num_leaves + t for t in definitions.subtree(i) if t != i]
            expected_above[b, [first + j for j in covered] + below, i] = 1
            for j in covered:
                length = len(definitions.branch(i, j)) + int(count_leaf)
                expected_share[b, i, first + j] = 1 / (len(covered) * length)
    torch.testing.assert_close(structure.share, expected_share)
    assert torch.equal(structure.above, expected_above)
    assert structure.num_leaves == batch.is_leaf.size(1)


def visible(structure):
    """The mask of all positions that the parts make up, ``[B, S, S]``."""
    num_sentences, num_positions = structure.padding.shape
    mask = torch.zeros(num_sentences, num_positions, num_positions, dtype=torch.bool)
    end = 0
    for part in structure.masks:
        assert torch.isin(part.bias, torch.tensor([0.0, float("-inf")], dtype=part.bias.dtype)).all()
        mask[:, end : end + part.num_queries, : part.num_keys] = torch.isfinite(part.bias[:, 0])
        end += part.num_queries
    assert end == num_positions
    return mask


@pytest.mark.parametrize("mask_subtrees", [True, False])
@settings(max_examples=25, deadline=None)
@given(batch_of_forests=batches, left_pad=st.booleans(), seed=st.integers(0, 99))
def test_masks_are_equation_11(mask_subtrees, batch_of_forests, left_pad, seed):
    batch, structure = build(batch_of_forests, left_pad, seed, mask_subtrees=mask_subtrees)
    num_leaves, num_nodes = batch.is_leaf.size(1), batch.is_node.size(1)
    mask = visible(structure)
    for b, first in enumerate(first_columns(batch)):
        definitions = Definitions(*batch_of_forests[b])
        leaves = set(range(first, first + len(definitions.leaves) + 1))  # EOS is a leaf that no node covers
        nodes = {num_leaves + i for i in definitions.nodes}
        assert structure.padding[b].logical_not().nonzero().flatten().tolist() == sorted(leaves | nodes)
        for query in range(num_leaves + num_nodes):
            seen = set(mask[b, query].nonzero().flatten().tolist())
            if query not in leaves | nodes:
                assert seen  # padding: anything, so that its row stays finite
            elif not mask_subtrees:
                assert seen == leaves | nodes
            elif query in leaves:
                assert seen == leaves
            else:
                i = query - num_leaves
                covered = {first + j for j in definitions.leaves if definitions.covers(i, j)}
                assert seen == covered | {num_leaves + t for t in definitions.subtree(i)}


def test_depth_orders_nodes_of_equal_span():
    """Unary chains that are kept: the higher node dominates the lower one and not the other way round."""
    batch_of_forests = [(3, [(0, 3, 0), (0, 3, 1), (0, 2, 2)])]
    _, structure = build(batch_of_forests, left_pad=False, seed=0)
    assert structure.above[0, -3:].tolist() == [[0, 0, 0], [1, 0, 0], [1, 1, 0]]
    # From the top to leaf 0: three nodes and the leaf; to leaf 2: two nodes and the leaf.
    torch.testing.assert_close(structure.share[0, 0, :3], torch.tensor([1 / 12, 1 / 12, 1 / 9], dtype=torch.double))


@pytest.mark.parametrize("batch_of_forests", [[(1, [])], [(1, []), (4, [(0, 4, 0)])], [(2, []), (1, [])]])
def test_sentences_without_nodes(batch_of_forests):
    batch, structure = build(batch_of_forests, left_pad=True, seed=0)
    assert structure.share[0].any() == bool(batch_of_forests[0][1])
    assert visible(structure).any(-1).all()  # no row without a key
    assert not structure.share[0].any()
    leaves = torch.ones(batch.is_leaf.numel(), 1, dtype=torch.double)
    # The one node has four leaves; its shares and the leaves' halves of a branch make up a half.
    for sums in (structure.branches.by_rank, structure.branches.by_length):
        assert (sums.sums @ leaves).sum() == sum(0.5 for _, spans in batch_of_forests if spans)


def test_a_row_of_padding_alone():
    """fairseq never makes one, callers who fill up a batch do."""
    tokens = torch.tensor([[5, 6, 2], [PAD, PAD, PAD]])
    zeros = torch.zeros(2, 1, dtype=torch.long)
    tree = {"label": torch.tensor([[7], [PAD]]), "start": zeros, "end": torch.tensor([[2], [0]]), "depth": zeros}
    tree["branches"] = Branches.list(*(tree[name].numpy() for name in ("start", "end", "depth"))).as_dict()
    structure = TreeStructure.build(TreeBatch.from_net_input(tree, tokens, PAD), True, True)
    assert structure.padding[1].all()
    assert not structure.share[1].any() and not structure.above[1].any()
    assert visible(structure).any(-1).all()
