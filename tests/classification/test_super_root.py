"""The super-root's accumulation by sentences against the paper's equations on the whole document."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.classification.random_documents import PAD, Documents, lengths
from tests.tree_transformer import direct_accumulation
from tree_fairseq.classification.document_structure import DocumentStructure
from tree_fairseq.nn.tree_batch import TreeBatch
from tree_fairseq.tree_transformer.accumulation import AccumulationConfig, HierarchicalAccumulation
from tree_fairseq.tree_transformer.tree_structure import TreeStructure

WIDTH, HEADS = 12, 2


def structure_of(
    documents: Documents, config: AccumulationConfig, dtype: torch.dtype = torch.double
) -> DocumentStructure:
    batch = TreeBatch.from_net_input(documents.rows, documents.rows["tokens"], PAD)
    count_leaf = config.accumulation_denominator == "with-leaf"
    limits = config.max_horizontal_positions, config.max_vertical_positions
    rows = TreeStructure.build(batch, count_leaf, True, dtype, *limits)
    options = {
        "super_root": True,
        "join_leaves": False,
        "mask_subtrees": True,
        "count_leaf": count_leaf,
        "limits": limits,
    }
    return DocumentStructure.build(batch, rows, documents.document, **options)


def directly(module, config, leaves, values, own, documents: Documents) -> torch.Tensor:
    """Eqs. 5 to 10 with a node over everything: ``[B, H, D / H]``."""
    position, row, column, document = documents.pairs(super_root=True)
    text, forest = documents.forests(super_root=True)
    weights = module.leaf_weight(leaves)
    tables = (None, None)
    if module.embeddings is not None:
        tables = (module.embeddings.vertical.weight, module.embeddings.horizontal.weight)
    roots = []
    for b, sentences in enumerate(documents.documents):
        num_nodes = sum(len(tree) for _, tree in sentences) + 1
        spans = torch.stack([forest[name][b, :num_nodes] for name in ("start", "end", "depth")]).T.tolist()
        mine = document == b
        is_leaf, is_node = mine & (column < text.size(1)), mine & (column >= text.size(1))
        own_leaves = position[is_leaf], row[is_leaf]
        below = position[is_node][:-1], row[is_node][:-1]
        for h in range(HEADS):
            nodes = direct_accumulation.accumulate(
                values[own_leaves[1], h, own_leaves[0]],
                torch.cat([values[below[1], h, below[0]], own[b, h].unsqueeze(0)]),
                spans,
                weights[own_leaves[0], own_leaves[1], h],
                *tables,
                count_leaf=config.accumulation_denominator == "with-leaf",
                by_leaf_distance=config.vertical_embedding == "leaf-distance",
            )
            roots.append(nodes[-1])
    return torch.stack(roots).view(len(documents.documents), HEADS, -1)


def random_input(structure: DocumentStructure, dtype: torch.dtype = torch.double) -> tuple[torch.Tensor, ...]:
    """States of leaves, projected values of leaves and nodes, and those of super-roots."""
    num_rows, num_positions = structure.rows.padding.shape
    leaves = torch.randn(structure.rows.num_leaves, num_rows, WIDTH, dtype=dtype, requires_grad=True)
    values = torch.randn(num_rows, HEADS, num_positions, WIDTH // HEADS, dtype=dtype, requires_grad=True)
    own = torch.randn(len(structure.super_roots.first_row), HEADS, WIDTH // HEADS, dtype=dtype, requires_grad=True)
    return leaves, values, own


@pytest.mark.parametrize("denominator", ["with-leaf", "nodes-only"])
@pytest.mark.parametrize("vertical", ["leaf-distance", "root-depth"])
@pytest.mark.parametrize("embeddings", [True, False])
@settings(max_examples=15, deadline=None)
@given(sizes=lengths(max_sentences=3), seed=st.integers(0, 99), extra=st.integers(0, 2))
def test_values_and_gradients_equal_the_equations(denominator, vertical, embeddings, sizes, seed, extra):
    config = AccumulationConfig(
        accumulation_denominator=denominator,
        vertical_embedding=vertical,
        no_hierarchical_embeddings=not embeddings,
        max_vertical_positions=3,  # small, so that random trees exceed them
        max_horizontal_positions=4,
    )
    torch.manual_seed(seed)
    module = HierarchicalAccumulation(WIDTH, HEADS, config).double()
    documents = Documents(sizes, seed, extra)
    structure = structure_of(documents, config)
    leaves, values, own = random_input(structure)
    fast = structure.super_roots.accumulate(module, leaves, values, own, structure.rows)
    slow = directly(module, config, leaves, values, own, documents)
    torch.testing.assert_close(fast, slow, rtol=1e-9, atol=1e-11)
    inputs, probe = [leaves, values, own, *module.parameters()], torch.randn_like(slow)
    gradients = (torch.autograd.grad(output, inputs, probe, materialize_grads=True) for output in (fast, slow))
    for mine, theirs in zip(*gradients):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_thousands_of_leaves_in_half_precision(dtype):
    """A leaf's share of such a document is below what half precision resolves; the sum of all is not."""
    documents, config = Documents([[3] * 1500]), AccumulationConfig()
    torch.manual_seed(0)
    module = HierarchicalAccumulation(WIDTH, HEADS, config).to(dtype)
    with torch.no_grad():
        module.leaf_weight.weight.mul_(0.01)
    exact_module = HierarchicalAccumulation(WIDTH, HEADS, config).double()
    exact_module.load_state_dict(module.state_dict())
    structure = structure_of(documents, config, torch.float32)
    leaves, values, own = random_input(structure, dtype)
    leaves = leaves.detach().abs()  # weights of one sign, so that the sum is not a difference of large numbers
    fast = structure.super_roots.accumulate(module, leaves, values.abs(), own.abs(), structure.rows)
    exact = structure.super_roots.accumulate(
        exact_module, leaves.double(), values.abs().double(), own.abs().double(), structure.rows
    )
    assert fast.dtype == dtype
    # Little more than the rounding of the result: what 1500 sentences contribute is not added up in half precision.
    torch.testing.assert_close(fast.double(), exact, rtol=2 * torch.finfo(dtype).eps, atol=0)
