"""A transformer that inserts tokens between those of a sequence (Stern et al. 2019), for trees as sequences of labels and brackets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

import torch
from fairseq.models import FairseqEncoder, register_model, register_model_architecture
from torch import Tensor, nn

from tree_fairseq.nn.extended_transformer import set_sizes
from tree_fairseq.tree_insertion.sequence_model import (
    INSERTION,
    TreeSequenceModel,
    build_transformer_decoder,
    set_base_defaults,
)
from tree_fairseq.tree_insertion.slots import SlotNumbers


@dataclass(frozen=True)
class EncodedRows:
    """What an encoder read of B sentences.

    Attributes:
        encoder: knows how its output is taken apart
        output: fairseq's dict of lists
    """

    encoder: FairseqEncoder
    output: dict[str, list]

    def select(self, rows: Tensor) -> EncodedRows:
        """That of some rows, ``[B']`` int64."""
        return EncodedRows(self.encoder, self.encoder.reorder_encoder_out(self.output, rows))


@register_model("sequence_insertion_transformer")
class SequenceInsertionTransformerModel(TreeSequenceModel):
    """fairseq's transformer without a causal mask; a slot sees the final states of the tokens on its right and on its left."""

    writes = INSERTION

    def __init__(self, cfg, encoder, decoder):
        super().__init__(cfg, encoder, decoder)
        self.slots = nn.Linear(2 * decoder.output_embed_dim, decoder.output_embed_dim)

    @classmethod
    def build_sequence_decoder(cls, cfg, sequences, embed_tokens):
        """A decoder whose self-attention is not masked when it is asked to see all."""
        return build_transformer_decoder(cfg, sequences, embed_tokens)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        partial_sequence: Tensor,
        **source_trees: Optional[dict[str, Tensor]],
    ) -> dict[str, Optional[Tensor]]:
        """Scores what may be inserted in the slots of partial sequences.

        Args:
            src_tokens, src_lengths, source_trees: as :meth:`TreeSequenceModel.read` has them
            partial_sequence: ``[B, M]`` labels and brackets between BOS and EOS, padded on the right

        Returns:
            - ``slot`` ``[Z]`` int64, ascending: the slots that there are, numbered ``M · row + place``, after the token at that place
            - ``logits`` ``[Z, V]``, of what may be inserted there and of EOS, that nothing is
            - ``delete``: None
        """
        return self.decode(self.encode(src_tokens, src_lengths, **source_trees), partial_sequence)

    def encode(
        self, src_tokens: Tensor, src_lengths: Tensor, **source_trees: Optional[dict[str, Tensor]]
    ) -> EncodedRows:
        """Reads sources, once for all steps of decoding; arguments as of :meth:`forward`."""
        return EncodedRows(self.encoder, self.read(src_tokens, src_lengths, **source_trees))

    def decode(self, memory: EncodedRows, partial_sequence: Tensor) -> dict[str, Optional[Tensor]]:
        """Scores what may be inserted in partial sequences, one for each row of the memory; see :meth:`forward`."""
        self.require_length(partial_sequence)
        states, _ = self.decoder.extract_features(
            partial_sequence, memory.output, full_context_alignment=True
        )  # B x M x D
        exists = partial_sequence.ne(self.decoder.padding_idx)
        exists = torch.cat([exists[:, 1:], torch.zeros_like(exists[:, :1])], dim=1)
        pairs = torch.cat([states.roll(-1, dims=1), states], dim=2)[exists]  # Z x 2 D
        return {
            "slot": exists.flatten().nonzero().squeeze(1),
            "logits": self.decoder.output_layer(self.slots(pairs)),
            "delete": None,
        }


def _set_defaults(args) -> None:
    """Positions are learned, as the paper has them."""
    args.decoder_learned_pos = getattr(args, "decoder_learned_pos", True)
    set_base_defaults(args)


@register_model_architecture("sequence_insertion_transformer", "sequence_insertion_transformer")
def sequence_insertion_transformer(args):
    """6 + 6 layers, width 512, feed-forward 2048, 8 heads; layer norms stand before their layers."""
    _set_defaults(args)


@register_model_architecture("sequence_insertion_transformer", "sequence_insertion_transformer_overnight")
def sequence_insertion_transformer_overnight(args):
    """The paper's size: 6 layers, width 768, feed-forward 3072, 12 heads; an encoder that is not pretrained has the same."""
    set_sizes(args, 6, 768, 3072, 12)
    _set_defaults(args)


@register_model_architecture("sequence_insertion_transformer", "sequence_insertion_transformer_tiny")
def sequence_insertion_transformer_tiny(args):
    """To try things out: 2 + 2 layers, width 64, feed-forward 128, 4 heads."""
    set_sizes(args, 2, 64, 128, 4)
    _set_defaults(args)


# FROM modules/sequence_insertion: One step of inserting tokens into sequences, for a whole batch in tensors.


@dataclass(frozen=True)
class InsertionPlaces:
    """Where tokens stand after a step.

    Attributes:
        old: ``[B, M]`` int64, new places of the tokens; those of padding are the width
        new: ``[I]`` int64, flat places of what is inserted in ``[B, width + 1]``
        width: length of the longest sequence
    """

    old: Tensor
    new: Tensor
    width: int

    @classmethod
    def of(cls, is_token: Tensor, slots: Tensor) -> InsertionPlaces:
        """Works out the places.

        Args:
            is_token: ``[B, M]`` bool, false at padding, which is on the right
            slots: ``[I]`` int64, different slots (``M · row + place``, after the token there) in which something is inserted
        """
        inserted = torch.zeros_like(is_token, dtype=torch.long)
        inserted.view(-1)[slots] = 1
        before = inserted.cumsum(1) - inserted
        width = int((is_token.sum(1) + inserted.sum(1)).amax())
        places = torch.arange(is_token.size(1), device=is_token.device) + before  # B x M
        rows = SlotNumbers(is_token.size(1), kinds=1).row(slots)
        return cls(places.masked_fill(~is_token, width), rows * (width + 1) + places.flatten()[slots] + 1, width)

    def put(self, values: Tensor, inserted: Tensor, fill: float) -> Tensor:
        """Values of tokens after the step.

        Args:
            values: ``[B, M]`` before it
            inserted: ``[I]``, of what is inserted
            fill: of padding

        Returns:
            ``[B, width]``
        """
        # Padding goes to a column of its own, which is cut off.
        result = values.new_full((len(values), self.width + 1), fill).scatter_(1, self.old, values)
        result.view(-1)[self.new] = inserted
        return result[:, : self.width]
