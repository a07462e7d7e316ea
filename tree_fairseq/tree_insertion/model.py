"""Insertion-based tree decoder (Lukovnikov & Fischer 2021)."""

from dataclasses import dataclass, field
from typing import Optional

from fairseq.dataclass import FairseqDataclass
from fairseq.models import register_model
from fairseq.models.transformer import TransformerConfig
from torch import Tensor

from tree_fairseq.nn.generating import refuse_flags
from tree_fairseq.tree_insertion.base_model import TREE_INSERTION, TreeGeneratingTransformer, register_architectures
from tree_fairseq.tree_insertion.decoder import DecoderMemory, TreeInsertionDecoder


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreeInsertionModelConfig(FairseqDataclass):
    """Flags of the model in addition to those of fairseq's transformer."""

    no_child_relations: bool = field(
        default=False, metadata={"help": "ablation: parents and children are one step apart, whichever child it is"}
    )
    absolute_positions: bool = field(
        default=False,
        metadata={
            "help": "ablation: the decoder reads labels and brackets with positions in that sequence, without relations"
        },
    )


@dataclass
class TreeInsertionTransformerConfig(TreeInsertionModelConfig, TransformerConfig):
    """All options of the model; ``deletion`` comes from the task."""

    deletion: bool = False


@register_model("tree_insertion_transformer")
class TreeInsertionTransformerModel(TreeGeneratingTransformer):
    """A transformer whose decoder reads partial trees and predicts which label to insert in each of their slots."""

    flags = TreeInsertionModelConfig
    config = TreeInsertionTransformerConfig
    decoding = TREE_INSERTION

    @classmethod
    def refused_flags(cls, cfg) -> dict[str, object]:
        """Also refuses flags that do not work with a memory that is projected beforehand."""
        return super().refused_flags(cfg) | {
            "--base-layers": cfg.base_layers,
            "--checkpoint-activations": cfg.checkpoint_activations,
            "--decoder-layerdrop": cfg.decoder.layerdrop,
        }

    @classmethod
    def fill_in(cls, cfg, args, task) -> None:
        """Checks the ablations; ``deletion`` is that of the task, or of the checkpoint's task."""
        both = cfg.absolute_positions and cfg.no_child_relations
        refuse_flags({"--no-child-relations": both}, "--absolute-positions, which uses no relations")
        cfg.deletion = args.deletion = getattr(args, "deletion", task.cfg.deletion)

    @classmethod
    def build_decoder(cls, cfg, tgt_dict, embed_tokens):
        """Builds the decoder of partial trees."""
        return TreeInsertionDecoder(cfg, tgt_dict, embed_tokens)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        partial_tree: dict[str, Tensor],
        **source_trees: Optional[dict[str, Tensor]],
    ) -> dict[str, Optional[Tensor]]:
        """Scores what may be inserted in the slots of partial trees.

        Args:
            src_tokens: ``[B, N]``
            src_lengths: ``[B]``
            partial_tree: ``labels``, dictionary ids, and ``parents``, places in the row, each ``[B, M]`` int64, in
                preorder; labels are padded on the right, parents are -1 for roots and padding; and ``slots`` ``[Z]``
                int64, see :func:`tree_fairseq.tree_insertion.slots.with_slots`
            **source_trees: ``source_spans`` or ``source_symbol_tree``, for an encoder that reads trees

        Returns:
            - ``slot`` ``[Z]``, those slots
            - ``logits`` ``[Z, V]``, of the labels that may be inserted there, and of EOS for inserting nothing
            - ``delete`` ``[B, M]``, logits of each node being wrong, for nodes other than roots and padding; None if
              the model was not built to delete
        """
        return self.decode(self.encode(src_tokens, src_lengths, **source_trees), partial_tree)

    def encode(
        self, src_tokens: Tensor, src_lengths: Tensor, **source_trees: Optional[dict[str, Tensor]]
    ) -> DecoderMemory:
        """Encodes sources, and projects them for the decoder, once for all steps; arguments as of :meth:`forward`."""
        return self.decoder.project(self.read(src_tokens, src_lengths, **source_trees))

    def decode(self, memory: DecoderMemory, partial_tree: dict[str, Tensor]) -> dict[str, Optional[Tensor]]:
        """Scores what may be inserted in partial trees, one for each row of the memory; see :meth:`forward`."""
        return self.decoder(partial_tree, memory)


register_architectures("tree_insertion_transformer", TreeInsertionTransformerModel)
