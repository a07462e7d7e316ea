"""fairseq's transformer decoder with tree positions (Shiv & Quirk 2019), and symbols as label and arity."""

from __future__ import annotations

from typing import Any, Optional

import torch
from fairseq.data import Dictionary
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.data_bin.symbol_dictionary import SymbolTable
from tree_fairseq.nn.shared_memory import MemoryDecoder
from tree_fairseq.tree_positional.hypotheses import OpenNodes
from tree_fairseq.tree_positional.positions import TreePositions, paths_of_batch
from tree_fairseq.trees.symbols import ARITY_MARK, NULL, UNKNOWN_LABEL, SymbolEncoding

_STATE = "tree_positions"


class TreePositionalDecoder(MemoryDecoder):
    """fairseq's transformer decoder, with tree positions if the target is symbol trees (``cfg.target_symbols``).

    A column gets the position of its symbol; START gets the root's. With ``--query-position`` the decoder adds the
    position of the next open node, which the arities of the symbols so far determine; with ``--sequence-positions`` the
    column's own, as fairseq's decoder does.
    """

    def __init__(self, cfg, dictionary, embed_tokens, no_encoder_attn: bool = False, **kwargs):
        super().__init__(cfg, dictionary, embed_tokens, no_encoder_attn, **kwargs)
        self.symbols = cfg.target_symbols
        self.embed_next_positions = None
        if self.symbols is not None and self.embed_positions is not None:
            self.embed_positions = TreePositions(self.symbols.degree, self.embed_dim, cfg, stock=self.embed_positions)
            if cfg.query_position:
                # Always projected: the model must tell the two summed positions apart.
                self.embed_next_positions = TreePositions(self.symbols.degree, self.embed_dim, cfg, always_project=True)

    def build_output_projection(self, cfg, dictionary, embed_tokens) -> None:
        """fairseq's output layer, or the one with the factors of the embeddings."""
        if isinstance(embed_tokens, FactoredEmbedding):
            self.output_projection = FactoredOutput(embed_tokens)
        else:
            super().build_output_projection(cfg, dictionary, embed_tokens)

    def extract_features(
        self, prev_output_tokens: Tensor, encoder_out: Optional[dict[str, list]], incremental_state=None, **kwargs
    ) -> tuple[Tensor, dict[str, Any]]:
        """Computes features ``[R, T, D]``, in incremental decoding ``[R, 1, D]`` for the last column.

        ``previous_symbol_tree`` in ``encoder_out`` holds parents and branches of ``prev_output_tokens``; if missing,
        they are derived from the tokens.
        """
        if isinstance(self.embed_positions, TreePositions):
            if incremental_state is not None:
                positions = self._last_position(prev_output_tokens, incremental_state)
            else:
                positions = self._all_positions(prev_output_tokens, (encoder_out or {}).get("previous_symbol_tree"))
            self.embed_positions.given = positions
        return super().extract_features(prev_output_tokens, encoder_out, incremental_state, **kwargs)

    def _all_positions(self, tokens: Tensor, trees: Optional[list[dict[str, Tensor]]]) -> Tensor:
        """Returns the positions of all columns, ``[R, T, D]``."""
        if trees:
            paths = paths_of_batch(trees[0], self.embed_positions.levels)
            following = torch.cat([paths[:, 1:], torch.full_like(paths[:, :1], -1)], dim=1)
        else:
            incremental, nexts = self._no_paths(tokens), []
            for column in tokens.t():
                incremental.append(column)
                nexts.append(incremental.next)
            paths = incremental.columns
            following = torch.stack([padded_paths(path, nexts[-1].size(-1)) for path in nexts], dim=1)
        return self._encode(paths, following)

    def _last_position(self, tokens: Tensor, incremental_state: dict) -> Tensor:
        """Returns the position of the last column, ``[R, 1, D]``; paths and tables are kept between steps."""
        state = self.get_incremental_state(incremental_state, _STATE)
        if state is None:
            modules = (self.embed_positions, self.embed_next_positions)
            tables = [None if module is None else module.table(module.levels) for module in modules]
            state = self._no_paths(tokens), tables
            self.set_incremental_state(incremental_state, _STATE, state)
        paths, tables = state
        for column in range(paths.columns.size(1), tokens.size(1)):
            paths.append(tokens[:, column])
        return self._encode(paths.columns[:, -1:], paths.next.unsqueeze(1), *tables)

    def _no_paths(self, tokens: Tensor) -> IncrementalPaths:
        return IncrementalPaths(len(tokens), self.symbols, self.embed_positions.levels, tokens.device)

    def _encode(
        self, paths: Tensor, following: Tensor, table: Optional[Tensor] = None, next_table: Optional[Tensor] = None
    ) -> Tensor:
        """Returns the positions of columns, and of the open nodes that follow them, ``[R, T, D]``."""
        positions = self.embed_positions.encode(paths, table)
        if self.embed_next_positions is not None:
            positions = positions + self.embed_next_positions.encode(following, next_table)
        return positions

    def reorder_incremental_state(self, incremental_state: dict, new_order: Tensor) -> None:
        """Reorders the paths too."""
        super().reorder_incremental_state(incremental_state, new_order)
        state = self.get_incremental_state(incremental_state, _STATE)
        if state is not None:
            state[0].reorder(new_order)


class IncrementalPaths:
    """The branch paths of the columns of ``prev_output_tokens`` in R trees, extended column by column.

    Attributes:
        columns: ``[R, T, L]`` int16, the last ``levels`` steps of the columns so far, as
            :func:`tree_fairseq.tree_positional.positions.branch_paths` returns them; L is at least the longest path's
            length
        next: ``[R, L']`` int16, the paths of the next open nodes; -1 if the tree is complete
    """

    def __init__(self, rows: int, symbols: SymbolTable, levels: int, device: torch.device):
        self._levels = levels
        self._arity = symbols.arity.to(device)
        self._open = OpenNodes(rows, symbols, device)
        self.columns = torch.full((rows, 0, 1), -1, dtype=torch.int16, device=device)
        self.next = self.columns.new_full((rows, 1), -1)

    def append(self, tokens: Tensor) -> None:
        """Appends a column of ids, ``[R]``; the first column is START, whatever its ids are."""
        path = self.next  # START's path is empty too
        if self.columns.size(1):
            path = path.masked_fill(self._arity[tokens].unsqueeze(1) < 0, -1)
            self._open.advance(tokens)
        columns = padded_paths(self.columns, path.size(-1))
        self.columns = torch.cat([columns, path.unsqueeze(1)], dim=1)

        parent, branch, _ = self._open.next()
        levels = self.columns.size(-1)
        # A root has no parent. It takes the path of START, which is empty.
        column = parent.clamp(min=0)[:, None, None].expand(-1, 1, levels)
        above = self.columns.gather(1, column).squeeze(1)  # R x L
        if levels == self._levels:
            above = above[:, :-1]
        self.next = torch.cat([branch.to(above.dtype).unsqueeze(1), above], dim=1)

    def reorder(self, order: Tensor) -> None:
        """Makes row ``order[i]`` the new row i; ``order`` is ``[R']`` int64."""
        self._open.reorder(order)
        self.columns, self.next = self.columns.index_select(0, order), self.next.index_select(0, order)


def padded_paths(paths: Tensor, levels: int) -> Tensor:
    """Pads paths ``[..., L]`` to ``levels`` steps."""
    return functional.pad(paths, (0, levels - paths.size(-1)), value=-1)


class FactoredEmbedding(nn.Module):
    """Vectors of symbols, ``[V, D]``, each the sum of one for the label and one for the arity: ``--factored-symbols``.

    A symbol such as ``sleep^2`` is a unit of a dictionary, so a model that has only seen ``sleep^1`` knows nothing of
    it. With factors, both share the vector of their label. In a joined dictionary a word of the source and a label that
    is spelled alike share their vector, too, so that names can be copied.

    What has no arity (words, EOS, padding) has a vector of its own. So does the unknown symbol of each arity.
    """

    def __init__(self, dictionary: Dictionary, encoding: SymbolEncoding, width: int):
        super().__init__()
        labels, arities = factors(dictionary, encoding)
        numbers: dict[str, int] = {}
        label_of = [numbers.setdefault(label, len(numbers)) for label in labels]
        self.num_embeddings, self.embedding_dim, self.padding_idx = len(dictionary), width, dictionary.pad()
        self.embed_labels = nn.Embedding(len(numbers), width, padding_idx=label_of[self.padding_idx])
        self.embed_arities = nn.Embedding(max(arities) + 1, width)
        for table in (self.embed_labels, self.embed_arities):
            nn.init.normal_(table.weight, mean=0, std=width**-0.5)
        nn.init.zeros_(self.embed_labels.weight[self.embed_labels.padding_idx])
        self.register_buffer("label_of", torch.tensor(label_of), persistent=False)
        self.register_buffer("arity_of", torch.tensor(arities) + 1, persistent=False)

    @property
    def weight(self) -> Tensor:
        """The vectors of all symbols, ``[V, D]``."""
        return self.embed_labels.weight[self.label_of] + self._arities()[self.arity_of]

    def forward(self, ids: Tensor) -> Tensor:
        """Returns the vectors of ids ``[...]``, as ``[..., D]``."""
        return self.embed_labels(self.label_of[ids]) + self._arities()[self.arity_of[ids]]

    def _arities(self) -> Tensor:
        """The vectors of arities after one of zeros, which is for what has no arity."""
        return functional.pad(self.embed_arities.weight, (0, 0, 1, 0))


class FactoredOutput(nn.Module):
    """The output layer that shares a :class:`FactoredEmbedding`: features ``[..., D]`` to logits ``[..., V]``.

    The probability of a symbol is proportional to exp(h (u_l + v_a)) for its label l and its arity a.
    """

    def __init__(self, embedding: FactoredEmbedding):
        super().__init__()
        self.embedding = embedding

    def forward(self, features: Tensor) -> Tensor:
        """Computes the logits."""
        return functional.linear(features, self.embedding.weight)


def has_arities(dictionary: Dictionary, encoding: SymbolEncoding) -> bool:
    """Whether any symbol of the dictionary has an arity."""
    return max(factors(dictionary, encoding)[1]) >= 0


def factors(dictionary: Dictionary, encoding: SymbolEncoding) -> tuple[list[str], list[int]]:
    """Returns the label and the arity of each symbol, and where it has none, itself and -1; so for unknown symbols."""
    labels, arities = [], []
    special = {NULL, *dictionary.symbols[: dictionary.nspecial]}
    for symbol in dictionary.symbols:
        label, arity = encoding.parts(symbol)
        is_known = arity >= 0 and label != UNKNOWN_LABEL and symbol != NULL
        # What is special is never a word, so a label that is spelled alike is kept apart from it.
        labels.append((label + ARITY_MARK if label in special else label) if is_known else symbol)
        arities.append(arity if is_known else -1)
    return labels, arities
