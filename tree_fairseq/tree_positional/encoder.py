"""Encoder with tree positions: fairseq's own, told where the symbols of its source stand."""

from __future__ import annotations

from typing import Optional

from fairseq.models.transformer import TransformerEncoderBase
from torch import Tensor

from tree_fairseq.errors import MissingTreesError
from tree_fairseq.nn.encoders import EncoderType, register_encoder
from tree_fairseq.nn.sides import SEQUENCE, SYMBOLS, Side
from tree_fairseq.tree_positional.positions import TreePositions, TreePositionsConfig, branch_paths


class TreePositionalEncoder(TransformerEncoderBase):
    """fairseq's transformer encoder, with tree positions where the source is symbol trees.

    Args:
        cfg (TreePositionalTransformerConfig): sizes, options of the positions and ``source_symbols``
        dictionary: of the source
        embed_tokens: its table
    """

    def __init__(self, cfg, dictionary, embed_tokens, return_fc: bool = False):
        super().__init__(cfg, dictionary, embed_tokens, return_fc)
        if cfg.source_symbols is not None and self.embed_positions is not None:
            self.embed_positions = TreePositions(cfg.source_symbols.degree, embed_tokens.embedding_dim, cfg)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Optional[Tensor] = None,
        return_all_hiddens: bool = False,
        token_embeddings: Optional[Tensor] = None,
        source_symbol_tree: Optional[dict[str, Tensor]] = None,
    ) -> dict[str, list]:
        """Encodes a batch.

        Args:
            src_tokens: ``[B, N]``, padded on either side
            src_lengths: ``[B]``, unread
            return_all_hiddens: keep every layer's states
            token_embeddings: ``[B, N, D]``, in the place of a look-up
            source_symbol_tree: where the source is trees, their :mod:`tree_fairseq.nn.pair_dataset`

        Returns:
            fairseq's dict of lists

        Raises:
            MissingTreesError: the source is trees and the batch says nothing of their structure
        """
        arguments = (src_tokens, src_lengths, return_all_hiddens, token_embeddings)
        if not isinstance(self.embed_positions, TreePositions):
            return super().forward(*arguments)
        if source_symbol_tree is None:
            raise MissingTreesError(
                "this model reads symbol trees, but the batch has none; use --task structural_translation"
            )
        paths = branch_paths(source_symbol_tree["parents"], source_symbol_tree["branches"], self.embed_positions.levels)
        with self.embed_positions.given(self.embed_positions.encode(paths)):
            return super().forward(*arguments)


def _set_symbols(cfg, side: Side) -> None:
    """Sets arities and branches of the source's symbols; None for a sequence."""
    cfg.source_symbols = side.symbols


ENCODER = register_encoder(
    EncoderType(
        "tree_positional",
        reads=(SYMBOLS, SEQUENCE),
        build=TreePositionalEncoder,
        config=TreePositionsConfig,
        fill_in=_set_symbols,
        help="a transformer with tree positions where the source is symbol trees",
    )
)
