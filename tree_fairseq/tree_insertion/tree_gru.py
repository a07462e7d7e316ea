"""TreeGRU, a recurrent baseline of insertion-based tree decoding (Lukovnikov & Fischer 2021)."""

from dataclasses import dataclass
from typing import Optional

import torch
from fairseq.models import FairseqIncrementalDecoder, register_model, register_model_architecture
from fairseq.modules import FairseqDropout
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.nn.encoders import encoder_of
from tree_fairseq.nn.extended_transformer import set_sizes
from tree_fairseq.tree_insertion.dictionary import SequenceDictionary
from tree_fairseq.tree_insertion.sequence_model import LeftToRightModel, set_base_defaults

# FROM modules/bracket_links: Which column of a sequence with brackets a column grows from, for a whole batch in tensors.


def bracket_links(tokens: Tensor, first_bracket: int, last: bool = False) -> tuple[Tensor, Tensor]:
    """For a decoder that predicts in each column the token of the next: the columns of the previous sibling and of the parent.

    The parent of a column is the one that predicted the innermost bracket that is open. What comes before it among its siblings is
    the column before, which is the parent itself after an opening bracket, and after a closing one the column that predicted the
    opening bracket that it closes. A closing bracket that closes none is like a label.

    Args:
        tokens: ``[B, T]`` int64, START and the tokens so far
        first_bracket: ids from here on are, in turns, opening and closing brackets
        last: of the last column only

    Returns:
        two tensors ``[B, T]`` int64, or ``[B, 1]``; -1 for what there is not
    """
    is_bracket = tokens >= first_bracket
    is_open = is_bracket & ((tokens - first_bracket) % 2 == 0)
    is_close = is_bracket & ~is_open
    change = is_open.long() - is_close.long()
    after = change.cumsum(1)
    before = after - change
    columns = torch.arange(tokens.size(1), device=tokens.device)
    chosen = slice(-1, None) if last else slice(None)

    def last_opened(depth: Tensor) -> Tensor:
        """The last opening bracket, up to each column, that was opened at this depth; -1 if there is none."""
        found = (
            is_open.unsqueeze(1)
            & (before.unsqueeze(1) == depth.unsqueeze(2))
            & (columns <= columns[chosen].unsqueeze(1))
        )
        return torch.where(found, columns, -1).amax(2)

    parents = last_opened(after[:, chosen] - 1) - 1
    closed = last_opened(after[:, chosen])
    previous = torch.where(is_close[:, chosen] & (closed >= 0), closed, columns[chosen]) - 1
    return previous.clamp(min=-1), parents.clamp(min=-1)


# FROM models/tree_gru_decoder: A recurrent decoder of trees as sequences of labels and brackets, whose state follows the branches of the tree.

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
        self.memory_type = encoder_of(cfg).memory
        self.attention = self.memory_type.attention(
            cfg,
            embed_dim=width,
            num_heads=cfg.decoder.attention_heads,
            dropout=cfg.attention_dropout,
            kdim=cfg.encoder.embed_dim,
            vdim=cfg.encoder.embed_dim,
            encoder_decoder_attention=True,
        )
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
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, list],
        incremental_state: Optional[dict] = None,
        **unused,
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
                states = torch.stack(past, dim=1).gather(
                    1, places.clamp(min=0).unsqueeze(2).expand(-1, -1, inputs.size(2))
                )
                previous, parent = states.masked_fill((places < 0).unsqueeze(2), 0).unbind(1)
            else:
                previous = parent = torch.zeros_like(inputs[:, 0])
            past.append(cell(torch.cat([inputs[:, column], parent], dim=1), previous))
        return torch.stack(past[begun:], dim=1)

    def _attend(self, x: Tensor, encoder_out: dict[str, list], incremental_state: Optional[dict]) -> Tensor:
        """What each column gets from the source, ``[R, T, D]``."""
        states, memory = self.memory_type.view(encoder_out)
        attended, _ = self.attention(
            x.transpose(0, 1), states, states, memory, incremental_state=incremental_state, need_weights=False
        )
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


@register_model("tree_gru")
class TreeGRUModel(LeftToRightModel):
    """A transformer reads the source, a GRU along the branches of the tree writes the target."""

    @classmethod
    def refused_options(cls, cfg) -> list[str]:
        """Also the flags of a decoder that is a transformer."""
        width = cfg.decoder.embed_dim
        refused = {
            "decoder-input-dim": cfg.decoder.input_dim != width,
            "decoder-output-dim": cfg.decoder.output_dim != width,
            "decoder-layerdrop": cfg.decoder.layerdrop,
            "decoder-learned-pos": cfg.decoder.learned_pos,
        }
        return super().refused_options(cfg) + [name for name, value in refused.items() if value]

    @classmethod
    def build_sequence_decoder(cls, cfg, sequences, embed_tokens):
        """The recurrent decoder."""
        return TreeGRUDecoder(cfg, sequences, embed_tokens)


def _set_sizes(args, encoder_layers: int, width: int, feed_forward: int, heads: int, decoder_layers: int) -> None:
    args.decoder_layers = getattr(args, "decoder_layers", decoder_layers)
    set_sizes(args, encoder_layers, width, feed_forward, heads)
    set_base_defaults(args)


@register_model_architecture("tree_gru", "tree_gru")
def tree_gru(args):
    """An encoder of 6 layers, width 512, feed-forward 2048, 8 heads; a decoder of 2 layers, width 512."""
    _set_sizes(args, 6, 512, 2048, 8, 2)


@register_model_architecture("tree_gru", "tree_gru_overnight")
def tree_gru_overnight(args):
    """The width of the paper's other decoders: 768, 2 layers; an encoder that is not pretrained has 6 layers and 12 heads."""
    _set_sizes(args, 6, 768, 3072, 12, 2)


@register_model_architecture("tree_gru", "tree_gru_tiny")
def tree_gru_tiny(args):
    """To try things out: an encoder of 2 layers, width 64, feed-forward 128, 4 heads; a decoder of 1 layer."""
    _set_sizes(args, 2, 64, 128, 4, 1)
