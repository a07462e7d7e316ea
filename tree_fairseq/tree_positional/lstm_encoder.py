"""Encoders of the tree-to-tree LSTM: a Tree-LSTM over symbol trees, a bidirectional LSTM over sequences."""

from __future__ import annotations

from typing import Optional

import torch
from fairseq.models import FairseqEncoder
from fairseq.models.lstm import LSTMEncoder
from fairseq.modules import FairseqDropout
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.data_bin.symbol_dictionary import SymbolTable
from tree_fairseq.errors import MissingTreesError
from tree_fairseq.nn.tree_lstm import TreeLSTM

# The limit of fairseq's own recurrent networks.
MAX_POSITIONS = 100_000


class _MemoryEncoder(FairseqEncoder):
    """Base of both encoders: reorders their output with the beam."""

    def reorder_encoder_out(self, encoder_out: dict[str, list[Tensor]], new_order: Tensor) -> dict[str, list[Tensor]]:
        """Reorders the output of :meth:`forward` by ``new_order``, ``[R]``."""
        (states,), (padding,) = encoder_out["encoder_out"], encoder_out["encoder_padding_mask"]
        return {
            # Each row stays contiguous in memory: every decoder step reads it.
            "encoder_out": [states.transpose(0, 1).index_select(0, new_order).transpose(0, 1)],
            "encoder_padding_mask": [padding.index_select(0, new_order)],
            "root_state": [state.index_select(0, new_order) for state in encoder_out["root_state"]],
        }

    def max_positions(self) -> int:
        """Maximum length of a source."""
        return MAX_POSITIONS


class TreeToTreeLSTMEncoder(_MemoryEncoder):
    """Tree-LSTM over symbol trees; the root's state represents the source.

    Args:
        cfg (TreeToTreeLSTMConfig): sizes and dropout
        dictionary: of the source
        symbols: arities and branches of its ids
    """

    def __init__(self, cfg, dictionary, symbols: SymbolTable):
        super().__init__(dictionary)
        self.padding_idx = dictionary.pad()
        self.embed_tokens = nn.Embedding(len(dictionary), cfg.encoder_embed_dim, self.padding_idx)
        self.tree_lstm = TreeLSTM(cfg.encoder_embed_dim, cfg.hidden_size, symbols.degree)
        self.dropout = FairseqDropout(cfg.dropout, module_name=type(self).__name__)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Optional[Tensor] = None,
        source_symbol_tree: Optional[dict[str, Tensor]] = None,
    ) -> dict[str, list[Tensor]]:
        """Encodes a batch.

        Args:
            src_tokens: ``[B, N]``, padded on either side
            src_lengths: ``[B]``, unread
            source_symbol_tree: their :mod:`tree_fairseq.nn.pair_dataset`

        Returns:
            ``encoder_out`` ``[N, B, D]``, h of all nodes; ``encoder_padding_mask`` ``[B, N]``; ``root_state``, h and c
            of the roots, each ``[B, D]``

        Raises:
            MissingTreesError: the batch has no tree structure
        """
        if source_symbol_tree is None:
            raise MissingTreesError(
                "this model reads symbol trees, but the batch has none; use --task structural_translation"
            )
        parents, padding = source_symbol_tree["parents"], src_tokens.eq(self.padding_idx)
        embedded = self.dropout(self.embed_tokens(src_tokens))
        states = self.tree_lstm(embedded, parents, source_symbol_tree["branches"], ~padding)
        root = (~padding & (parents < 0)).int().argmax(1)  # B
        rows = torch.arange(len(root), device=root.device)
        return {
            "encoder_out": [self.dropout(states[0]).transpose(0, 1)],
            "encoder_padding_mask": [padding],
            "root_state": [state[rows, root] for state in states],
        }


class BidirectionalLSTMEncoder(_MemoryEncoder, LSTMEncoder):
    """fairseq's bidirectional LSTM over sequences, half the width in each direction.

    Args:
        cfg (TreeToTreeLSTMConfig): sizes and dropout; ``hidden_size`` is even
        dictionary: of the source
    """

    def __init__(self, cfg, dictionary):
        LSTMEncoder.__init__(
            self,
            dictionary,
            embed_dim=cfg.encoder_embed_dim,
            hidden_size=cfg.hidden_size // 2,
            dropout_in=cfg.dropout,
            dropout_out=cfg.dropout,
            bidirectional=True,
            left_pad=False,
        )

    def forward(self, src_tokens: Tensor, src_lengths: Optional[Tensor] = None) -> dict[str, list[Tensor]]:
        """Encodes a batch.

        Args:
            src_tokens: ``[B, N]``, padded on either side
            src_lengths: ``[B]``, unread

        Returns:
            ``encoder_out`` ``[N, B, D]``, ``encoder_padding_mask`` ``[B, N]`` and ``root_state``, the last h and c,
            each ``[B, D]``
        """
        padding = src_tokens.eq(self.padding_idx)
        lengths, columns = (~padding).sum(1), torch.arange(src_tokens.size(1), device=padding.device)
        # fairseq's LSTM needs padding on the right and no column that is padding in all rows. Afterwards the columns
        # move back, so that attention weights belong to their tokens.
        first, width = (~padding).int().argmax(1, keepdim=True), int(lengths.max())
        moved = src_tokens.gather(1, (columns + first) % len(columns))[:, :width]
        states, h, c, _ = LSTMEncoder.forward(self, moved, lengths, enforce_sorted=False)
        states = functional.pad(states, (0, 0, 0, 0, 0, len(columns) - width))
        back = ((columns - first) % len(columns)).t()  # N x B
        states = states.gather(0, back.unsqueeze(2).expand_as(states))
        return {"encoder_out": [states], "encoder_padding_mask": [padding], "root_state": [h[-1], c[-1]]}
