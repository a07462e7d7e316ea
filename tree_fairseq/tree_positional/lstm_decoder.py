"""Decoder of the tree-to-tree LSTM (Chen, Liu & Song 2018): the state of a node is computed from its parent's state."""

from __future__ import annotations

from typing import Optional

import numpy as np
import torch
from fairseq.modules import FairseqDropout
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.data_bin.symbol_dictionary import SymbolTable
from tree_fairseq.nn.tree_lstm import (
    MAX_POSITIONS,
    BranchLinear,
    RecurrentDecoder,
    TreeLevels,
    by_branch,
    with_zero_gradients,
)
from tree_fairseq.tree_positional.hypotheses import OpenNodes

_LARGEST_SCORE = torch.finfo(torch.half).max


class TopDownLSTM(nn.Module):
    """An LSTM with separate weights for each branch, and attention to the nodes of a source.

    A node is predicted from e (Chen et al. 2018, section 3.2), with source states s_j::

        a_j ∝ exp(s_j · W_0 h)      e = tanh(W_1 Σ_j a_j s_j + W_2 h)

    The state of its child on branch k is ``LSTM_k((h, c), [embedding of the node's symbol; e])``; passing e on
    to the children is the paper's parent attention feeding.

    Embeddings have width E, the states and the source have width D (``hidden_dim``), and ``degree`` is the number n of
    branches. Dropout is applied to e.
    """

    def __init__(self, embed_dim: int, hidden_dim: int, degree: int, dropout: float = 0.0):
        super().__init__()
        self.cells = BranchLinear(degree, embed_dim + 2 * hidden_dim, 4 * hidden_dim)
        self.query = nn.Linear(hidden_dim, hidden_dim, bias=False)
        self.output = nn.Linear(2 * hidden_dim, hidden_dim, bias=False)
        self.dropout = FairseqDropout(dropout, module_name=type(self).__name__)

    def descend(
        self, h: Tensor, c: Tensor, e: Tensor, embedded: Tensor, sizes: list[int], layers: list
    ) -> tuple[Tensor, Tensor]:
        """Computes h and c, each ``[M, D]``, of children that are sorted by branch, ``sizes`` on each of n branches.

        ``h``, ``c`` and ``e`` are those of each child's parent, ``[M, D]``; ``embedded`` are the parents' symbols,
        ``[M, E]``; ``layers`` are those of ``self.cells``.
        """
        i, f, o, u = by_branch(torch.cat([embedded, h, e], dim=1), sizes, layers).chunk(4, dim=1)
        c = f.sigmoid() * c + i.sigmoid() * u.tanh()
        return o.sigmoid() * c.tanh(), c

    def attend(self, h: Tensor, source: Tensor, source_padding: Tensor) -> tuple[Tensor, Tensor]:
        """Attends to source states ``[R, N, D]``, of which padding ``[R, N]`` is ignored, from states h ``[R, W, D]``.

        Returns e, ``[R, W, D]``, and the weights, ``[R, W, N]``.
        """
        scores = self.query(h) @ source.transpose(1, 2)
        # Half precision is too coarse for a softmax, and products may be beyond it; double precision stays.
        if scores.dtype in (torch.half, torch.bfloat16):
            scores = scores.float().clamp(-_LARGEST_SCORE, _LARGEST_SCORE)
        lowest = torch.finfo(scores.dtype).min  # not infinite: a row may be padding alone
        weights = scores.masked_fill(source_padding.unsqueeze(1), lowest).softmax(-1).type_as(h)
        e = self.output(torch.cat([weights @ source, h], dim=-1)).tanh()
        return self.dropout(e), weights


_STATE = "tree_states"


class TreeToTreeLSTMDecoder(RecurrentDecoder):
    """Predicts the symbols of trees from the top down (Chen et al. 2018, section 3.2).

    Column t predicts the symbol of the next open node. The root's state is the state of the source's root. Any other
    node's state is computed by the LSTM of its branch from its parent's state and symbol. In training all nodes of a
    level are computed together, so there are as many steps as levels. Columns after a complete tree have features of
    zero.
    """

    def __init__(self, cfg, dictionary, symbols: SymbolTable):
        super().__init__(dictionary)
        self.symbols = symbols
        self.embed_tokens = nn.Embedding(len(dictionary), cfg.decoder_embed_dim, dictionary.pad())
        self.lstm = TopDownLSTM(cfg.decoder_embed_dim, cfg.hidden_size, symbols.degree, cfg.dropout)
        self.output_projection = None
        if not cfg.share_decoder_input_output_embed:
            self.output_projection = nn.Linear(cfg.hidden_size, len(dictionary), bias=False)
        self.dropout = FairseqDropout(cfg.dropout, module_name=type(self).__name__)

    def extract_features(
        self, prev_output_tokens: Tensor, encoder_out: dict, incremental_state=None, previous_symbol_tree=None, **unused
    ) -> tuple[Tensor, dict[str, list]]:
        """Computes features ``[R, T, D]``, in incremental decoding ``[R, 1, D]`` for the last column.

        ``previous_symbol_tree`` holds parents and branches of ``prev_output_tokens``; if None, they are derived from
        the tokens. Outside training, the dict has the attention to the source, ``[R, T, N]``.
        """
        source = encoder_out["encoder_out"][0].transpose(0, 1), encoder_out["encoder_padding_mask"][0]
        roots = encoder_out["root_state"]
        if incremental_state is not None:
            features, attention = self._next_columns(prev_output_tokens, roots, source, incremental_state)
        else:
            nodes = self._predicted_nodes(prev_output_tokens, previous_symbol_tree)
            sizes = [(previous_symbol_tree or {}).get(name) for name in ("level_sizes", "level_widths")]
            features, attention = self._all_levels(prev_output_tokens, nodes, sizes, roots, source)
        return features, {"attn": [attention]}

    def max_positions(self) -> int:
        return MAX_POSITIONS

    def _predicted_nodes(self, tokens: Tensor, tree: Optional[dict[str, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
        """Returns parent's column, branch and existence of the node that each column predicts, each ``[R, T]``."""
        if tree is not None:
            parents, branches = (
                functional.pad(tree[part][:, 1:], (0, 1), value=-1) for part in ("parents", "branches")
            )
            return parents, branches, functional.pad(tree["is_symbol"][:, 1:], (0, 1))
        growing, found = OpenNodes(len(tokens), self.symbols, tokens.device), []
        for column in range(tokens.size(1)):
            if column:
                growing.advance(tokens[:, column])
            found.append((*growing.next()[:2], growing.count > 0))
        return tuple(torch.stack(part, dim=1) for part in zip(*found))

    def _all_levels(
        self, tokens: Tensor, nodes: tuple, sizes: list[Optional[np.ndarray]], roots: list[Tensor], source: tuple
    ) -> tuple[Tensor, Optional[Tensor]]:
        """Computes features ``[R, T, D]`` and attention of all columns, level by level."""
        parents, branches, mask = nodes
        # The column before a symbol predicts it.
        levels = TreeLevels.of((parents - 1).clamp(min=-1), branches, mask, self.symbols.degree, sizes[0])
        if not levels.sizes:
            features = source[0].new_zeros(*tokens.shape, source[0].size(2))
            return with_zero_gradients(features, [*self.lstm.parameters(), self.embed_tokens.weight]), None
        symbols = tokens.gather(1, parents.clamp(min=0))
        embedded = levels.take(self.dropout(self.embed_tokens(symbols))).split(levels.sizes)
        places, widths = levels.slots_by_row(sizes[1])
        layers = self.lstm.cells.layers()
        rows = (levels.columns // tokens.size(1)).split(levels.sizes)[0]
        h, c = (state.index_select(0, rows) for state in roots)
        features, attention, e = [], [], None
        for level, width in enumerate(widths):
            if level:
                above = (state.index_select(0, levels.above[level]) for state in (h, c, e))
                h, c = self.lstm.descend(*above, embedded[level], levels.branch_sizes[level], layers)
            grid = h.new_zeros(len(tokens) * width, h.size(1)).index_copy(0, places[level], h)
            grid = grid.unflatten(0, (-1, width))  # R x width x D
            e, weights = (part.flatten(0, 1)[places[level]] for part in self.lstm.attend(grid, *source))
            features.append(e)
            attention.append(weights)
        weights = None if self.training else levels.put(torch.cat(attention))
        found = levels.put(torch.cat(features))
        if len(widths) == 1:  # trees of one node
            found = with_zero_gradients(found, [*self.lstm.cells.parameters(), self.embed_tokens.weight])
        return found, weights

    def _next_columns(
        self, tokens: Tensor, roots: list[Tensor], source: tuple, incremental_state: dict
    ) -> tuple[Tensor, Tensor]:
        """Computes features ``[R, 1, D]`` and attention of the last column.

        The state keeps the open nodes, and h, c and e, ``[R, T, 3 D]``, of the node that each column predicts.
        """
        state = self.get_incremental_state(incremental_state, _STATE)
        if state is None:
            nodes = OpenNodes(len(tokens), self.symbols, tokens.device)
            state = {"nodes": nodes, "columns": roots[0].new_zeros(len(tokens), 0, 3 * roots[0].size(1))}
            self.set_incremental_state(incremental_state, _STATE, state)
        nodes = state["nodes"]
        for column in range(state["columns"].size(1), tokens.size(1)):
            if column:
                nodes.advance(tokens[:, column])
            h, c = self._next_state(tokens, nodes, state["columns"], roots) if column else roots
            e, weights = self.lstm.attend(h.unsqueeze(1), *source)
            e = e * (nodes.count > 0)[:, None, None]
            predicted = torch.cat([h, c, e.squeeze(1)], dim=1).unsqueeze(1)
            state["columns"] = torch.cat([state["columns"], predicted], dim=1)
        return e, weights

    def _next_state(self, tokens: Tensor, nodes: OpenNodes, predicted: Tensor, roots: list[Tensor]) -> list[Tensor]:
        """Returns h and c of the next open nodes, each ``[R, D]``, after the ``predicted`` columns."""
        parents, branches, _ = nodes.next()
        branches, order = branches.clamp(min=0).sort()
        columns = parents.clamp(min=1)[order]
        embedded = self.dropout(self.embed_tokens(tokens[order, columns]))
        above = predicted[order, columns - 1].chunk(3, dim=1)
        sizes = torch.bincount(branches, minlength=self.symbols.degree).tolist()
        states = self.lstm.descend(*above, embedded, sizes, self.lstm.cells.layers())
        back = order.argsort()
        # The root stays open if a search fills it with an id that is not a symbol.
        is_root = (parents < 0).unsqueeze(1)
        return [torch.where(is_root, root, state[back]) for root, state in zip(roots, states)]

    def reorder_incremental_state(self, incremental_state: dict, new_order: Tensor) -> None:
        """Moves the trees of hypotheses as beam search moves the hypotheses."""
        state = self.get_incremental_state(incremental_state, _STATE)
        if state is not None:
            state["nodes"].reorder(new_order)
            state["columns"] = state["columns"].index_select(0, new_order)
