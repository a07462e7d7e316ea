"""Attention over leaves and accumulated nodes against sums written out position by position."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.nn.random_forests import collated, forests
from tests.tree_transformer import direct_accumulation
from tree_fairseq.nn.shared_memory import Memory
from tree_fairseq.nn.tree_batch import TreeBatch
from tree_fairseq.tree_transformer.accumulation import AccumulationConfig
from tree_fairseq.tree_transformer.model import TreeCrossAttention, TreeModelConfig, TreeSelfAttention
from tree_fairseq.tree_transformer.tree_structure import TreeStructure

WIDTH, HEADS, PAD = 12, 2, 1
HEAD_WIDTH = WIDTH // HEADS
SETTINGS = settings(max_examples=15, deadline=None)
batches = st.lists(forests(max_leaves=6) | forests(max_leaves=4, unary=True), min_size=1, max_size=3)


@pytest.fixture(scope="module", autouse=True)
def softmax_in_double_precision():
    """fairseq's attention takes its softmax in single precision, too coarse to compare with equations."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairseq.utils.softmax", lambda scores, dim, onnx_trace=False: scores.softmax(dim))
        yield


def attention(kind: str, config: AccumulationConfig | None = None, seed: int = 0, **options):
    """A module in double precision whose biases are not zero."""
    torch.manual_seed(seed)
    config = config or AccumulationConfig()
    if kind == "self":
        module = TreeSelfAttention(WIDTH, HEADS, config, self_attention=True)
    else:
        options = {"attend_nodes": True, **options}
        config = TreeModelConfig(**dataclasses.asdict(config))
        module = TreeCrossAttention(WIDTH, HEADS, config, encoder_decoder_attention=True, **options)
    for name, parameter in module.named_parameters():
        if "bias" in name:
            torch.nn.init.normal_(parameter)
    return module.double().eval()


def structure_of(tree, tokens, config: AccumulationConfig | None = None) -> tuple[TreeBatch, TreeStructure]:
    config = config or AccumulationConfig()
    batch = TreeBatch.from_net_input(tree, tokens, PAD)
    count_leaf = config.accumulation_denominator == "with-leaf"
    return batch, TreeStructure.build(
        batch,
        count_leaf,
        mask_subtrees=not config.no_subtree_mask,
        dtype=torch.double,
        leaves_to_ancestors=config.leaves_to_ancestors,
    )


class Sentence:
    """One sentence of a batch: its forest and where its leaves and nodes stand among the states."""

    def __init__(self, batch: TreeBatch, b: int):
        self.leaf_rows = batch.is_leaf[b].nonzero().flatten().tolist()
        self.node_rows = [batch.is_leaf.size(1) + i for i in batch.is_node[b].nonzero().flatten().tolist()]
        first = self.leaf_rows[0]
        triples = zip(batch.start[b].tolist(), batch.end[b].tolist(), batch.depth[b].tolist())
        spans = [(start - first, end - first, depth) for start, end, depth in triples]
        self.spans = [span for span, real in zip(spans, batch.is_node[b].tolist()) if real]

    @property
    def rows(self) -> list[int]:
        return self.leaf_rows + self.node_rows

    def visible(self, query: int, to_ancestors: bool) -> list[int]:
        """Eq. 11, positions counted within the sentence: a leaf sees leaves, a node its subtree.

        With ``to_ancestors`` a leaf also sees the nodes above it.
        """
        leaves = range(len(self.leaf_rows))
        if query in leaves:
            above = [t for t, (start, end, _) in enumerate(self.spans) if to_ancestors and start <= query < end]
            return list(leaves) + [len(leaves) + t for t in above]
        start, end, depth = self.spans[query - len(leaves)]
        below = [t for t, s in enumerate(self.spans) if start <= s[0] and s[1] <= end and s[2] >= depth]
        return list(range(start, end)) + [len(leaves) + t for t in below]


def directly(module, queries, states, sentence: Sentence, config: AccumulationConfig, mask: bool):
    """Attention of ``[T, D]`` queries over ``[S, D]`` states of one sentence, head by head and query by query."""
    num_leaves = len(sentence.leaf_rows)
    query, key, value = module.q_proj(queries), module.k_proj(states), module.v_proj(states)
    tables = (None, None)
    if module.accumulation.embeddings is not None:
        tables = (module.accumulation.embeddings.vertical.weight, module.accumulation.embeddings.horizontal.weight)
    weights = module.accumulation.leaf_weight(states[:num_leaves])
    outputs = []
    for h in range(HEADS):
        part = slice(h * HEAD_WIDTH, (h + 1) * HEAD_WIDTH)
        values = value[:, part]
        if sentence.spans:
            nodes = direct_accumulation.accumulate(
                values[:num_leaves],
                values[num_leaves:],
                sentence.spans,
                weights[:, h],
                *tables,
                count_leaf=config.accumulation_denominator == "with-leaf",
                by_leaf_distance=config.vertical_embedding == "leaf-distance",
            )
            values = torch.cat([values[:num_leaves], nodes])
        rows = []
        for t in range(len(queries)):
            seen = sentence.visible(t, config.leaves_to_ancestors) if mask else list(range(len(states)))
            scores = torch.stack([query[t, part] @ key[s, part] for s in seen]) / math.sqrt(HEAD_WIDTH)
            if isinstance(module, TreeCrossAttention):
                scores = scores + torch.stack([module.phrase_bias.weight[h] * (s >= num_leaves) for s in seen])
            elif config.leaves_to_ancestors and t < num_leaves:
                scores = scores + torch.stack([module.ancestor_bias[h] * (s >= num_leaves) for s in seen])
            rows.append(scores.softmax(0) @ values[seen])
        outputs.append(torch.stack(rows))
    return module.out_proj(torch.cat(outputs, dim=1))


def assert_equal_with_gradients(fast, slow, inputs):
    torch.testing.assert_close(fast, slow, rtol=1e-9, atol=1e-11)
    probe = torch.randn_like(slow)
    mine = torch.autograd.grad(fast, inputs, probe, allow_unused=True)
    theirs = torch.autograd.grad(slow, inputs, probe, allow_unused=True)
    for tensor, *pair in zip(inputs, mine, theirs):
        left, right = (torch.zeros_like(tensor) if gradient is None else gradient for gradient in pair)
        torch.testing.assert_close(left, right, rtol=1e-8, atol=1e-10)


CONFIGS = [
    AccumulationConfig(),
    AccumulationConfig(accumulation_denominator="nodes-only", vertical_embedding="root-depth"),
    AccumulationConfig(no_hierarchical_embeddings=True, no_subtree_mask=True),
    AccumulationConfig(leaves_to_ancestors=True),
]


@pytest.mark.parametrize("config", CONFIGS)
@SETTINGS
@given(batch_of_forests=batches, left_pad=st.booleans(), seed=st.integers(0, 99))
def test_self_attention_equals_the_equations(config, batch_of_forests, left_pad, seed):
    module = attention("self", config, seed)
    tokens, tree = collated(batch_of_forests, PAD, left_pad, seed)
    batch, structure = structure_of(tree, tokens, config)
    states = torch.randn(structure.padding.size(1), len(tokens), WIDTH, dtype=torch.double, requires_grad=True)
    output, weights = module(states, states, states, structure)
    assert weights is None and output.shape == states.shape
    fast, slow = [], []
    for b in range(len(tokens)):
        sentence = Sentence(batch, b)
        own = states[sentence.rows, b]
        fast.append(output[sentence.rows, b])
        slow.append(directly(module, own, own, sentence, config, mask=not config.no_subtree_mask))
    assert_equal_with_gradients(torch.cat(fast), torch.cat(slow), [states, *module.parameters()])


@pytest.mark.parametrize("config", CONFIGS)
@SETTINGS
@given(batch_of_forests=batches, left_pad=st.booleans(), seed=st.integers(0, 99))
def test_cross_attention_equals_the_equations(config, batch_of_forests, left_pad, seed):
    module = attention("cross", config, seed)
    tokens, tree = collated(batch_of_forests, PAD, left_pad, seed)
    batch, structure = structure_of(tree, tokens, config)
    states = torch.randn(structure.padding.size(1), len(tokens), WIDTH, dtype=torch.double, requires_grad=True)
    queries = torch.randn(3, len(tokens), WIDTH, dtype=torch.double, requires_grad=True)
    memory = Memory(structure, torch.arange(len(tokens)))
    output, weights = module(queries, states, states, memory, static_kv=True, need_weights=True)
    assert weights.shape == (len(tokens), 3, structure.padding.size(1))
    assert not weights.masked_select(structure.padding[:, None]).any()
    without_weights, _ = module(queries, states, states, memory, static_kv=True, need_weights=False)
    torch.testing.assert_close(without_weights, output, rtol=1e-9, atol=1e-11)
    slow = []
    for b in range(len(tokens)):
        sentence = Sentence(batch, b)
        slow.append(directly(module, queries[:, b], states[sentence.rows, b], sentence, config, mask=False))
    assert_equal_with_gradients(output, torch.stack(slow, dim=1), [queries, states, *module.parameters()])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("batch_of_forests", [[(1, [])], [(1, []), (5, [(0, 5, 0), (2, 5, 1)])], [(2, [(0, 2, 0)])]])
def test_rows_of_padding_stay_finite(dtype, batch_of_forests):
    module = attention("self").to(dtype).train()
    tokens, tree = collated(batch_of_forests, PAD, True, 3)
    structure = TreeStructure.build(TreeBatch.from_net_input(tree, tokens, PAD), True, True)
    states = torch.randn(structure.padding.size(1), len(tokens), WIDTH, dtype=dtype, requires_grad=True)
    output, _ = module(states, states, states, structure)
    assert output.dtype == dtype and torch.isfinite(output).all()
    output.float().sum().backward()
    assert torch.isfinite(states.grad).all()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in module.parameters())


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("attend_nodes", [True, False])
def test_decoding_shares_one_copy_of_a_sentence_among_its_beams(beams, attend_nodes):
    """Every row of a beam search reads its own sentence, whose values are projected and accumulated once."""
    module = attention("cross", attend_nodes=attend_nodes)
    tokens, tree = collated([(3, [(0, 3, 0)]), (5, [(0, 5, 0), (1, 4, 1)])], PAD, True, 0)
    _, structure = structure_of(tree, tokens)
    states = torch.randn(structure.padding.size(1), 2, WIDTH, dtype=torch.double)
    queries = torch.randn(4, 2 * beams, WIDTH, dtype=torch.double)
    rows = torch.arange(2).repeat_interleave(beams)
    memory = Memory(structure, rows)
    expected, expected_weights = module(queries, states, states, memory, static_kv=True, need_weights=True)

    accumulated = []
    if attend_nodes:
        module.accumulation.register_forward_hook(lambda *_: accumulated.append(1))
    state = {}
    steps = [module(query[None], states, states, memory, state, static_kv=True, need_weights=True) for query in queries]
    torch.testing.assert_close(torch.cat([output for output, _ in steps]), expected)
    torch.testing.assert_close(torch.cat([weights for _, weights in steps], dim=1), expected_weights)
    assert len(accumulated) == int(attend_nodes)
    assert module._get_input_buffer(state)["prev_key"].size(0) == 2
