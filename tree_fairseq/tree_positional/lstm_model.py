"""Tree-to-tree LSTM (Chen, Liu & Song 2018) from symbol trees or sequences to symbol trees.

The memory of its encoder is the states of all tokens, so the encoder is in the registry, and every decoder works with
it. Its decoder works with no other encoder, because it starts from the state of the source's root.
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

from tree_fairseq.errors import InputError, MissingTreesError
from tree_fairseq.nn.encoders import EncoderType, register_encoder
from tree_fairseq.nn.extended_transformer import set_defaults
from tree_fairseq.nn.modalities import SEQUENCE, SOURCE_LENGTHS, SYMBOLS, source_side, target_side
from tree_fairseq.nn.tree_lstm import MAX_POSITIONS, TreeLSTM
from tree_fairseq.support.options import option
from tree_fairseq.tree_positional.lstm_decoder import TreeToTreeLSTMDecoder

INITIAL_RANGE = 0.1
"""Initial weights are uniform between minus this and this, as those of Chen et al."""


class _MemoryEncoder(FairseqEncoder):
    """Base of both encoders: makes fairseq's dict, to which ``root_state`` is added, and reorders it with the beam.

    Subclasses have ``encode``, which returns the states of all tokens, ``[N, B, D]``, and h and c of the root.
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

        Beside fairseq's entries, ``root_state`` has h and c of the root, each ``[B, D]``.
        """
        padding = src_tokens.eq(self.padding_idx)
        states, root_state = self.encode(src_tokens, padding, source_symbol_tree, source_lengths)
        return {"encoder_out": [states], "encoder_padding_mask": [padding], "root_state": root_state}

    def reorder_encoder_out(self, encoder_out: dict[str, list], new_order: Tensor) -> dict[str, list]:
        """Reorders the output of :meth:`forward` by ``new_order``, ``[R]``."""
        (states,), (padding,) = encoder_out["encoder_out"], encoder_out["encoder_padding_mask"]
        return {
            # Each row stays contiguous in memory: every decoder step reads it.
            "encoder_out": [states.transpose(0, 1).index_select(0, new_order).transpose(0, 1)],
            "encoder_padding_mask": [padding.index_select(0, new_order)],
            "root_state": [state.index_select(0, new_order) for state in encoder_out["root_state"]],
        }

    def max_positions(self) -> int:
        return MAX_POSITIONS


class SymbolTreeLSTMEncoder(_MemoryEncoder):
    """Tree-LSTM over symbol trees (``cfg.source_symbols``); the root's state represents the source."""

    def __init__(self, cfg, dictionary, embed_tokens: Optional[nn.Embedding], hidden_size: int):
        super().__init__(dictionary)
        self.padding_idx = dictionary.pad()
        if embed_tokens is None:
            embed_tokens = nn.Embedding(len(dictionary), cfg.encoder_embed_dim, self.padding_idx)
        self.embed_tokens = embed_tokens
        self.tree_lstm = TreeLSTM(embed_tokens.embedding_dim, hidden_size, cfg.source_symbols.degree)
        self.dropout = FairseqDropout(cfg.dropout, module_name=type(self).__name__)

    def encode(self, tokens: Tensor, padding: Tensor, trees: Optional[dict[str, Tensor]], lengths: object):
        """Returns the states of all symbols, and those of the root; raises MissingTreesError without trees."""
        if trees is None:
            raise MissingTreesError(
                "this model reads symbol trees, but the batch has none; use --task structural_translation"
            )
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
        columns = torch.arange(tokens.size(1), device=padding.device)
        # fairseq's LSTM needs padding on the right and no column that is padding in all rows. Afterwards the columns
        # move back, so that attention weights belong to their tokens.
        first, width = (~padding).int().argmax(1, keepdim=True), int(lengths.max())
        moved = tokens.gather(1, (columns + first) % len(columns))[:, :width]
        # Collaters sort sentences by length; torch would copy an order of its own to the device.
        is_sorted = bool((lengths[:-1] >= lengths[1:]).all())
        states, h, c, _ = LSTMEncoder.forward(self, moved, torch.from_numpy(lengths), enforce_sorted=is_sorted)
        states = functional.pad(states, (0, 0, 0, 0, 0, len(columns) - width))
        back = ((columns - first) % len(columns)).t()  # N x B
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
