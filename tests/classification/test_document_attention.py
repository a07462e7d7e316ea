"""Attention of documents row by row against the same attention on whole documents as forests."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from tests.classification.random_documents import PAD, Documents, lengths
from tree_fairseq.classification.document_structure import DocumentStructure
from tree_fairseq.classification.tree_transformer_classifier import DocumentAttention
from tree_fairseq.nn.tree_batch import TreeBatch
from tree_fairseq.tree_transformer.accumulation import AccumulationConfig
from tree_fairseq.tree_transformer.tree_structure import TreeStructure

WIDTH, HEADS = 12, 2
SETTINGS = settings(max_examples=10, deadline=None)
CONFIGS = [
    AccumulationConfig(),
    AccumulationConfig(accumulation_denominator="nodes-only", vertical_embedding="root-depth"),
    AccumulationConfig(no_hierarchical_embeddings=True),
    AccumulationConfig(no_subtree_mask=True),
]


def attention(config: AccumulationConfig | None = None, seed: int = 0) -> DocumentAttention:
    """A module in double precision whose biases are not zero."""
    torch.manual_seed(seed)
    module = DocumentAttention(WIDTH, HEADS, config or AccumulationConfig(), self_attention=True)
    for name, parameter in module.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter)
    return module.double().eval()


def trees_of(
    tokens, tree, config: AccumulationConfig, dtype: torch.dtype = torch.double
) -> tuple[TreeBatch, TreeStructure]:
    batch = TreeBatch.from_net_input(tree, tokens, PAD)
    count_leaf = config.accumulation_denominator == "with-leaf"
    return batch, TreeStructure.build(batch, count_leaf, not config.no_subtree_mask, dtype)


def structure_of(documents: Documents, config: AccumulationConfig, dtype=torch.double):
    batch, rows = trees_of(documents.rows["tokens"], documents.rows, config, dtype)
    leaves, nodes = (documents.document.bincount(real.sum(1)) for real in (batch.is_leaf, batch.is_node))
    unpacked = {
        "document": documents.document,
        "most_leaves": int(leaves.max()),
        "most_positions": int((leaves + nodes).max()),
    }
    return DocumentStructure.build(batch, rows, unpacked, len(leaves), not config.no_subtree_mask)


def as_rows(states: torch.Tensor, documents: Documents) -> torch.Tensor:
    """States of whole documents ``[S, B, D]`` as those of rows, with noise at padding."""
    position, row, column, document = documents.pairs()
    num_positions = documents.rows["tokens"].size(1) + documents.rows["label"].size(1)
    noise = torch.randn(num_positions, len(documents.document), WIDTH, dtype=states.dtype)
    return noise.index_put((position, row), states[column, document])


def assert_equal_with_gradients(fast, slow, inputs):
    torch.testing.assert_close(fast, slow, rtol=1e-9, atol=1e-11)
    probe = torch.randn_like(slow)
    mine, theirs = (torch.autograd.grad(output, inputs, probe, materialize_grads=True) for output in (fast, slow))
    for left, right in zip(mine, theirs):
        torch.testing.assert_close(left, right, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("config", CONFIGS)
@SETTINGS
@given(sizes=lengths(), seed=st.integers(0, 99), extra=st.integers(0, 2))
def test_documents_of_rows_equal_documents_as_forests(config, sizes, seed, extra):
    documents, module = Documents(sizes, seed, extra), attention(config, seed)
    text, forest = documents.forests()
    _, dense = trees_of(text, forest, config)
    states = torch.randn(
        text.size(1) + forest["label"].size(1), len(text), WIDTH, dtype=torch.double, requires_grad=True
    )
    position, row, column, document = documents.pairs()
    structure = structure_of(documents, config)
    output, weights = module(as_rows(states, documents), None, None, structure)
    assert weights is None
    expected, _ = module(states, None, None, dense)
    assert_equal_with_gradients(output[position, row], expected[column, document], [states, *module.parameters()])


@SETTINGS
@given(sizes=lengths(), mates=lengths(), seed=st.integers(0, 99), extra=st.integers(0, 2))
def test_padding_and_batch_mates_change_nothing(sizes, mates, seed, extra):
    module, config = attention(seed=seed), AccumulationConfig()
    own = Documents(sizes[:1], seed)
    batch = Documents([*sizes[:1], *mates], seed, extra)
    text, forest = own.forests()
    states = torch.randn(text.size(1) + forest["label"].size(1), 1, WIDTH, dtype=torch.double)
    outputs = []
    for documents in (own, batch):
        position, row, column, document = documents.pairs()
        ours = document == 0
        num_positions = documents.rows["tokens"].size(1) + documents.rows["label"].size(1)
        mixed = torch.randn(num_positions, len(documents.document), WIDTH, dtype=torch.double)
        mixed[position[ours], row[ours]] = states[own.pairs()[2], 0]
        output, _ = module(mixed, None, None, structure_of(documents, config))
        outputs.append(output[position[ours], row[ours]])
    torch.testing.assert_close(*outputs)


def test_gradients_do_not_leak_between_documents_or_from_padding():
    documents = Documents([[3, 1], [5, 2, 4]], extra=1)
    module = attention()
    structure = structure_of(documents, AccumulationConfig())
    states = torch.randn(*structure.padding.T.shape, WIDTH, dtype=torch.double, requires_grad=True)
    output, _ = module(states, None, None, structure)
    for document in (0, 1):
        real = ~structure.padding.T & (documents.document == document)
        (gradient,) = torch.autograd.grad(output[real].sum(), states, retain_graph=True)
        assert gradient[real].any(-1).all()
        assert not gradient[~real].any()


def test_single_sentences_are_documents_too():
    """Joining the leaves of one sentence changes nothing, so such batches do not need it."""
    documents, module = Documents([[4], [1], [6]]), attention()
    _, rows = trees_of(documents.rows["tokens"], documents.rows, AccumulationConfig())
    states = torch.randn(*rows.padding.T.shape, WIDTH, dtype=torch.double)
    structure = structure_of(documents, AccumulationConfig())
    expected, _ = module(states, None, None, rows)
    output, _ = module(states, None, None, structure)
    real = ~rows.padding.T
    torch.testing.assert_close(output[real], expected[real])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("sizes", [[[1]], [[1, 1], [5]], [[2, 7, 1], [1]]])
def test_rows_of_padding_stay_finite(dtype, sizes):
    module = attention().to(dtype).train()
    structure = structure_of(Documents(sizes, extra=2), AccumulationConfig(), torch.float32)
    states = torch.randn(*structure.padding.T.shape, WIDTH, dtype=dtype, requires_grad=True)
    output, _ = module(states, None, None, structure)
    assert output.dtype == dtype and torch.isfinite(output).all()
    output.float().sum().backward()
    assert torch.isfinite(states.grad).all()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in module.parameters())


class LargestTensor(TorchDispatchMode):
    """Remembers how many elements the largest tensor had that any operator returned."""

    def __init__(self):
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(tensor, torch.Tensor):
                self.elements = max(self.elements, tensor.untyped_storage().nbytes() // tensor.element_size())
        return result


def test_no_tensor_grows_faster_than_the_document():
    """Forward and backward; a tensor of all nodes by all leaves, or by all nodes, would grow fourfold."""
    module, largest = attention(), []
    for sentences in (20, 40):
        documents = Documents([[7] * sentences], nodes=6)
        states = torch.randn(7 + 6, sentences, WIDTH, dtype=torch.double, requires_grad=True)
        with LargestTensor() as watched:
            structure = structure_of(documents, AccumulationConfig())
            output, _ = module(states, None, None, structure)
            output.sum().backward()
        largest.append(watched.elements)
    assert largest[1] <= 2.2 * largest[0]
