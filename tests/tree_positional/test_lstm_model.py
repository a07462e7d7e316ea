"""The tree-to-tree LSTM: against its equations, in generation, and what may not change its output."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from tests.nn.direct_tree_lstm import direct_attention, direct_child, direct_tree_lstm
from tests.nn.tiny import PAD, arguments, cross_entropy, last_loss, logits
from tests.strategies import symbol_trees
from tests.tree_positional.symbol_batches import ENCODINGS, EOS, SymbolBatch
from tests.tree_positional.symbol_pairs import Pairs, steps_of_a_beam, task_side
from tree_fairseq.errors import InputError, MissingTreesError
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.tree_positional import lstm_model
from tree_fairseq.tree_positional.lstm_model import TreeToTreeLSTMModel
from tree_fairseq.tree_positional.search import StructuralGenerator
from tree_fairseq.trees.symbols import parents_and_branches

SMALL = ("--encoder-embed-dim", "6", "--decoder-embed-dim", "5", "--hidden-size", "8")
each_source = pytest.mark.parametrize("source", [True, False], ids=["tree", "sequence"])
each_encoding = pytest.mark.parametrize(
    "encoding", ENCODINGS, ids=lambda encoding: f"{encoding.traversal}-{encoding.binarization}"
)


def model_of(pairs, *flags, seed=0):
    """A model whose weights are large enough to matter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lstm_model, "INITIAL_RANGE", 0.7)
        return pairs.model(*SMALL, *flags, arch="tree_to_tree_lstm_tiny", seed=seed)


# The paper's equations


def direct_logits(model, source: list[int], target: list[int]) -> torch.Tensor:
    """Scores of the symbols of a target tree, ``[symbols, V]``, one node after the other."""
    encoder, decoder, states = model.encoder, model.decoder, {}
    table = decoder.symbols
    parents, branches = parents_and_branches(table.arity[source].tolist(), table.encoding)
    direct_tree_lstm(encoder.tree_lstm, encoder.embed_tokens.weight[source], parents, branches, 0, states)
    memory = torch.stack([states[node][0] for node in range(len(source))])
    parents, branches = parents_and_branches(table.arity[target].tolist(), table.encoding)
    grown = []
    for parent, branch in zip(parents, branches):
        if parent < 0:
            h, c = states[0]
        else:
            h, c = direct_child(decoder.lstm, grown[parent], decoder.embed_tokens.weight[target[parent]], branch)
        grown.append((h, c, direct_attention(decoder.lstm, h, memory)))
    return torch.stack([decoder.output_projection.weight @ e for _, _, e in grown])


@settings(max_examples=6, deadline=None)
@given(
    encoding=st.sampled_from(ENCODINGS),
    trees=st.lists(symbol_trees(max_children=3, max_leaves=4), min_size=2, max_size=4),
    seed=st.integers(0, 9),
)
def test_it_is_the_model_of_the_paper(encoding, trees, seed):
    """Values and gradients; a tree is translated into the next one."""
    batch = SymbolBatch.of(trees, encoding)
    task = SimpleNamespace(
        source_dictionary=batch.dictionary,
        target_dictionary=batch.dictionary,
        source_side=task_side(batch.table),
        target_side=task_side(batch.table),
    )
    torch.manual_seed(seed)
    model = TreeToTreeLSTMModel.build_model(arguments("tree_to_tree_lstm_tiny", *SMALL), task).double().eval()
    pairs = Pairs(True, True)
    pairs.source.symbols = pairs.target.symbols = batch.table
    pairs.source.sequences, pairs.target.sequences = batch.sequences, batch.sequences[1:] + batch.sequences[:1]
    got, expected, scores = model(**pairs.net_input(spare=1))[0], 0, []
    for row, (source, target) in enumerate(zip(pairs.source.sequences, pairs.target.sequences)):
        direct = direct_logits(model, source, target)
        torch.testing.assert_close(got[row, : len(target)], direct)
        scores.append(torch.randn_like(direct))
        expected = expected + (direct * scores[row]).sum()
        # What follows the tree, and padding, are no predictions.
        assert not got[row, len(target) :].any()
    ours = sum((row[: len(score)] * score).sum() for row, score in zip(got, scores))
    gradients = (torch.autograd.grad(value, list(model.parameters()), allow_unused=True) for value in (ours, expected))
    for (name, parameter), own, direct in zip(model.named_parameters(), *gradients):
        own, direct = (torch.zeros_like(parameter) if gradient is None else gradient for gradient in (own, direct))
        if name.endswith("embed_tokens.weight"):
            own, direct = own[PAD + 1 :], direct[PAD + 1 :]
        torch.testing.assert_close(own, direct, msg=name)


# Padding and places


@each_source
@pytest.mark.parametrize("left_pad", [True, False])
def test_a_pair_alone_equals_the_pair_in_a_batch(source, left_pad):
    pairs = Pairs(source, True)
    model = model_of(pairs).double()
    output, extra = model(**pairs.net_input(left_pad=left_pad, spare=2))
    for row in range(4):
        inputs = pairs.net_input([row])
        alone, extra_alone = model(**inputs)
        torch.testing.assert_close(output[row, : alone.size(1)], alone[0])
        # Attention is over the columns of the tokens, wherever they stand.
        tokens = pairs.net_input(left_pad=left_pad, spare=2)["src_tokens"][row].ne(PAD)
        attention = extra["attn"][0][row]
        torch.testing.assert_close(attention[: alone.size(1), tokens], extra_alone["attn"][0][0])
        assert not attention[:, ~tokens].any()


@each_source
def test_everything_but_padding_gets_a_gradient(source):
    pairs = Pairs(source, True)
    model = model_of(pairs).train()
    output, extra = model(**pairs.net_input(spare=2))
    assert extra["attn"] == [None]
    target = pairs.target.tokens(spare=1)
    functional.cross_entropy(output.flatten(0, 1), target.flatten(), ignore_index=PAD).backward()
    for name, parameter in model.named_parameters():
        assert torch.isfinite(parameter.grad).all() and parameter.grad.any(), name
    assert not model.encoder.embed_tokens.weight.grad[PAD].any()


@pytest.mark.parametrize("rows", [None, [2, 0, 3, 1]], ids=["unsorted", "sorted"])
def test_lengths_of_the_batch_change_nothing(rows):
    """Values and gradients are those of lengths that the device gives."""
    pairs = Pairs(False, True)
    model, inputs = model_of(pairs).double(), pairs.net_input(rows, spare=1)
    lengths = inputs["src_tokens"].ne(PAD).sum(1).numpy()
    assert (np.diff(lengths) <= 0).all() == (rows is not None)
    expected, got = (model(**inputs, source_lengths=given)[0] for given in (None, lengths))
    torch.testing.assert_close(got, expected, rtol=0, atol=0)
    gradients = (torch.autograd.grad(output.square().sum(), list(model.parameters())) for output in (expected, got))
    for own, asked in zip_equal(*gradients):
        torch.testing.assert_close(own, asked)


# Generation


@each_encoding
def test_incremental_decoding_equals_teacher_forcing(encoding):
    pairs = Pairs(True, True, encoding, sizes=(9, 5, 12, 8, 3))
    model, inputs = model_of(pairs).double(), pairs.net_input(spare=1)
    full = logits(model, inputs)
    for output, rows, t in steps_of_a_beam(model, inputs):
        torch.testing.assert_close(output, full[rows, t])


def test_ids_that_are_not_symbols_fill_no_node():
    """Neither in the place of the root nor later: the same slot comes again."""
    pairs = Pairs(True, True)
    model, inputs = model_of(pairs).double(), pairs.net_input([1])
    (tree,), unknown = pairs.target.sequences[1:2], pairs.target.dictionary.unk()
    plain = logits(model, inputs)[0]
    del inputs["previous_symbol_tree"]
    inputs["prev_output_tokens"] = tokens = torch.tensor([[EOS, unknown, *tree[:2], unknown, *tree[2:]]])
    full, state = logits(model, inputs)[0], {}
    torch.testing.assert_close(full, torch.cat([plain[:1], plain[:3], plain[2:]]))
    encoder_out = model.encoder(inputs["src_tokens"], source_symbol_tree=inputs["source_symbol_tree"])
    for t in range(tokens.size(1)):
        output, _ = model.decoder(tokens[:, : t + 1], encoder_out=encoder_out, incremental_state=state)
        torch.testing.assert_close(output[0, 0], full[t])


def generate(models, pairs, rows=None, generator=SequenceGenerator, **options):
    inputs = pairs.net_input(rows)
    inputs.pop("previous_symbol_tree"), inputs.pop("prev_output_tokens")
    search = generator(models, pairs.task.target_dictionary, beam_size=3, max_len_b=9, **options)
    return search.generate(models, {"net_input": inputs})


def test_the_structural_search_returns_trees_that_do_not_depend_on_batch_mates():
    pairs = Pairs(True, True)
    model, options = model_of(pairs), {"generator": StructuralGenerator, "symbols": pairs.target.symbols}
    together = generate([model], pairs, **options)
    for row in range(4):
        (alone,) = generate([model], pairs, [row], **options)
        for left, right in zip_equal(alone, together[row]):
            tokens = left["tokens"].tolist()
            assert tokens == right["tokens"].tolist()
            torch.testing.assert_close(left["positional_scores"], right["positional_scores"], rtol=1e-4, atol=1e-5)
            pairs.target.symbols.encoding.decode([pairs.target.dictionary[index] for index in tokens[:-1]])


def test_ten_trees_are_learned():
    pairs = Pairs(True, True, sizes=(7, 3, 9, 5, 8, 4, 6, 9, 7, 5))
    model = model_of(pairs, "--dropout", "0", "--hidden-size", "24").train()
    inputs, target = pairs.net_input(), pairs.target.tokens(spare=1)
    assert last_loss(model, lambda: cross_entropy(model, inputs, target), updates=50, rate=2e-2) < 0.05
    best = generate([model.eval()], pairs, generator=StructuralGenerator, symbols=pairs.target.symbols, max_len_a=2)
    assert [hypotheses[0]["tokens"].tolist()[:-1] for hypotheses in best] == pairs.target.sequences


# Options


def test_the_output_may_share_the_embeddings():
    pairs = Pairs(True, True)
    model = model_of(pairs, "--decoder-embed-dim", "8", "--share-decoder-input-output-embed")
    assert model.decoder.output_projection is None
    assert logits(model, pairs.net_input()).size(2) == len(pairs.target.dictionary)


def test_weights_begin_in_their_range():
    model = Pairs(False, True).model(arch="tree_to_tree_lstm_tiny")
    assert all(parameter.abs().max() <= lstm_model.INITIAL_RANGE for parameter in model.parameters())
    assert not model.encoder.embed_tokens.weight[PAD].any() and not model.decoder.embed_tokens.weight[PAD].any()


def test_contradicting_options_are_refused():
    with pytest.raises(InputError, match="--arch lstm"):
        model_of(Pairs(True, False))
    pairs = Pairs(True, True)
    inputs = pairs.net_input()
    del inputs["source_symbol_tree"]
    with pytest.raises(MissingTreesError, match="--task structural_translation"):
        model_of(pairs)(**inputs)
    del pairs.task.source_side, pairs.task.target_side
    with pytest.raises(MissingTreesError, match="--task structural_translation"):
        model_of(pairs)
