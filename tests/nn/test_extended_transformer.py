"""Options of models from the command line and from hydra."""

from __future__ import annotations

from argparse import Namespace

import pytest
from omegaconf import OmegaConf

from tree_fairseq.nn.extended_transformer import transformer_config
from tree_fairseq.tree_transformer.model import TreeModelConfig


@pytest.mark.parametrize("made", [lambda options: Namespace(**options), OmegaConf.create])
def test_options_are_the_same_from_hydra_and_from_the_command_line(made):
    options = {"encoder_embed_dim": 24, "decoder_layers": 5, "no_node_cross_attention": True, "dropout": 0.25}
    config = transformer_config(made(options), TreeModelConfig)
    assert (config.encoder.embed_dim, config.decoder.layers, config.dropout) == (24, 5, 0.25)
    assert config.no_node_cross_attention and not config.no_subtree_mask
