"""Treeformer (Patel & Flanigan 2023): a transformer whose decoder attends to tokens and phrases."""

from dataclasses import dataclass
from typing import Any, Optional

import torch
from fairseq.models import register_model
from torch import Tensor

from tree_fairseq.nn.distance_bias import DistanceBiasConfig, DistanceBiasedEncoder
from tree_fairseq.nn.encoders import EncoderType, register_encoder
from tree_fairseq.nn.extended_transformer import ExtendedTransformer, register_architectures
from tree_fairseq.nn.modalities import SEQUENCE
from tree_fairseq.nn.phrase_bias import PhraseBias, PhraseBiasConfig
from tree_fairseq.nn.shared_memory import MemoryType, SharedMemoryAttention, with_rows_moved
from tree_fairseq.nn.stock_weights import built_aside
from tree_fairseq.treeformer.chart import Chart, ChartConfig
from tree_fairseq.treeformer.levels import ChartCells


# fairseq reads the fields' types as they are.
@dataclass
class TreeformerConfig(ChartConfig, PhraseBiasConfig, DistanceBiasConfig):
    """Flags that Treeformer has beside those of fairseq's transformer."""


class TreeformerEncoder(DistanceBiasedEncoder):
    """fairseq's transformer encoder with a chart of phrases on top."""

    def __init__(self, cfg, dictionary, embed_tokens, return_fc: bool = False):
        super().__init__(cfg, dictionary, embed_tokens, return_fc)
        self.chart = built_aside(lambda: Chart(embed_tokens.embedding_dim, cfg), cfg)

    def forward(self, src_tokens: Tensor, *args: Any, **kwargs: Any) -> dict[str, list]:
        """fairseq's forward pass, with more entries in its result.

        These are ``cell_states``, tokens and phrases ``[S, B, D]``, their positions ``cells``, and ``order``, the
        sentence of each decoder row, empty if row i reads sentence i.
        """
        encoder_out = super().forward(src_tokens, *args, **kwargs)
        cells = self.chart.cells(encoder_out["encoder_padding_mask"][0])
        cell_states = self.chart(encoder_out["encoder_out"][0], cells)
        return {**encoder_out, "cell_states": [cell_states], "cells": [cells], "order": []}

    @torch.no_grad()
    def split_weights(self, src_tokens: Tensor) -> list[Tensor]:
        """Returns :meth:`Chart.splits` for phrases of any length L = 2 to N, ``[N - L + 1, B, L - 1]`` in float32.

        The recurrence continues above the chart's height.
        """
        encoder_out = super().forward(src_tokens)
        cells = ChartCells.build(encoder_out["encoder_padding_mask"][0], src_tokens.size(1))
        return self.chart.splits(encoder_out["encoder_out"][0], cells)

    reorder_encoder_out = staticmethod(with_rows_moved)


class ChartCrossAttention(SharedMemoryAttention):
    """Decoder cross-attention to tokens and phrases."""

    def __init__(self, embed_dim: int, num_heads: int, config: PhraseBiasConfig, height: int, **kwargs):
        super().__init__(embed_dim, num_heads, **kwargs)
        if not config.no_phrase_bias:
            self.phrase_bias = PhraseBias(num_heads, phrases_per_token=height - 1)

    def is_phrase(self, structure: ChartCells) -> Tensor:
        """The cells of more than one token."""
        return (structure.length > 1).expand_as(structure.unused)

    def read(self, states: Tensor, structure: ChartCells) -> tuple[Tensor, Tensor, Tensor]:
        """Keys and values of cells ``[S, B, D]``; see :meth:`SharedMemoryAttention.read`."""
        return super().read(states, structure.unused)


def _weights_of_tokens(attention: Optional[Tensor], encoder_out: dict[str, list]) -> dict[str, list]:
    """Returns attention to tokens as ``attn``, and attention to cells, ``[R, T, S]``, as ``cell_attn``."""
    spread = None if attention is None else encoder_out["cells"][0].spread(attention)
    return {"attn": [spread], "cell_attn": [attention]}


ENCODER = register_encoder(
    EncoderType(
        "treeformer",
        reads=(SEQUENCE,),
        build=TreeformerEncoder,
        memory=MemoryType(
            attention=lambda cfg, **kwargs: ChartCrossAttention(config=cfg, height=cfg.treeformer_height, **kwargs),
            parts=lambda encoder_out: (encoder_out["cell_states"][0], encoder_out["cells"][0]),
            describe=_weights_of_tokens,
        ),
        config=TreeformerConfig,
        help="a transformer with the chart of Treeformer",
    )
)


@register_model("treeformer")
class TreeformerModel(ExtendedTransformer):
    """fairseq's transformer with a chart between encoder and decoder; it reads plain sentences."""

    flags = TreeformerConfig
    default_encoder = ENCODER.name


_IWSLT = (6, 512, 1024, 4)
"""The paper's model for IWSLT'14, either pair, and for Gigaword; also that in the script of CoGnition's authors."""

register_architectures(
    "treeformer",
    TreeformerModel.set_defaults,
    {
        "": None,
        "_iwslt_de_en": _IWSLT,
        "_gigaword": _IWSLT,
        "_cognition": _IWSLT,
        "_cogs": (2, 512, 512, 4),  # the size of Csordás et al. (2021)
        "_tiny": (2, 64, 128, 4),  # for first trials
    },
)
