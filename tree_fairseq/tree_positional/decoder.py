"""fairseq's transformer decoder with tree positions for the target (Shiv & Quirk 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

import torch
from torch import Tensor

from tree_fairseq.nn.shared_memory import MemoryDecoder
from tree_fairseq.tree_positional.open_nodes import IncrementalPaths, padded_paths
from tree_fairseq.tree_positional.positions import TreePositions, branch_paths

_STATE = "tree_positions"


@dataclass
class IncrementalPositions:
    """The state of incremental decoding of R hypotheses.

    Attributes:
        paths: branch paths of the columns
        table: ``[k * n + 1, D]``, projected steps for the positions of symbols
        next_table: the same for the positions of open nodes, with ``--query-position``
    """

    paths: IncrementalPaths
    table: Tensor
    next_table: Optional[Tensor]


class TreePositionalDecoder(MemoryDecoder):
    """fairseq's transformer decoder, with tree positions if the target is symbol trees.

    A column gets the position of its symbol; START gets the root's. With ``--query-position`` the decoder adds the
    position of the next open node, which the arities of the symbols so far determine.

    Args:
        cfg (TreePositionalTransformerConfig): sizes, options of the positions and ``target_symbols``
        dictionary: of the target
        embed_tokens: its table
    """

    def __init__(self, cfg, dictionary, embed_tokens, no_encoder_attn: bool = False, **kwargs):
        super().__init__(cfg, dictionary, embed_tokens, no_encoder_attn, **kwargs)
        self.symbols = cfg.target_symbols
        self.embed_next_positions = None
        if self.symbols is not None and self.embed_positions is not None:
            self.embed_positions = TreePositions(self.symbols.degree, self.embed_dim, cfg)
            if cfg.query_position:
                # Always projected: the model must tell the two summed positions apart.
                self.embed_next_positions = TreePositions(self.symbols.degree, self.embed_dim, cfg, always_project=True)

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: Optional[dict[str, list]],
        incremental_state: Optional[dict] = None,
        **kwargs,
    ):
        """Computes the decoder's features.

        Args:
            prev_output_tokens: ``[R, T]``
            encoder_out: of :class:`TreePositionalEncoder`; ``previous_symbol_tree`` in it holds the
                :mod:`tree_fairseq.nn.pair_dataset` of ``prev_output_tokens``; derived from the tokens if
                missing
            incremental_state: of an incremental decoding

        Returns:
            features ``[R, T, D]``, in incremental decoding ``[R, 1, D]`` for the last column, and fairseq's dict
        """
        arguments = (prev_output_tokens, encoder_out, incremental_state)
        if not isinstance(self.embed_positions, TreePositions):
            return super().extract_features(*arguments, **kwargs)
        if incremental_state is not None:
            positions = self._incremental_positions(prev_output_tokens, incremental_state)
        else:
            positions = self._positions(prev_output_tokens, (encoder_out or {}).get("previous_symbol_tree"))
        with self.embed_positions.given(positions):
            return super().extract_features(*arguments, **kwargs)

    def _positions(self, tokens: Tensor, trees: Optional[list[dict[str, Tensor]]]) -> Tensor:
        """Returns the positions of all columns, ``[R, T, D]``."""
        if trees:
            paths = branch_paths(trees[0]["parents"], trees[0]["branches"], self.embed_positions.levels)
            following = torch.cat([paths[:, 1:], torch.full_like(paths[:, :1], -1)], dim=1)
        else:
            incremental = IncrementalPaths(len(tokens), self.symbols, self.embed_positions.levels, tokens.device)
            nexts = []
            for column in tokens.t():
                incremental.append(column)
                nexts.append(incremental.next)
            paths = incremental.columns
            following = torch.stack([padded_paths(path, nexts[-1].size(-1)) for path in nexts], dim=1)
        positions = self.embed_positions.encode(paths)
        if self.embed_next_positions is not None:
            positions = positions + self.embed_next_positions.encode(following)
        return positions

    def _incremental_positions(self, tokens: Tensor, incremental_state: dict) -> Tensor:
        """Returns the position of the last column, ``[R, 1, D]``."""
        state = self.get_incremental_state(incremental_state, _STATE)
        if state is None:
            levels = self.embed_positions.levels
            state = IncrementalPositions(
                IncrementalPaths(len(tokens), self.symbols, levels, tokens.device),
                self.embed_positions.table(levels),
                None if self.embed_next_positions is None else self.embed_next_positions.table(levels),
            )
            self.set_incremental_state(incremental_state, _STATE, state)
        for column in range(state.paths.columns.size(1), tokens.size(1)):
            state.paths.append(tokens[:, column])
        positions = self.embed_positions.encode(state.paths.columns[:, -1:], state.table)
        if state.next_table is not None:
            positions = positions + self.embed_next_positions.encode(state.paths.next.unsqueeze(1), state.next_table)
        return positions

    def reorder_incremental_state(self, incremental_state: dict, new_order: Tensor) -> None:
        """Reorders the state as beam search reorders its hypotheses."""
        super().reorder_incremental_state(incremental_state, new_order)
        state = self.get_incremental_state(incremental_state, _STATE)
        if state is not None:
            state.paths.reorder(new_order)
