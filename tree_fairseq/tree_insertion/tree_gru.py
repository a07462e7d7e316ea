"""TreeGRU, the recurrent baseline of insertion-based tree decoding (Lukovnikov & Fischer 2021).

It writes trees as sequences of labels and brackets. Its state follows the branches of the tree, not the sequence.
"""

import torch
from fairseq.models import register_model
from fairseq.modules import FairseqDropout
from torch import Tensor, nn

from tree_fairseq.nn.encoders import encoder_of
from tree_fairseq.nn.extended_transformer import register_architectures
from tree_fairseq.nn.shared_memory import cross_attention_options
from tree_fairseq.nn.tree_lstm import RecurrentDecoder
from tree_fairseq.tree_insertion.dictionary import SequenceDictionary
from tree_fairseq.tree_insertion.sequences import LeftToRightModel

_STATES = "states"


def bracket_links(tokens: Tensor, first_bracket: int, last: bool = False) -> tuple[Tensor, Tensor]:
    """Finds the columns of the previous sibling and of the parent of each column.

    A column predicts the token of the next column. The parent of a column is the column that predicted the innermost
    open bracket. Its previous sibling is the column before it (the parent itself, after an opening bracket); after a
    closing bracket it is the column that predicted the opening bracket of the pair. A closing bracket without an
    opening one counts as a label.

    ``tokens`` are ``[R, T]`` int64, EOS and the tokens so far; ids from ``first_bracket`` on are alternately opening
    and closing brackets. Returns previous siblings and parents, each ``[R, T]`` int64, or ``[R, 1]`` of the ``last``
    column; -1 where there is no such column.
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
        """The last column, up to each column, that opens a bracket at this depth; -1 if no column does."""
        is_earlier = columns <= columns[chosen].unsqueeze(1)
        found = is_open.unsqueeze(1) & (before.unsqueeze(1) == depth.unsqueeze(2)) & is_earlier
        return torch.where(found, columns, -1).amax(2)

    parents = last_opened(after[:, chosen] - 1) - 1
    closed = last_opened(after[:, chosen])
    previous = torch.where(is_close[:, chosen] & (closed >= 0), closed, columns[chosen]) - 1
    return previous.clamp(min=-1), parents.clamp(min=-1)


class TreeGRUDecoder(RecurrentDecoder):
    """Predicts the next label or bracket from the states of the parent and of the previous sibling.

    In each column a GRU reads the last token and the parent's state, and updates the state of the previous sibling (see
    :func:`bracket_links`). The last layer's state attends to the source once.
    """

    def __init__(self, cfg, dictionary: SequenceDictionary, embed_tokens: nn.Embedding):
        super().__init__(dictionary)
        self.embed_tokens = embed_tokens
        width = cfg.decoder.embed_dim
        self.cells = nn.ModuleList(nn.GRUCell(2 * width, width) for _ in range(cfg.decoder.layers))
        self.memory_type = encoder_of(cfg).memory
        # Quantisation noise is for the layers of transformers.
        options = {**cross_attention_options(cfg), "q_noise": 0.0}
        self.attention = self.memory_type.attention(cfg, **options)
        self.join = nn.Linear(2 * width, width)
        self.output_projection = None
        if not cfg.share_decoder_input_output_embed:
            self.output_projection = nn.Linear(width, len(dictionary), bias=False)
        self.dropout = FairseqDropout(cfg.dropout, module_name=type(self).__name__)

    def extract_features(
        self, prev_output_tokens: Tensor, encoder_out: dict[str, list], incremental_state=None, **unused
    ) -> tuple[Tensor, dict]:
        """Computes features ``[R, T, D]`` of all columns (EOS and the tokens so far), or ``[R, 1, D]`` of the last one.

        ``incremental_state`` asks for the last one.
        """
        # For each layer the states of the columns so far.
        states: list[list[Tensor]] = [[] for _ in self.cells]
        last = incremental_state is not None
        if last:
            states = self.get_incremental_state(incremental_state, _STATES) or states
            self.set_incremental_state(incremental_state, _STATES, states)
        links = bracket_links(prev_output_tokens, self.dictionary.open, last)
        x = self.dropout(self.embed_tokens(prev_output_tokens[:, -1:] if last else prev_output_tokens))
        for cell, past in zip(self.cells, states):
            x = self.dropout(self._run(cell, x, links, past))
        held, memory = self.memory_type.view(encoder_out)
        options = {"incremental_state": incremental_state, "need_weights": False}
        attended, _ = self.attention(x.transpose(0, 1), held, held, memory, **options)
        return self.dropout(torch.tanh(self.join(torch.cat([x, attended.transpose(0, 1)], dim=2)))), {"attn": [None]}

    def _run(self, cell: nn.GRUCell, inputs: Tensor, links: tuple[Tensor, Tensor], past: list[Tensor]) -> Tensor:
        """Computes states ``[R, T, D]`` from inputs ``[R, T, D]``, and appends them to those of earlier columns."""
        both = torch.stack(links, dim=2)  # R x T x 2
        begun = len(past)
        for column in range(inputs.size(1)):
            places = both[:, column]
            if past:
                index = places.clamp(min=0).unsqueeze(2).expand(-1, -1, inputs.size(2))
                states = torch.stack(past, dim=1).gather(1, index)
                previous, parent = states.masked_fill((places < 0).unsqueeze(2), 0).unbind(1)
            else:
                previous = parent = torch.zeros_like(inputs[:, 0])
            past.append(cell(torch.cat([inputs[:, column], parent], dim=1), previous))
        return torch.stack(past[begun:], dim=1)

    def reorder_incremental_state(self, incremental_state: dict, new_order: Tensor) -> None:
        """Reorders the states as beam search reorders hypotheses; ``new_order`` is ``[R]``."""
        states = self.get_incremental_state(incremental_state, _STATES)
        for layer in states or ():
            layer[:] = [state.index_select(0, new_order) for state in layer]


@register_model("tree_gru")
class TreeGRUModel(LeftToRightModel):
    """A transformer encoder, and a GRU that follows the branches of the target tree."""

    copies = False
    longest_target = None  # the decoder has no positions

    @classmethod
    def build_decoder(cls, cfg, tgt_dict, embed_tokens):
        return TreeGRUDecoder(cfg, SequenceDictionary(tgt_dict, cfg.bracket_numbers), embed_tokens)


# The decoder has the width of the paper's other decoders, and fewer layers than the encoder.
register_architectures(
    "tree_gru",
    TreeGRUModel.set_defaults,
    {"": (6, 512, 2048, 8, 2), "_overnight": (6, 768, 3072, 12, 2), "_tiny": (2, 64, 128, 4, 1)},
)
