"""A recurrent decoder of trees as sequences of labels and brackets, whose state follows the branches of the tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

import torch
from fairseq.models import FairseqIncrementalDecoder
from fairseq.modules import FairseqDropout, MultiheadAttention
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.data.sequence_dictionary import SequenceDictionary
from tree_fairseq.modules.bracket_links import bracket_links
from tree_fairseq.modules.shared_memory import row_order
from tree_fairseq.modules.tree_attention import TreeCrossAttention
from tree_fairseq.modules.tree_memory import TreeMemory

_STATES = "states"


@dataclass
class ColumnStates:
    """The states of the columns so far: of each layer a list of ``[R, D]``, one a column."""

    layers: list[list[Tensor]]


class TreeGRUDecoder(FairseqIncrementalDecoder):
    """Predicts the next label or bracket from a state that has come down from the parent and along the siblings.

    In each column a GRU reads the token before, together with the parent's state, and goes on from the state of the previous sibling:
    after an opening bracket that is the parent's, after a closing one that of the column whose bracket it closes
    (Lukovnikov & Fischer 2021, the baseline TreeGRU). The last layer's state attends to the source once.

    Args:
        cfg (TreeSequenceConfig): sizes and options
        dictionary: of labels and brackets
        embed_tokens: its table
    """

    def __init__(self, cfg, dictionary: SequenceDictionary, embed_tokens: nn.Embedding):
        super().__init__(dictionary)
        self.embed_tokens = embed_tokens
        width = cfg.decoder.embed_dim
        self.cells = nn.ModuleList(nn.GRUCell(2 * width, width) for _ in range(cfg.decoder.layers))
        attention = {
            "embed_dim": width, "num_heads": cfg.decoder.attention_heads, "dropout": cfg.attention_dropout,
            "kdim": cfg.encoder.embed_dim, "vdim": cfg.encoder.embed_dim, "encoder_decoder_attention": True,
        }  # fmt: skip
        self.reads_trees = cfg.insertion_encoder == "tree"
        if self.reads_trees:
            self.attention = TreeCrossAttention(config=cfg, attend_nodes=not cfg.no_node_cross_attention, **attention)
        else:
            self.attention = MultiheadAttention(**attention)
        self.join = nn.Linear(2 * width, width)
        self.output_projection = None
        if not cfg.share_decoder_input_output_embed:
            self.output_projection = nn.Linear(width, len(dictionary), bias=False)
        self.dropout = FairseqDropout(cfg.dropout, module_name=type(self).__name__)
        self._max_positions = cfg.max_target_positions

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, list],
        incremental_state: Optional[dict] = None,
        features_only: bool = False,
        **unused,
    ) -> tuple[Tensor, dict]:
        """Scores labels and brackets.

        Args:
            prev_output_tokens: ``[R, T]``, EOS and the tokens so far
            encoder_out: of the encoder
            incremental_state: state of a decoding under way
            features_only: leave out the last layer
            **unused: other arguments of fairseq's decoders

        Returns:
            logits ``[R, T, V]``, or those of the last column when decoding incrementally, and a dict without attention
        """
        features, extra = self.extract_features(prev_output_tokens, encoder_out, incremental_state)
        return features if features_only else self.output_layer(features), extra

    def extract_features(
        self, prev_output_tokens: Tensor, encoder_out: dict[str, list], incremental_state: Optional[dict] = None, **unused
    ) -> tuple[Tensor, dict]:
        """The same as :meth:`forward` before the last layer, ``[R, T, D]``."""
        growing = None
        if incremental_state is not None:
            growing = self.get_incremental_state(incremental_state, _STATES)
            if growing is None:
                growing = ColumnStates([[] for _ in self.cells])
                self.set_incremental_state(incremental_state, _STATES, growing)
        is_last = growing is not None
        links = bracket_links(prev_output_tokens, self.dictionary.open, last=is_last)
        x = self.dropout(self.embed_tokens(prev_output_tokens[:, -1:] if is_last else prev_output_tokens))
        for layer, cell in enumerate(self.cells):
            past = growing.layers[layer] if is_last else []
            x = self.dropout(self._run(cell, x, links, past))
        attended = self._attend(x, encoder_out, incremental_state)
        features = self.dropout(torch.tanh(self.join(torch.cat([x, attended], dim=2))))
        return features, {"attn": [None]}

    def _run(self, cell: nn.GRUCell, inputs: Tensor, links: tuple[Tensor, Tensor], past: list[Tensor]) -> Tensor:
        """The states ``[R, T, D]`` of columns with these inputs ``[R, T, D]``, which are put behind those of earlier columns."""
        both = torch.stack(links, dim=2)  # R x T x 2
        begun = len(past)
        for column in range(inputs.size(1)):
            places = both[:, column]
            if past:
                states = torch.stack(past, dim=1).gather(1, places.clamp(min=0).unsqueeze(2).expand(-1, -1, inputs.size(2)))
                previous, parent = states.masked_fill((places < 0).unsqueeze(2), 0).unbind(1)
            else:
                previous = parent = torch.zeros_like(inputs[:, 0])
            past.append(cell(torch.cat([inputs[:, column], parent], dim=1), previous))
        return torch.stack(past[begun:], dim=1)

    def _attend(self, x: Tensor, encoder_out: dict[str, list], incremental_state: Optional[dict]) -> Tensor:
        """What each column gets from the source, ``[R, T, D]``."""
        [states] = encoder_out["encoder_out"]
        if self.reads_trees:
            padding = TreeMemory(encoder_out["tree_structure"][0], row_order(encoder_out))
        else:
            padding = encoder_out["encoder_padding_mask"][0] if encoder_out["encoder_padding_mask"] else None
        attended, _ = self.attention(
            x.transpose(0, 1), states, states, key_padding_mask=padding, incremental_state=incremental_state, static_kv=True,
            need_weights=False,
        )  # fmt: skip
        return attended.transpose(0, 1)

    def output_layer(self, features: Tensor) -> Tensor:
        """Logits ``[R, T, V]`` from features ``[R, T, D]``."""
        if self.output_projection is None:
            return functional.linear(features, self.embed_tokens.weight)
        return self.output_projection(features)

    def max_positions(self) -> int:
        """Maximum length of a target."""
        return self._max_positions

    def reorder_incremental_state(self, incremental_state: dict, new_order: Tensor) -> None:
        """Moves states as beam search moves hypotheses.

        Args:
            incremental_state: state of a decoding under way
            new_order: ``[rows]``
        """
        growing = self.get_incremental_state(incremental_state, _STATES)
        if growing is not None:
            growing.layers = [[states.index_select(0, new_order) for states in layer] for layer in growing.layers]
