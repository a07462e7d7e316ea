"""Tree-to-tree LSTM (Chen, Liu & Song 2018) from symbol trees or sequences to symbol trees.

The memory of its encoder is the states of all tokens, so the encoder is in the registry, and every decoder works with
it. Its decoder works with no other encoder: it starts from the state of the source's root, and computes the state of
any other node from that of its parent.
"""

from dataclasses import dataclass
from functools import partial
from typing import Optional

import numpy as np
import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.models import FairseqEncoder, FairseqEncoderDecoderModel, register_model, register_model_architecture
from fairseq.models.lstm import LSTMEncoder
from fairseq.modules import FairseqDropout
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.data_bin.symbol_dictionary import SymbolTable
from tree_fairseq.errors import InputError, MissingTreesError
from tree_fairseq.nn import tree_lstm
from tree_fairseq.nn.encoders import EncoderType, register_encoder
from tree_fairseq.nn.modalities import NO_SYMBOL_TREES, SEQUENCE, SOURCE_LENGTHS, SYMBOLS, source_side, target_side
from tree_fairseq.nn.published import set_defaults
from tree_fairseq.nn.tensors import first_tokens, padded_on_the_right
from tree_fairseq.support.options import option
from tree_fairseq.tree_positional.hypotheses import OpenNodes

INITIAL_RANGE = 0.1  # initial weights are uniform between minus this and this, as those of Chen et al.


class _MemoryEncoder(FairseqEncoder):
    """Base of both encoders: makes fairseq's dict, to which ``root_state`` is added, and reorders it with the beam.

    Subclasses have ``encode``, which returns the states of all tokens, ``[N, B, D]``, and h and c of the root, each
    ``[B, D]``.
    """

    def forward(
        self,
        src_tokens: Tensor,
        *unread,
        source_symbol_tree: Optional[dict[str, Tensor]] = None,
        source_lengths: Optional[np.ndarray] = None,
        **others,
    ):
        """Encodes sources ``[B, N]``, padded on either side, with the parents and branches of symbol trees.

        Without ``source_lengths``, ``[B]`` int64 on the host, an encoder of sequences asks the device for them.
        """
        padding = src_tokens.eq(self.padding_idx)
        states, root_state = self.encode(src_tokens, padding, source_symbol_tree, source_lengths)
        return {"encoder_out": [states], "encoder_padding_mask": [padding], "root_state": root_state}

    def reorder_encoder_out(self, encoder_out: dict[str, list], new_order: Tensor) -> dict[str, list]:
        """Reorders the output of :meth:`forward` by ``new_order``, ``[R]``."""
        (states,), (padding,) = encoder_out["encoder_out"], encoder_out["encoder_padding_mask"]
        tokens = encoder_out.get("src_tokens", ())  # of a model that copies
        return {
            "src_tokens": [held.index_select(0, new_order) for held in tokens],
            # Each row stays contiguous in memory: every decoder step reads it.
            "encoder_out": [states.transpose(0, 1).index_select(0, new_order).transpose(0, 1)],
            "encoder_padding_mask": [padding.index_select(0, new_order)],
            "root_state": [state.index_select(0, new_order) for state in encoder_out["root_state"]],
        }

    def max_positions(self) -> int:
        return tree_lstm.MAX_POSITIONS


class SymbolTreeLSTMEncoder(_MemoryEncoder):
    """Tree-LSTM over symbol trees (``cfg.source_symbols``); the root's state represents the source."""

    def __init__(self, cfg, dictionary, embed_tokens: Optional[nn.Embedding], hidden_size: int):
        super().__init__(dictionary)
        self.padding_idx = dictionary.pad()
        if embed_tokens is None:
            embed_tokens = nn.Embedding(len(dictionary), cfg.encoder_embed_dim, self.padding_idx)
        self.embed_tokens = embed_tokens
        self.tree_lstm = tree_lstm.TreeLSTM(embed_tokens.embedding_dim, hidden_size, cfg.source_symbols.degree)
        self.dropout = FairseqDropout(cfg.dropout, module_name=type(self).__name__)

    def encode(self, tokens: Tensor, padding: Tensor, trees: Optional[dict[str, Tensor]], lengths: object):
        """Returns the states of all symbols, and those of the root; raises MissingTreesError without trees."""
        if trees is None:
            raise MissingTreesError(NO_SYMBOL_TREES)
        embedded = self.dropout(self.embed_tokens(tokens))
        is_symbol = trees["is_symbol"]
        states = self.tree_lstm(embedded, trees["parents"], trees["branches"], is_symbol, trees["level_sizes"])
        root = (is_symbol & (trees["parents"] < 0)).int().argmax(1)  # B
        rows = torch.arange(len(root), device=root.device)
        return self.dropout(states[0]).transpose(0, 1), [state[rows, root] for state in states]


class BidirectionalLSTMEncoder(_MemoryEncoder, LSTMEncoder):
    """fairseq's bidirectional LSTM over sequences, half of ``hidden_size`` in each direction."""

    def __init__(self, cfg, dictionary, embed_tokens: Optional[nn.Embedding], hidden_size: int):
        sizes = cfg.encoder_embed_dim, hidden_size // 2, 1
        options = {"bidirectional": True, "left_pad": False, "pretrained_embed": embed_tokens}
        LSTMEncoder.__init__(self, dictionary, *sizes, cfg.dropout, cfg.dropout, **options)

    def encode(self, tokens: Tensor, padding: Tensor, trees: object, lengths: Optional[np.ndarray]):
        """Returns the states of all tokens, and for the root's state the last h and c."""
        if lengths is None:
            lengths = (~padding).sum(1).cpu().numpy()
        # fairseq's LSTM needs padding on the right and no column that is padding in all rows. Afterwards the columns
        # move back, so that attention weights belong to their tokens.
        width = int(lengths.max())
        moved = padded_on_the_right(tokens, self.padding_idx)[:, :width]
        # Collaters sort sentences by length; torch would copy an order of its own to the device.
        is_sorted = bool((lengths[:-1] >= lengths[1:]).all())
        states, h, c, _ = LSTMEncoder.forward(self, moved, torch.from_numpy(lengths), enforce_sorted=is_sorted)
        states = functional.pad(states, (0, 0, 0, 0, 0, tokens.size(1) - width))
        columns = torch.arange(tokens.size(1), device=padding.device)
        back = ((columns - first_tokens(~padding)) % len(columns)).t()  # N x B
        return states.gather(0, back.unsqueeze(2).expand_as(states)), [h[-1], c[-1]]


def build_lstm_encoder(cfg, dictionary, embed_tokens: Optional[nn.Embedding], hidden_size: int) -> FairseqEncoder:
    """Builds the encoder of ``cfg.source_symbols``; its embeddings are new if None are given."""
    kind = BidirectionalLSTMEncoder if cfg.source_symbols is None else SymbolTreeLSTMEncoder
    return kind(cfg, dictionary, embed_tokens, hidden_size)


ENCODER = register_encoder(
    EncoderType(
        "tree_lstm",
        reads=(SYMBOLS, SEQUENCE),
        build=lambda cfg, *parts: build_lstm_encoder(cfg, *parts, hidden_size=cfg.encoder.embed_dim),
        fill_in=lambda cfg, side: setattr(cfg, "source_symbols", side.symbols),
        help="a Tree-LSTM for symbol trees, a bidirectional LSTM for sequences",
        reads_lengths=True,
    )
)


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
        self.cells = tree_lstm.BranchLinear(degree, embed_dim + 2 * hidden_dim, 4 * hidden_dim)
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
        i, f, o, u = tree_lstm.by_branch(torch.cat([embedded, h, e], dim=1), sizes, layers).chunk(4, dim=1)
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


class TreeToTreeLSTMDecoder(tree_lstm.RecurrentDecoder):
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
        levels = tree_lstm.TreeLevels.of((parents - 1).clamp(min=-1), branches, mask, self.symbols.degree, sizes[0])
        if not levels.sizes:
            features = source[0].new_zeros(*tokens.shape, source[0].size(2))
            return tree_lstm.with_zero_gradients(features, [*self.lstm.parameters(), self.embed_tokens.weight]), None
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
            found = tree_lstm.with_zero_gradients(found, [*self.lstm.cells.parameters(), self.embed_tokens.weight])
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


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreeToTreeLSTMConfig(FairseqDataclass):
    """Options of the tree-to-tree LSTM."""

    encoder_embed_dim: int = option(512, "width of the source's embeddings")
    decoder_embed_dim: int = option(512, "width of the target's embeddings")
    hidden_size: int = option(
        512, "width of the states of encoder and decoder; a sequence encoder has half of it per direction"
    )
    dropout: float = option(0.1, "dropout of embeddings, of encoder states and of attention outputs")
    share_decoder_input_output_embed: bool = option(
        False, "share the target's embeddings with the output layer; both widths must then be equal"
    )


@register_model("tree_to_tree_lstm", dataclass=TreeToTreeLSTMConfig)
class TreeToTreeLSTMModel(FairseqEncoderDecoderModel):
    """A Tree-LSTM reads the source from its leaves up; an LSTM for each branch writes the target from its root down."""

    tree_inputs = ("source_symbol_tree", "previous_symbol_tree", SOURCE_LENGTHS)

    @classmethod
    def build_model(cls, args, task):
        """Builds the model for a task whose target is symbol trees."""
        source, target = source_side(task), target_side(task)
        if SYMBOLS not in (source.modality, target.modality):
            raise MissingTreesError("--arch tree_to_tree_lstm makes symbol trees; use --task structural_translation")
        if target.symbols is None:
            raise InputError(
                "--arch tree_to_tree_lstm generates symbol trees, but this target is a sequence",
                hint="Preprocess with --target-modality tree, or use --arch lstm.",
            )
        cfg = TreeToTreeLSTMConfig.from_namespace(args)
        cfg.source_symbols = source.symbols
        encoder = build_lstm_encoder(cfg, task.source_dictionary, None, cfg.hidden_size)
        model = cls(encoder, TreeToTreeLSTMDecoder(cfg, task.target_dictionary, target.symbols))
        for parameter in model.parameters():
            nn.init.uniform_(parameter, -INITIAL_RANGE, INITIAL_RANGE)
        for side in (model.encoder, model.decoder):
            nn.init.zeros_(side.embed_tokens.weight[side.embed_tokens.padding_idx])
        return model


# The paper's translator of programs, and a model for first trials.
for _name, _width, _dropout in (("program_translation", 256, 0.5), ("tiny", 64, 0.1)):
    _widths = dict.fromkeys(("encoder_embed_dim", "decoder_embed_dim", "hidden_size"), _width)
    register_model_architecture("tree_to_tree_lstm", f"tree_to_tree_lstm_{_name}")(
        partial(set_defaults, config=TreeToTreeLSTMConfig, dropout=_dropout, **_widths)
    )
