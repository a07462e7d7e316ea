"""The closed form of hierarchical accumulation against the paper's equations."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.nn.random_forests import collated, forests
from tests.tree_transformer import direct_accumulation
from tree_fairseq.nn.tree_batch import BLOCK, MAX_LENGTHS, MAX_RANKS, Branches, TreeBatch
from tree_fairseq.tree_transformer.accumulation import (
    AccumulationConfig,
    HierarchicalAccumulation,
    HierarchicalEmbeddings,
)
from tree_fairseq.tree_transformer.tree_structure import TreeStructure

WIDTH, HEADS, PAD = 12, 2, 1


def accumulation(
    config: AccumulationConfig, seed: int, ranks: int = MAX_RANKS, heights: int = MAX_LENGTHS
) -> HierarchicalAccumulation:
    """A module with tables of other sizes than usual."""
    torch.manual_seed(seed)
    module = HierarchicalAccumulation(WIDTH, HEADS, config)
    if module.embeddings is not None:
        by_leaf_distance = module.embeddings.by_leaf_distance
        module.embeddings = HierarchicalEmbeddings(WIDTH // HEADS, by_leaf_distance, heights, ranks)
    return module.double()


def structure_of(
    tree, src_tokens, config, dtype=torch.double, ranks: int = MAX_RANKS, heights: int = MAX_LENGTHS, block: int = BLOCK
):
    """The structure for such tables; in small blocks of levels, random trees have several."""
    arrays = (tree[name].numpy() for name in ("start", "end", "depth"))
    tree = {**tree, "branches": Branches.list(*arrays, ranks, heights, block).as_dict()}
    batch = TreeBatch.from_net_input(tree, src_tokens, PAD)
    count_leaf = config.accumulation_denominator == "with-leaf"
    return batch, TreeStructure.build(batch, count_leaf, not config.no_subtree_mask, dtype, ranks, heights)


def direct(module, config, leaves, values, batch, b):
    """The twin on sentence b: ``[H, m, D / H]``."""
    real_leaf, real_node = batch.is_leaf[b], batch.is_node[b]
    first = int(real_leaf.long().argmax())
    spans = [
        (int(batch.start[b, i]) - first, int(batch.end[b, i]) - first, int(batch.depth[b, i]))
        for i in range(len(real_node))
        if real_node[i]
    ]
    weights = module.leaf_weight(leaves[:, b])[real_leaf]  # n x H
    num_leaves = len(real_leaf)
    tables = (None, None)
    if module.embeddings is not None:
        tables = (module.embeddings.vertical.weight, module.embeddings.horizontal.weight)
    heads = []
    for h in range(HEADS):
        heads.append(
            direct_accumulation.accumulate(
                values[b, h, :num_leaves][real_leaf],
                values[b, h, num_leaves:][real_node],
                spans,
                weights[:, h],
                *tables,
                count_leaf=config.accumulation_denominator == "with-leaf",
                by_leaf_distance=config.vertical_embedding == "leaf-distance",
            )
        )
    return torch.stack(heads)


@pytest.mark.parametrize("denominator", ["with-leaf", "nodes-only"])
@pytest.mark.parametrize("vertical", ["leaf-distance", "root-depth"])
@pytest.mark.parametrize("embeddings", [True, False])
@settings(max_examples=15, deadline=None)
@given(
    batch_of_forests=st.lists(forests(), min_size=1, max_size=3),
    left_pad=st.booleans(),
    seed=st.integers(0, 99),
    block=st.integers(1, 4),
    positions=st.tuples(st.integers(1, 4), st.integers(1, 5)),
)
def test_values_and_gradients_equal_the_equations(
    denominator, vertical, embeddings, batch_of_forests, left_pad, seed, block, positions
):
    config = AccumulationConfig(
        accumulation_denominator=denominator, vertical_embedding=vertical, no_hierarchical_embeddings=not embeddings
    )
    module = accumulation(config, seed, *positions)  # small tables, so that random trees exceed them
    src_tokens, tree = collated(batch_of_forests, PAD, left_pad, seed)
    batch, structure = structure_of(tree, src_tokens, config, torch.double, *positions, block)
    num_nodes = batch.is_node.size(1)
    leaves = torch.randn(src_tokens.size(1), len(src_tokens), WIDTH, dtype=torch.double, requires_grad=True)
    values = torch.randn(
        len(src_tokens), HEADS, src_tokens.size(1) + num_nodes, WIDTH // HEADS, dtype=torch.double, requires_grad=True
    )
    inputs = [leaves, values, *module.parameters()]

    fast = module(leaves, values, structure)
    assert torch.equal(fast[:, :, : src_tokens.size(1)], values[:, :, : src_tokens.size(1)])
    nodes = fast[:, :, src_tokens.size(1) :]
    slow, picked = [], []
    for b in range(len(src_tokens)):
        if batch.is_node[b].any():
            slow.append(direct(module, config, leaves, values, batch, b).flatten())
            picked.append(nodes[b][:, batch.is_node[b]].flatten())
    if not slow:
        return
    slow, picked = torch.cat(slow), torch.cat(picked)
    torch.testing.assert_close(picked, slow, rtol=1e-9, atol=1e-11)
    probe = torch.randn_like(slow)
    gradients = zip(
        torch.autograd.grad(picked, inputs, probe, allow_unused=True),
        torch.autograd.grad(slow, inputs, probe, allow_unused=True),
    )
    for mine, theirs in gradients:
        if theirs is None:
            assert mine is None or not mine.any()
        else:
            torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-11)


def right_branching(num_leaves: int) -> list[tuple[int, int, int]]:
    return [(start, num_leaves, start) for start in range(num_leaves - 1)]


def deep_input(num_leaves: int) -> tuple[tuple, torch.Tensor, torch.Tensor]:
    """A right-branching tree and a small one, states of leaves, and values."""
    tokens, tree = collated([(num_leaves, right_branching(num_leaves)), (3, [(0, 3, 0)])], PAD, True, 0)
    leaves = torch.randn(tokens.size(1), 2, WIDTH, dtype=torch.double)
    values = torch.randn(2, HEADS, tokens.size(1) + num_leaves - 1, WIDTH // HEADS, dtype=torch.double)
    return (tree, tokens), leaves, values


def test_more_levels_than_a_block_equal_the_equations_also_in_single_precision():
    config = AccumulationConfig()
    module = accumulation(config, 0)
    trees, leaves, values = deep_input(36)
    batch, structure = structure_of(*trees, config)
    assert len(structure.branches.upper) == 2
    nodes = module(leaves, values, structure)[0, :, leaves.size(0) :]
    torch.testing.assert_close(nodes, direct(module, config, leaves, values, batch, 0), rtol=1e-9, atol=1e-11)
    _, structure = structure_of(*trees, config, torch.float32)
    rounded = accumulation(config, 0).float()(leaves.float(), values.float(), structure)[0, :, leaves.size(0) :]
    torch.testing.assert_close(rounded.double(), nodes, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("ranks, heights", [(20, 10), (100, 50)])
def test_ranks_and_heights_beyond_tables_equal_tables_that_repeat_their_last_row(ranks, heights):
    trees, leaves, values = deep_input(150)
    config = AccumulationConfig()
    module, longer = accumulation(config, 0, ranks, heights), accumulation(config, 0, 200, 200)
    longer.leaf_weight = module.leaf_weight
    for name, count in (("horizontal", ranks), ("vertical", heights)):
        table = getattr(module.embeddings, name).weight.detach()
        rows = table[torch.arange(200).clamp(max=count - 1)]
        getattr(longer.embeddings, name).weight.data.copy_(rows)
    fast, slow = (
        own(leaves, values, structure_of(*trees, config, torch.double, *sizes)[1])
        for own, sizes in ((module, (ranks, heights)), (longer, (200, 200)))
    )
    torch.testing.assert_close(fast, slow, rtol=1e-9, atol=1e-11)
