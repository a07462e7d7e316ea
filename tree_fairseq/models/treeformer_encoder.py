"""Encoder of Treeformer: fairseq's own, and a chart over what it returns."""

from __future__ import annotations

from typing import Optional

import torch
from fairseq.models.transformer import TransformerEncoderBase
from torch import Tensor

from tree_fairseq.modules.chart import Chart
from tree_fairseq.modules.chart_cells import ChartCells
from tree_fairseq.modules.shared_memory import with_rows_moved


class TreeformerEncoder(TransformerEncoderBase):
    """fairseq's transformer encoder, on top of which phrases are encoded.

    Args:
        cfg (TreeformerConfig): sizes and options of the chart
        dictionary: of the source
        embed_tokens: its table
    """

    def __init__(self, cfg, dictionary, embed_tokens, return_fc: bool = False):
        super().__init__(cfg, dictionary, embed_tokens, return_fc)
        self.chart = Chart(embed_tokens.embedding_dim, cfg)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Optional[Tensor] = None,
        return_all_hiddens: bool = False,
        token_embeddings: Optional[Tensor] = None,
    ) -> dict[str, list]:
        """Encodes a batch of sentences.

        Args:
            src_tokens: ``[B, N]``, padded on either side
            src_lengths: ``[B]``, unread
            return_all_hiddens: keep every layer's states
            token_embeddings: ``[B, N, D]``, in the place of a look-up

        Returns:
            fairseq's dict of lists, whose ``encoder_out`` are the tokens, ``[N, B, D]``. ``cell_states`` holds tokens and
            phrases, ``[C, D]``, ``cells`` says which they are, and ``order`` the sentence of each decoder row; it is
            empty where rows are sentences
        """
        encoder_out = super().forward(src_tokens, src_lengths, return_all_hiddens, token_embeddings)
        outside = src_tokens.eq(self.dictionary.eos()) if self.cfg.treeformer_without_eos else None
        cells = self.chart.cells(encoder_out["encoder_padding_mask"][0], outside)
        cell_states = self.chart(encoder_out["encoder_out"][0], cells)
        return {**encoder_out, "cell_states": [cell_states], "cells": [cells], "order": []}

    @torch.no_grad()
    def split_weights(self, src_tokens: Tensor, src_lengths: Optional[Tensor] = None) -> list[Tensor]:
        """How much each way to split a phrase counts, for phrases of any length: the recurrence goes on beyond the chart.

        Args:
            src_tokens: ``[B, N]``, padded on either side
            src_lengths: ``[B]``, unread

        Returns:
            for lengths L = 2 to N ``[N - L + 1, B, L - 1]`` float32, the mean over pooling heads; see :meth:`Chart.splits`
        """
        encoder_out = super().forward(src_tokens, src_lengths)
        cells = ChartCells.build(encoder_out["encoder_padding_mask"][0], src_tokens.size(1))
        return [weights.mean(2) for weights in self.chart.splits(encoder_out["encoder_out"][0], cells)]

    def reorder_encoder_out(self, encoder_out: dict[str, list], new_order: Tensor) -> dict[str, list]:
        """Moves the index of rows; the sentences themselves stay where they are, one copy each."""
        return with_rows_moved(encoder_out, new_order)
