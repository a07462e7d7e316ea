"""Trees as sequences of labels and brackets, baselines of insertion-based tree decoding: models and their search.

They generate from left to right with beam search, or insert tokens between those of a partial sequence, many at once
(Stern et al. 2019). A sequence has one slot after each token but the last.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoder, register_model
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.nn.extended_transformer import register_architectures
from tree_fairseq.tree_insertion.dictionary import InsertionDictionary, SequenceDictionary
from tree_fairseq.tree_insertion.model import SIZES, Decoding, TreeGeneratingTransformer
from tree_fairseq.tree_insertion.parallel_search import InsertionLimits, ParallelSearch, PartialOutputs, SlotPredictions

_TOKENS_PER_NODE = 3  # a label and two brackets


def sequence_slots(tokens: Tensor, pad: int) -> Tensor:
    """Returns the numbers of the slots of sequences ``[B, T]`` padded on the right, ``[Z]`` int64, ascending.

    The slot after the token at a place has the number ``T · row + place``.
    """
    return functional.pad(tokens[:, 1:] != pad, (0, 1)).flatten().nonzero().squeeze(1)


class TreeSequenceModel(TreeGeneratingTransformer):
    """Base of models that generate trees as sequences of labels and brackets.

    ``cfg.bracket_numbers`` is how many brackets have numbers of their own. ``added_tokens`` are those that the model
    reads beside the tokens of a tree: BOS and EOS.
    """

    added_tokens = 2

    @property
    def longest_target(self) -> int | None:
        return self.decoder.max_positions() - self.added_tokens

    @property
    def sequences(self) -> SequenceDictionary:
        """The dictionary of the sequences that the model generates."""
        return self.decoder.dictionary

    @classmethod
    def fill_in(cls, cfg, args, task) -> None:
        """Sets how many brackets have numbers: those of a checkpoint, or one for each node of the largest tree."""
        super().fill_in(cfg, args, task)
        train = task.insertion.splits.get("train")
        needed = 1 if train is None else train.largest
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


@register_model("insertion_left_to_right")
class LeftToRightModel(TreeSequenceModel):
    """A sequence model that predicts the next token; its decoder is fairseq's unless a subclass has another."""

    decoding = Decoding.LEFT_TO_RIGHT
    added_tokens = 1  # EOS

    def forward(self, src_tokens: Tensor, src_lengths: Tensor, prev_output_tokens: Tensor, **source_trees):
        """Scores labels and brackets ``[B, T, V]`` after EOS and the tokens of the target so far."""
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

    def select(self, rows: Tensor) -> EncoderOutput:
        """Keeps some sentences, or repeats them; ``rows`` is ``[R]`` int64."""
        return EncoderOutput(self.encoder, self.encoder.reorder_encoder_out(self.output, rows))


@register_model("sequence_insertion_transformer")
class SequenceInsertionTransformerModel(TreeSequenceModel):
    """fairseq's transformer without a causal mask, which inserts tokens (Stern et al. 2019).

    The vector of a slot is a linear map of the final states of the token on its right and the token on its left.
    """

    decoding = Decoding.SEQUENCE_INSERTION
    copies = False

    def __init__(self, cfg, encoder, decoder):
        super().__init__(cfg, encoder, decoder)
        self.slots = nn.Linear(2 * decoder.output_embed_dim, decoder.output_embed_dim)

    @classmethod
    def set_defaults(cls, args) -> None:
        """Sets the options that are not given; the decoder learns its positions, as in the paper."""
        args.decoder_learned_pos = getattr(args, "decoder_learned_pos", True)
        super().set_defaults(args)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        partial_sequence: Tensor,
        slots: Tensor | None = None,
        sentences: Tensor | None = None,
        **source_trees,
    ) -> dict[str, Tensor | None]:
        """Scores what may be inserted in the slots of partial sequences.

        ``partial_sequence`` ``[R, T]`` are labels and brackets between BOS and EOS, padded on the right. ``slots``
        ``[Z]`` int64 are those of :func:`sequence_slots`; on a GPU, finding them here would wait for it. The other
        arguments are those of :meth:`TreeInsertionTransformerModel.forward`.
        """
        memory = self.encode(src_tokens, src_lengths, **source_trees)
        return self.decode(memory if sentences is None else memory.select(sentences), partial_sequence, slots)

    def encode(self, src_tokens: Tensor, src_lengths: Tensor, **source_trees) -> EncoderOutput:
        return EncoderOutput(self.encoder, self.read(src_tokens, src_lengths, **source_trees))

    def decode(
        self, memory: EncoderOutput, partial_sequence: Tensor, slots: Tensor | None = None
    ) -> dict[str, Tensor | None]:
        states, _ = self.decoder.extract_features(partial_sequence, memory.output, full_context_alignment=True)
        if slots is None:
            slots = sequence_slots(partial_sequence, self.decoder.padding_idx)
        pairs = torch.cat([states.roll(-1, dims=1), states], dim=2)  # (R, T, D) -> (R, T, 2 D)
        pairs = pairs.flatten(0, 1).index_select(0, slots)  # (R, T, 2 D) -> (R T, 2 D) -> (Z, 2 D)
        return {"slot": slots, "logits": self.decoder.output_layer(self.slots(pairs))}


register_architectures("sequence_insertion_transformer", SequenceInsertionTransformerModel.set_defaults, SIZES)


class LeftToRightGenerator(SequenceGenerator):
    """fairseq's beam search, whose hypotheses have completed brackets; models have dictionaries of their own."""

    def __init__(self, models: Sequence[LeftToRightModel], dictionary: Dictionary, **kwargs):
        self.sequences = models[0].sequences
        super().__init__(models, self.sequences, **kwargs)

    def generate(self, models, sample: dict, **kwargs) -> list[list[dict]]:
        """Adds the entries of :meth:`SequenceDictionary.balanced`, and ``steps``, the number of tokens with EOS."""
        found = super().generate(models, sample, **kwargs)
        for hypothesis in itertools.chain.from_iterable(found):
            # The last token is EOS; its score counts in that of the whole.
            tokens = hypothesis["tokens"]
            hypothesis |= self.sequences.balanced(tokens, hypothesis["positional_scores"])
            hypothesis |= {"steps": len(tokens), "attention": None, "alignment": None}
        return found


@dataclass(frozen=True)
class PartialSequences(PartialOutputs):
    """Partial sequences, each from BOS to EOS."""

    kinds = 1

    @property
    def slots(self) -> np.ndarray:
        is_last = np.zeros(len(self.labels), bool)
        is_last[self.lengths.cumsum() - 1] = True
        return np.flatnonzero(~is_last)

    def model_input(self, pad: int) -> Tensor:
        tokens = np.full((len(self.lengths), int(self.lengths.max())), pad)
        starts = self.lengths.cumsum() - self.lengths
        tokens[self.rows, np.arange(len(self.labels)) - starts[self.rows]] = self.labels
        return torch.from_numpy(tokens)

    def select(self, rows: np.ndarray) -> PartialSequences:
        stay = np.isin(self.rows, rows)
        return PartialSequences(self.labels[stay], self.scores[stay], self.lengths[rows])

    def inserted(self, chosen: SlotPredictions) -> PartialSequences:
        """Inserts tokens in different slots, each after a token, all at once."""
        lengths = self.lengths + np.bincount(self.rows[chosen.slots], minlength=len(self.lengths))
        labels, scores = (
            np.insert(old, chosen.slots + 1, new)
            for old, new in ((self.labels, chosen.labels), (self.scores, chosen.log_probs))
        )
        return PartialSequences(labels, scores, lengths)


class SequenceInsertionGenerator(ParallelSearch):
    """Generates one sequence for each sentence of a batch by parallel insertions (Stern et al. 2019).

    The hypotheses have the entries of :meth:`ParallelSearch.generate` and :meth:`SequenceDictionary.balanced`. A
    sequence has at most three tokens a node, and no more than the models have positions.
    """

    outputs, size_unit = "sequences", "tokens"

    def __init__(
        self,
        models: Sequence[SequenceInsertionTransformerModel],
        limits: InsertionLimits = InsertionLimits(),
        normalize_scores: bool = True,
    ):
        positions = min(model.max_decoder_positions() for model in models)
        most = min(_TOKENS_PER_NODE * limits.nodes, positions - 2)
        self.reasons = {
            "tokens": f"{{count}} would have had more than {most} tokens and are partial",
            "steps": "{count} were not finished after {limits.steps} steps",
        }
        # BOS and EOS are two more.
        super().__init__(models, models[0].sequences, limits, most + 2, normalize_scores)

    def start(self, count: int) -> PartialSequences:
        labels = np.tile([self.dictionary.bos(), self.dictionary.eos()], count)
        return PartialSequences(labels, np.zeros(2 * count), np.full(count, 2))

    def hypothesis(self, partial: PartialSequences, row: int, sentence: int) -> dict[str, Tensor]:
        end = int(partial.lengths[: row + 1].sum())
        inner = slice(end - int(partial.lengths[row]) + 1, end - 1)
        return self.dictionary.balanced(*(torch.from_numpy(part[inner]) for part in (partial.labels, partial.scores)))
