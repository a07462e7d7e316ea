"""The transformer with tree positions in training and in generation: what may and what may not change its output."""

from __future__ import annotations

import copy

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator
from torch.nn import functional

from tests.nn.tiny import PAD, cross_entropy, last_loss, logits, stock_flags
from tests.tree_positional.symbol_batches import ENCODINGS, EOS
from tests.tree_positional.symbol_pairs import MODALITIES, Pairs, steps_of_a_beam
from tree_fairseq.errors import MissingTreesError
from tree_fairseq.tree_positional.positions import TreePositions
from tree_fairseq.tree_positional.search import StructuralGenerator

QUERY = [(), ("--query-position",)]
each_modality = pytest.mark.parametrize("source, target", MODALITIES)
each_encoding = pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda form: f"{form.traversal}-{form.binarization}")


# Padding


@each_modality
@pytest.mark.parametrize("left_pad", [True, False])
@pytest.mark.parametrize("flags", [(), ("--copy-source",)])
def test_a_pair_alone_equals_the_pair_in_a_batch(source, target, left_pad, flags):
    pairs = Pairs(source, target)
    model = pairs.model(*flags).double()
    together = logits(model, pairs.net_input(left_pad=left_pad, spare=2))
    for row in range(4):
        alone = logits(model, pairs.net_input([row]))[0]
        torch.testing.assert_close(together[row, : len(alone)], alone, rtol=1e-6, atol=1e-6)


def test_padding_gets_no_gradient_and_everything_else_does():
    pairs = Pairs(True, True)
    model = pairs.model("--query-position").train()
    inputs = pairs.net_input(spare=2)
    target = pairs.target.tokens(spare=1)
    assert target.shape == inputs["prev_output_tokens"].shape
    functional.cross_entropy(model(**inputs)[0].flatten(0, 1), target.flatten(), ignore_index=PAD).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.any(), name
    assert not model.encoder.embed_tokens.weight.grad[PAD].any()


# Positions


def test_places_in_trees_are_read():
    pairs = Pairs(True, True)
    model = pairs.model("--query-position")
    inputs = pairs.net_input()
    expected = logits(model, inputs)
    for name in ("source_symbol_tree", "previous_symbol_tree"):
        other = copy.deepcopy(inputs)
        other[name]["branches"] = torch.where(other[name]["branches"] < 0, -1, 1 - other[name]["branches"])
        assert not torch.allclose(logits(model, other), expected, atol=1e-3), name


@each_modality
def test_trees_have_no_positions_of_sequences(source, target):
    """Where tree positions are silenced, a tree side is fairseq's without positions; a sequence side is fairseq's."""
    pairs = Pairs(source, target)
    model, stock = pairs.model(), pairs.model(*stock_flags(), arch="transformer")
    for name, is_tree in (("encoder", source), ("decoder", target)):
        side = getattr(model, name)
        assert isinstance(side.embed_positions, TreePositions) == is_tree
        if is_tree:
            torch.nn.init.zeros_(side.embed_positions.projection.weight)
            getattr(stock, name).embed_positions = None
    own = stock.state_dict()
    stock.load_state_dict({name: weight for name, weight in model.state_dict().items() if name in own})
    inputs = pairs.net_input()
    expected = logits(stock, {name: inputs[name] for name in ("src_tokens", "src_lengths", "prev_output_tokens")})
    torch.testing.assert_close(logits(model, inputs), expected)


def test_a_source_without_its_places_is_refused():
    pairs = Pairs(True, True)
    inputs = pairs.net_input()
    del inputs["source_symbol_tree"]
    with pytest.raises(MissingTreesError, match="--task structural_translation"):
        pairs.model()(**inputs)


@each_encoding
@pytest.mark.parametrize("flags", QUERY)
def test_missing_places_of_targets_are_derived_from_their_symbols(encoding, flags):
    pairs = Pairs(False, True, encoding)
    model = pairs.model(*flags)
    inputs = pairs.net_input()
    expected = logits(model, inputs)
    del inputs["previous_symbol_tree"]
    torch.testing.assert_close(logits(model, inputs), expected, rtol=0, atol=0)


def test_the_query_position_is_that_of_the_next_symbol():
    """The prefix determines it, and nothing that follows."""
    pairs = Pairs(False, True)
    plain, asking = pairs.model(), pairs.model("--query-position")
    inputs = pairs.net_input()
    del inputs["previous_symbol_tree"]
    assert not torch.allclose(logits(plain, inputs), logits(asking, inputs), atol=1e-3)
    torch.nn.init.zeros_(asking.decoder.embed_next_positions.projection.weight)
    asking.load_state_dict({**asking.state_dict(), **plain.state_dict()})
    torch.testing.assert_close(logits(plain, inputs), logits(asking, inputs))


@pytest.mark.parametrize("flags", [(), ("--encoder-learned-pos", "--decoder-learned-pos")])
def test_a_model_with_sequence_positions_starts_as_the_stock_transformer(flags):
    pairs = Pairs(True, True)
    model = pairs.model("--sequence-positions", "--query-position", *flags).double()
    stock = pairs.model(*stock_flags(), *flags, arch="transformer", seed=2).double()
    model.load_state_dict(stock.state_dict())
    inputs = pairs.net_input()
    expected = logits(stock, {name: inputs[name] for name in ("src_tokens", "src_lengths", "prev_output_tokens")})
    torch.testing.assert_close(logits(model, inputs), expected)
    positions = model.encoder.embed_positions, model.decoder.embed_positions, model.decoder.embed_next_positions
    for module in positions:
        torch.nn.init.xavier_uniform_(module.projection.weight)
        assert not torch.allclose(logits(model, inputs), expected, atol=1e-3)
        torch.nn.init.zeros_(module.projection.weight)


# Incremental decoding


@each_encoding
@pytest.mark.parametrize(
    "flags",
    [
        *QUERY,
        ("--parameter-free-tree-positions", "--tree-levels", "3", "--query-position"),
        ("--query-position", "--factored-symbols", "--share-decoder-input-output-embed"),
        ("--sequence-positions",),
        ("--sequence-positions", "--decoder-learned-pos"),
        ("--copy-source",),
    ],
)
@pytest.mark.parametrize("target", [True, False])
def test_incremental_decoding_equals_teacher_forcing(encoding, flags, target):
    if not target and "--query-position" in flags:
        flags = ()
    pairs = Pairs(True, target, encoding, sizes=(9, 5, 12, 8, 3))
    model = pairs.model(*flags).double()
    for name, weight in model.named_parameters():
        if name.endswith("projection.weight"):
            torch.nn.init.xavier_uniform_(weight)  # with --sequence-positions it starts at zero
    inputs = pairs.net_input()
    # One source for all: they are hypotheses of a beam.
    for part in ("parents", "branches"):
        inputs["source_symbol_tree"][part] = inputs["source_symbol_tree"][part][:1].expand(5, -1)
    inputs["src_tokens"] = inputs["src_tokens"][:1].expand(5, -1)
    full = logits(model, inputs)
    for output, rows, t in steps_of_a_beam(model, inputs):
        real = inputs["prev_output_tokens"][rows, t].ne(PAD)
        # fairseq takes the softmax of attention in single precision.
        torch.testing.assert_close(output[real], full[rows[real], t], rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("source", [True, False])
@pytest.mark.parametrize("is_structural", [True, False])
def test_scores_of_searches_are_those_of_teacher_forcing(source, is_structural):
    """Of an ensemble of models that copy; the mask of the structural search is not renormalised."""
    pairs = Pairs(source, True, ENCODINGS[2])
    models = [pairs.model("--copy-source", seed=seed) for seed in range(2)]
    options = {"beam_size": 4, "max_len_b": 9, "normalize_scores": False}
    dictionary, symbols = pairs.task.target_dictionary, pairs.target.symbols
    if is_structural:
        generator = StructuralGenerator(models, dictionary, symbols=symbols, **options)
    else:
        generator = SequenceGenerator(models, dictionary, **options)
    inputs = pairs.net_input()
    del inputs["previous_symbol_tree"], inputs["prev_output_tokens"]
    for row, hypotheses in enumerate(generator.generate(models, {"net_input": inputs})):
        assert hypotheses
        for hypothesis in hypotheses:
            tokens = hypothesis["tokens"][: -1 if is_structural else None]  # EOS of a tree costs nothing
            forced = pairs.net_input([row])
            del forced["previous_symbol_tree"]
            forced["prev_output_tokens"] = torch.cat([torch.tensor([EOS]), tokens[:-1]])[None]
            probabilities = torch.stack([logits(model, forced)[0].softmax(-1) for model in models]).mean(0)
            expected = probabilities.gather(1, tokens[:, None]).log().sum()
            torch.testing.assert_close(hypothesis["score"], expected, rtol=1e-4, atol=1e-4)


# Precision and learning


def test_trees_of_the_same_symbols_are_learned():
    """Five sources of the same symbols in the same order: only their branches tell them apart."""
    pairs = Pairs(True, True, ENCODINGS[1], sizes=(5, 5, 5, 5, 5))
    inputs = pairs.net_input()
    inputs["src_tokens"] = torch.arange(4, 9).expand(5, -1)
    branches = torch.tensor([[-1, row % 2, row // 2 % 2, row // 4, 0] for row in range(5)])
    inputs["source_symbol_tree"] = {"parents": torch.arange(-1, 4).expand(5, -1), "branches": branches}
    model = pairs.model("--dropout", "0", "--query-position").train()
    target = pairs.target.tokens(spare=1)
    assert last_loss(model, lambda: cross_entropy(model, inputs, target), updates=60, rate=2e-3) < 0.05
