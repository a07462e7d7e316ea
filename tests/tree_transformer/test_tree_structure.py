"""What layers know of the trees of a batch, against the definitions of the paper read literally."""

from __future__ import annotations

import pytest
import torch

from tests.nn.random_forests import collated
from tree_fairseq.nn.tree_batch import Branches, TreeBatch
from tree_fairseq.tree_transformer.tree_structure import TreeStructure

PAD = 1


def build(batch_of_forests, left_pad: bool, seed: int, **options):
    tokens, tree = collated(batch_of_forests, PAD, left_pad, seed)
    batch = TreeBatch.from_net_input(tree, tokens, PAD)
    options = {"count_leaf": True, "mask_subtrees": True, "dtype": torch.double, **options}
    return batch, TreeStructure.build(batch, **options)


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
