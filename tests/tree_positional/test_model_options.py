"""Architectures, names of weights and flags of the transformer with tree positions."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest
import torch

from tests.nn.tiny import arguments, sizes_of, stock_flags, takes_stock_weights
from tests.tree_positional.symbol_batches import ENCODINGS
from tests.tree_positional.symbol_pairs import Pairs, task_side
from tree_fairseq.errors import MissingTreesError

PAIRS = Pairs(True, True)

SIZES = {  # layers, width, feed-forward, heads, positions: sections 4.1 and 4.2 of the paper
    "tree_positional_transformer": (6, 512, 2048, 8, 2048),
    "tree_positional_transformer_semantic_parsing": (4, 256, 1024, 8, 2048),
    "tree_positional_transformer_program_translation": (4, 256, 512, 8, 2048),
    "tree_positional_transformer_tiny": (2, 64, 128, 4, 512),
    "transformer_semantic_parsing": (4, 256, 1024, 8, None),
    "transformer_program_translation": (4, 256, 1024, 8, None),
}


def logits(model, pairs=PAIRS) -> torch.Tensor:
    with torch.no_grad():
        return model(**pairs.net_input())[0]


def is_new(name: str) -> bool:
    """A weight that fairseq's transformer does not have."""
    return "positions" in name


@pytest.mark.parametrize("arch", SIZES)
def test_architectures_have_the_sizes_of_the_paper(arch):
    args = arguments(arch)
    assert sizes_of(arch) == SIZES[arch][:4]
    assert args.dropout == 0.1
    assert getattr(args, "tree_position_dim", None) == SIZES[arch][4]


def test_branches_are_those_of_each_side_s_trees():
    pairs = Pairs(True, True, ENCODINGS[1])
    model = pairs.model("--encoder-embed-dim", "32")
    assert model.encoder.embed_positions.branches == pairs.source.symbols.degree > 2
    assert model.encoder.embed_positions.width == 32 and model.decoder.embed_positions.width == 64
    assert torch.isfinite(logits(model, pairs)).all()


def test_a_task_without_trees_is_refused():
    task = SimpleNamespace(source_dictionary=PAIRS.source.dictionary, target_dictionary=PAIRS.target.dictionary)
    pairs = Pairs(True, True)
    pairs.task = task
    with pytest.raises(MissingTreesError, match="--task structural_translation"):
        pairs.model()


# Names of weights


@pytest.mark.parametrize("flags", [(), ("--encoder-learned-pos", "--decoder-learned-pos")])
def test_a_stock_transformer_s_weights_load_and_the_new_ones_are_named(flags, caplog):
    stock = PAIRS.model(*stock_flags(), *flags, arch="transformer", seed=1)
    model = PAIRS.model("--query-position", seed=2)
    takes_stock_weights(model, stock, is_new, caplog)


def test_query_positions_are_added_to_a_trained_model(caplog):
    trained, model = PAIRS.model(seed=1), PAIRS.model("--query-position", seed=2)
    with caplog.at_level(logging.INFO, logger="tree_fairseq"):
        model.load_state_dict(trained.state_dict())
    assert "decoder.embed_next_positions.raw_decays" in caplog.text and "decoder.embed_positions" not in caplog.text


# Shared embeddings


def joined() -> Pairs:
    pairs = Pairs(True, True)
    pairs.task.source_dictionary = pairs.source.dictionary = pairs.target.dictionary
    pairs.task.source_side, pairs.source.symbols = task_side(pairs.target.symbols), pairs.target.symbols
    pairs.source.sequences = pairs.target.sequences[::-1]
    return pairs


def test_shared_embeddings():
    pairs = joined()
    model = pairs.model("--share-all-embeddings", "--query-position")
    assert model.encoder.embed_tokens is model.decoder.embed_tokens
    assert model.decoder.output_projection.weight is model.encoder.embed_tokens.weight
    assert model.encoder.embed_positions is not model.decoder.embed_positions
    assert torch.isfinite(logits(model, pairs)).all()
    half_shared = PAIRS.model("--share-decoder-input-output-embed")
    assert half_shared.decoder.output_projection.weight is half_shared.decoder.embed_tokens.weight
    assert torch.isfinite(logits(half_shared)).all()
