"""Models of trees as sequences of labels and brackets, baselines of insertion-based tree decoding.

They generate from left to right, or insert tokens between those of a partial sequence (Stern et al. 2019).
"""

from dataclasses import dataclass
from typing import Optional

import torch
from fairseq.models import FairseqEncoder, register_model
from torch import Tensor, nn

from tree_fairseq.errors import InputError
from tree_fairseq.nn.extended_transformer import register_architectures
from tree_fairseq.tree_insertion.dictionary import InsertionDictionary, SequenceDictionary
from tree_fairseq.tree_insertion.model import SIZES, Decoding, TreeGeneratingTransformer
from tree_fairseq.tree_insertion.slots import sequence_slots
from tree_fairseq.tree_insertion.store import TargetLimit


class TreeSequenceModel(TreeGeneratingTransformer):
    """Base of models that generate trees as sequences of labels and brackets.

    ``cfg.bracket_numbers`` is how many brackets have numbers of their own. ``added_tokens`` are those that the model
    reads beside the tokens of a tree: BOS and EOS.
    """

    added_tokens = 2

    @property
    def target_limit(self) -> Optional[TargetLimit]:
        return TargetLimit(self.decoder.max_positions(), self.added_tokens)

    @property
    def sequences(self) -> SequenceDictionary:
        """The dictionary of the sequences that the model generates."""
        return self.decoder.dictionary

    @classmethod
    def fill_in(cls, cfg, args, task) -> None:
        """Numbers as many brackets as the largest training tree can need, or as a checkpoint has embeddings."""
        super().fill_in(cfg, args, task)
        train = task.insertion.splits.get("train")
        needed = train.largest if task.insertion.numbered and train is not None else 1
        cfg.bracket_numbers = args.bracket_numbers = getattr(args, "bracket_numbers", needed)

    @classmethod
    def build_embedding(cls, cfg, dictionary, embed_dim, path=None):
        """Builds fairseq's table; that of the target has brackets, too."""
        if isinstance(dictionary, InsertionDictionary):
            dictionary = SequenceDictionary(dictionary, cfg.bracket_numbers)
        return super().build_embedding(cfg, dictionary, embed_dim, path)

    @classmethod
    def build_decoder(cls, cfg, tgt_dict, embed_tokens):
        return super().build_decoder(cfg, SequenceDictionary(tgt_dict, cfg.bracket_numbers), embed_tokens)

    def require_length(self, tokens: Tensor) -> None:
        """Raises InputError unless there are positions for sequences ``[B, T]``."""
        if tokens.size(1) > self.decoder.max_positions():
            raise InputError(
                f"a tree is a sequence of {tokens.size(1)} labels and brackets, longer than --max-target-positions "
                f"{self.decoder.max_positions()}",
                hint="Raise it, or leave large trees out.",
            )


@register_model("insertion_left_to_right")
class LeftToRightModel(TreeSequenceModel):
    """A sequence model that predicts the next token; its decoder is fairseq's unless a subclass has another."""

    decoding = Decoding.LEFT_TO_RIGHT
    added_tokens = 1  # EOS

    def forward(self, src_tokens: Tensor, src_lengths: Tensor, prev_output_tokens: Tensor, **source_trees):
        """Scores labels and brackets ``[B, T, V]`` after EOS and the tokens of the target so far."""
        self.require_length(prev_output_tokens)
        return self.decoder(prev_output_tokens, encoder_out=self.read(src_tokens, src_lengths, **source_trees))

    def get_targets(self, sample, net_output) -> Tensor:
        """Returns ``[B, T]``, the sequence with numbered brackets; fairseq prints ``target``, which has plain ones."""
        return sample["bracketed_target"]


register_architectures("insertion_left_to_right", LeftToRightModel.set_defaults, SIZES)


@dataclass(frozen=True)
class EncoderOutput:
    """The output of an encoder, fairseq's dict of lists, for the sentences of a batch."""

    encoder: FairseqEncoder
    output: dict[str, list]

    def select(self, rows: Tensor) -> "EncoderOutput":
        """Keeps some sentences, or repeats them; ``rows`` is ``[R]`` int64."""
        return EncoderOutput(self.encoder, self.encoder.reorder_encoder_out(self.output, rows))


@register_model("sequence_insertion_transformer")
class SequenceInsertionTransformerModel(TreeSequenceModel):
    """fairseq's transformer without a causal mask, which inserts tokens (Stern et al. 2019).

    The vector of a slot is a linear map of the final states of the token on its right and the token on its left.
    """

    decoding = Decoding.SEQUENCE_INSERTION

    def __init__(self, cfg, encoder, decoder):
        super().__init__(cfg, encoder, decoder)
        self.slots = nn.Linear(2 * decoder.output_embed_dim, decoder.output_embed_dim)

    @classmethod
    def set_defaults(cls, args) -> None:
        """Also learns positions, as the paper does."""
        args.decoder_learned_pos = getattr(args, "decoder_learned_pos", True)
        super().set_defaults(args)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        partial_sequence: Tensor,
        slots: Optional[Tensor] = None,
        sentences: Optional[Tensor] = None,
        **source_trees,
    ) -> dict[str, Optional[Tensor]]:
        """Scores what may be inserted in the slots of partial sequences.

        ``partial_sequence`` ``[R, T]`` are labels and brackets between BOS and EOS, padded on the right. The slot after
        the token at a place has the number ``T · row + place``. ``slots`` ``[Z]`` int64 are the ascending numbers; on a
        GPU, finding them here would wait for it. See :meth:`TreeInsertionTransformerModel.forward` for the rest.
        """
        memory = self.encode(src_tokens, src_lengths, **source_trees)
        return self.decode(memory if sentences is None else memory.select(sentences), partial_sequence, slots)

    def encode(self, src_tokens: Tensor, src_lengths: Tensor, **source_trees) -> EncoderOutput:
        return EncoderOutput(self.encoder, self.read(src_tokens, src_lengths, **source_trees))

    def decode(
        self, memory: EncoderOutput, partial_sequence: Tensor, slots: Optional[Tensor] = None
    ) -> dict[str, Optional[Tensor]]:
        self.require_length(partial_sequence)
        # B x T x D
        states, _ = self.decoder.extract_features(partial_sequence, memory.output, full_context_alignment=True)
        if slots is None:
            slots = sequence_slots(partial_sequence, self.decoder.padding_idx)
        pairs = torch.cat([states.roll(-1, dims=1), states], dim=2).flatten(0, 1).index_select(0, slots)  # Z x 2 D
        return {"slot": slots, "logits": self.decoder.output_layer(self.slots(pairs))}


register_architectures("sequence_insertion_transformer", SequenceInsertionTransformerModel.set_defaults, SIZES)
