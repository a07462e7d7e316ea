"""The insertion-based tree decoder (Lukovnikov & Fischer 2021), and the base of all models of its task."""

import enum
from argparse import Namespace
from dataclasses import dataclass
from typing import Optional

from fairseq.dataclass import FairseqDataclass
from fairseq.models import register_model
from torch import Tensor

from tree_fairseq.errors import MissingTreesError
from tree_fairseq.nn.extended_transformer import EncoderChoiceTransformer, register_architectures
from tree_fairseq.support.options import option, refuse_flags
from tree_fairseq.tree_insertion.decoder import DecoderMemory, TreeInsertionDecoder
from tree_fairseq.tree_insertion.dictionary import InsertionDictionary


class Decoding(enum.Enum):
    """How a model generates trees, which decides on the data set and the generator."""

    TREE_INSERTION, SEQUENCE_INSERTION, LEFT_TO_RIGHT = range(3)


class TreeGeneratingTransformer(EncoderChoiceTransformer):
    """A transformer that generates trees; ``--insertion-encoder`` names its encoder."""

    encoder_option = "insertion_encoder"
    decoding: Decoding

    @classmethod
    def set_defaults(cls, args: Namespace) -> None:
        """Sets the options that are not given: fairseq's defaults, and layer norms before their layers."""
        for side in ("encoder", "decoder"):
            setattr(args, f"{side}_normalize_before", getattr(args, f"{side}_normalize_before", True))
        super().set_defaults(args)

    @classmethod
    def fill_in(cls, cfg, args: Namespace, task) -> None:
        """Makes sure that targets are trees; subclasses fill in the options of their decoder."""
        if not isinstance(task.target_dictionary, InsertionDictionary):
            raise MissingTreesError(f"--arch {args.arch} generates trees; use --task tree_insertion")
        super().fill_in(cfg, args, task)

    @property
    def longest_target(self) -> Optional[int]:
        """The most labels and brackets of a tree for which the model has positions; None without a limit."""
        return None

    def max_positions(self) -> tuple[int, int]:
        """Returns the longest source and the longest target, each with EOS; brackets count if they take positions."""
        source, target = super().max_positions()
        return source, target if self.longest_target is None else self.longest_target + 1


SIZES: dict[str, Optional[tuple[int, ...]]] = {"": None, "_overnight": (6, 768, 3072, 12), "_tiny": (2, 64, 128, 4)}
"""Layers, width, feed-forward width and heads of encoder and decoder, by the suffix of an architecture.

None stands for fairseq's sizes: 6, 512, 2048, 8. ``_overnight`` is the size of the paper's decoder (Lukovnikov &
Fischer 2021), and of encoders that are not pretrained. ``_tiny`` is for trying things out.
"""


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreeInsertionModelConfig(FairseqDataclass):
    """Flags of the model in addition to those of fairseq's transformer."""

    no_child_relations: bool = option(False, "ablation: parents and children are one step apart, whichever child it is")
    absolute_positions: bool = option(
        False,
        "ablation: the decoder reads labels and brackets with positions in that sequence, without relations",
        published=False,
    )


@register_model("tree_insertion_transformer")
class TreeInsertionTransformerModel(TreeGeneratingTransformer):
    """A transformer whose decoder reads partial trees and predicts which label to insert in each of their slots."""

    flags = TreeInsertionModelConfig
    decoding = Decoding.TREE_INSERTION

    @classmethod
    def fill_in(cls, cfg, args, task) -> None:
        """Refuses flags that do not work with a memory that is projected beforehand."""
        super().fill_in(cfg, args, task)
        refused = {"--checkpoint-activations": cfg.checkpoint_activations, "--decoder-layerdrop": cfg.decoder.layerdrop}
        refuse_flags(refused, f"--arch {args.arch}")

    @classmethod
    def build_decoder(cls, cfg, tgt_dict, embed_tokens):
        return TreeInsertionDecoder(cfg, tgt_dict, embed_tokens)

    @property
    def longest_target(self) -> Optional[int]:
        """With absolute positions, three of them are for the root that decoding begins with and its brackets."""
        return self.decoder.max_positions() - 3 if self.cfg.absolute_positions else None

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        partial_tree: dict[str, Tensor],
        sentences: Optional[Tensor] = None,
        **source_trees,
    ) -> dict[str, Tensor]:
        """Scores what may be inserted in the slots of partial trees.

        Args:
            src_tokens, src_lengths: ``[B, N]`` and ``[B]``
            partial_tree: of R trees, as :func:`tree_fairseq.tree_insertion.tree_shapes.partial_tree_input` makes it
            sentences: ``[R]`` int64, the sentence of each partial tree; by default each sentence has one
            **source_trees: ``source_spans`` or ``source_symbol_tree``, for an encoder that reads trees

        Returns:
            the numbers of all slots, ``[Z]``; logits ``[Z, V]`` of the labels to insert there, and of EOS for nothing
        """
        memory = self.encode(src_tokens, src_lengths, **source_trees)
        return self.decode(memory if sentences is None else memory.select(sentences), partial_tree)

    def encode(self, src_tokens: Tensor, src_lengths: Tensor, **source_trees) -> DecoderMemory:
        """Encodes sources, and projects them for the decoder, once for all steps."""
        return self.decoder.project(self.read(src_tokens, src_lengths, **source_trees))

    def decode(self, memory: DecoderMemory, partial_tree: dict[str, Tensor]) -> dict[str, Tensor]:
        return self.decoder(partial_tree, memory)


register_architectures("tree_insertion_transformer", TreeInsertionTransformerModel.set_defaults, SIZES)
