"""What models have in common that take trees for sequences of labels and brackets."""

from dataclasses import dataclass
from typing import Optional

from fairseq.models import register_model, register_model_architecture
from fairseq.models.transformer import TransformerConfig, TransformerDecoderBase
from fairseq.models.transformer.transformer_legacy import base_architecture
from torch import Tensor

from tree_fairseq.errors import InputError, MissingTreesError
from tree_fairseq.nn.encoders import encoder_of
from tree_fairseq.nn.extended_transformer import EncoderChoiceTransformer, set_defaults, set_sizes
from tree_fairseq.nn.shared_memory import MemoryDecoder
from tree_fairseq.tree_insertion.dictionary import InsertionDictionary, SequenceDictionary

LEFT_TO_RIGHT = "left-to-right"
INSERTION = "insertion"


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreeSequenceConfig(TransformerConfig):
    """All options of such a model; ``bracket_numbers`` is how many brackets have numbers of their own."""

    bracket_numbers: int = 1


class TreeSequenceModel(EncoderChoiceTransformer):
    """Writes trees as sequences of labels and brackets, with any of the encoders that trees are grown from."""

    encoder_option = "insertion_encoder"
    writes: str
    """How it writes sequences, and so what it has to be given: from the left to the right, or by insertions."""

    @property
    def sequences(self) -> SequenceDictionary:
        """Its labels and brackets."""
        return self.decoder.dictionary

    @classmethod
    def build_model(cls, args, task):
        """Builds the model for a task that grows trees.

        Raises:
            MissingTreesError: the task grows none, or the encoder reads trees of a source that has none
            InputError: options that do not go with the model or each other, or an encoder that cannot be loaded
        """
        if not hasattr(task, "insertion"):
            raise MissingTreesError(f"--arch {args.arch} writes the trees of --task tree_insertion; use that")
        set_base_defaults(args)
        cfg = TreeSequenceConfig.from_namespace(args)
        for name in cls.refused_options(cfg):
            raise InputError(f"--{name} does not go with --arch {args.arch}", hint="Leave it out.")
        # A checkpoint says by itself how many brackets have embeddings, whatever folder it is used with.
        cfg.bracket_numbers = args.bracket_numbers = getattr(args, "bracket_numbers", _bracket_numbers(task))
        return cls.build_with_encoder(cfg, args, task)

    @classmethod
    def refused_options(cls, cfg: TreeSequenceConfig) -> list[str]:
        """Those flags of fairseq's transformer that are given and do not go with encoders of other widths and kinds."""
        refused = {
            "adaptive-softmax-cutoff": cfg.adaptive_softmax_cutoff,
            "cross-self-attention": cfg.cross_self_attention,
            "merge-src-tgt-embed": cfg.merge_src_tgt_embed,
            "no-cross-attention": cfg.no_cross_attention,
            "share-all-embeddings": cfg.share_all_embeddings,
        }
        return [name for name, value in refused.items() if value]

    @classmethod
    def build_embedding(cls, cfg, dictionary, embed_dim, path=None):
        """fairseq's table; that of the target has brackets, too."""
        if isinstance(dictionary, InsertionDictionary):
            dictionary = SequenceDictionary(dictionary, cfg.bracket_numbers)
        return super().build_embedding(cfg, dictionary, embed_dim, path)

    @classmethod
    def build_decoder(cls, cfg, tgt_dict, embed_tokens):
        """The decoder of sequences."""
        return cls.build_sequence_decoder(cfg, SequenceDictionary(tgt_dict, cfg.bracket_numbers), embed_tokens)

    @classmethod
    def build_sequence_decoder(cls, cfg, sequences: SequenceDictionary, embed_tokens):
        """The decoder over labels and brackets."""
        raise NotImplementedError

    def require_length(self, tokens: Tensor) -> None:
        """Makes sure that there are positions for sequences ``[B, L]``.

        Raises:
            InputError: there are not
        """
        if tokens.size(1) > self.decoder.max_positions():
            raise InputError(
                f"a tree is a sequence of {tokens.size(1)} labels and brackets, longer than --max-target-positions "
                f"{self.decoder.max_positions()}",
                hint="Raise it, or leave large trees out.",
            )


class LeftToRightModel(TreeSequenceModel):
    """A tree sequence model that predicts the next token."""

    writes = LEFT_TO_RIGHT

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        **source_trees: Optional[dict[str, Tensor]],
    ):
        """Scores labels and brackets.

        Args:
            src_tokens, src_lengths, source_trees: as :meth:`read` has them
            prev_output_tokens: ``[B, T]``, EOS and what stands before each token

        Returns:
            logits ``[B, T, V]`` and the decoder's dict
        """
        self.require_length(prev_output_tokens)
        return self.decoder(prev_output_tokens, encoder_out=self.read(src_tokens, src_lengths, **source_trees))

    def get_targets(self, sample, net_output) -> Tensor:
        """``[B, T]``: the sequence with numbered brackets; ``target`` itself has none, it is printed."""
        return sample["bracketed_target"]


def set_base_defaults(args) -> None:
    """6 + 6 layers, width 512, feed-forward 2048, 8 heads; layer norms stand before their layers."""
    set_defaults(args, TreeSequenceModel.all_flags())
    for side in ("encoder", "decoder"):
        setattr(args, f"{side}_normalize_before", getattr(args, f"{side}_normalize_before", True))
    base_architecture(args)


def _bracket_numbers(task) -> int:
    """As many as the largest tree of the training data can need; one where labels are not numbered."""
    train = task.insertion.splits.get("train")
    return train.largest if task.insertion.numbered and train is not None else 1


# FROM models/insertion_left_to_right: A transformer that writes trees from left to right: the baseline of insertion-based decoding (Lukovnikov & Fischer 2021).


def build_transformer_decoder(cfg, dictionary, embed_tokens) -> TransformerDecoderBase:
    """fairseq's decoder over the memory of the encoder.

    Args:
        cfg (TreeSequenceConfig): sizes and options
        dictionary: of the target
        embed_tokens: its table
    """
    return MemoryDecoder(cfg, dictionary, embed_tokens, memory_type=encoder_of(cfg).memory)


@register_model("insertion_left_to_right")
class InsertionLeftToRightModel(LeftToRightModel):
    """fairseq's transformer over labels and brackets, cached as ever."""

    @classmethod
    def build_sequence_decoder(cls, cfg, sequences, embed_tokens):
        """A causal decoder."""
        return build_transformer_decoder(cfg, sequences, embed_tokens)


@register_model_architecture("insertion_left_to_right", "insertion_left_to_right")
def insertion_left_to_right(args):
    """6 + 6 layers, width 512, feed-forward 2048, 8 heads; layer norms stand before their layers."""
    set_base_defaults(args)


@register_model_architecture("insertion_left_to_right", "insertion_left_to_right_overnight")
def insertion_left_to_right_overnight(args):
    """The paper's size: 6 layers, width 768, feed-forward 3072, 12 heads; an encoder that is not pretrained has the same."""
    set_sizes(args, 6, 768, 3072, 12)
    set_base_defaults(args)


@register_model_architecture("insertion_left_to_right", "insertion_left_to_right_tiny")
def insertion_left_to_right_tiny(args):
    """To try things out: 2 + 2 layers, width 64, feed-forward 128, 4 heads."""
    set_sizes(args, 2, 64, 128, 4)
    set_base_defaults(args)
