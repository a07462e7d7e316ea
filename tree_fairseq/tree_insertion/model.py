"""Insertion-based tree decoder (Lukovnikov & Fischer 2021)."""

from dataclasses import dataclass, field
from typing import Optional

from fairseq.dataclass import FairseqDataclass
from fairseq.models import register_model, register_model_architecture
from fairseq.models.transformer import TransformerConfig
from fairseq.models.transformer.transformer_legacy import base_architecture
from torch import Tensor

from tree_fairseq.errors import InputError, MissingTreesError
from tree_fairseq.nn.extended_transformer import EncoderChoiceTransformer, set_defaults, set_sizes
from tree_fairseq.tree_insertion.decoder import TreeInsertionDecoder
from tree_fairseq.tree_insertion.memory import Memory


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreeInsertionModelConfig(FairseqDataclass):
    """Flags that the model has beside those of fairseq's transformer."""

    no_child_relations: bool = field(
        default=False, metadata={"help": "ablation: parents and children are one step apart, whichever child it is"}
    )
    absolute_positions: bool = field(
        default=False,
        metadata={
            "help": "ablation: the decoder reads labels and brackets with positions in that sequence, and knows no relations"
        },
    )


@dataclass
class TreeInsertionTransformerConfig(TreeInsertionModelConfig, TransformerConfig):
    """All options of the model; ``deletion`` comes from the task."""

    deletion: bool = False


@register_model("tree_insertion_transformer")
class TreeInsertionTransformerModel(EncoderChoiceTransformer):
    """A transformer whose decoder reads partial trees and says what to insert in each of their slots."""

    flags = TreeInsertionModelConfig
    encoder_option = "insertion_encoder"

    @classmethod
    def build_model(cls, args, task):
        """Builds the model for a task that grows trees.

        Raises:
            MissingTreesError: the task grows none, or the encoder reads trees of a source that has none
            InputError: options that do not go with the model or each other, or an encoder that cannot be loaded
        """
        if not hasattr(task, "insertion"):
            raise MissingTreesError("--arch tree_insertion_transformer grows trees; use --task tree_insertion")
        tree_insertion_transformer(args)
        if args.absolute_positions and args.no_child_relations:
            raise InputError(
                "--absolute-positions knows no relations, those of children neither",
                hint="Leave --no-child-relations out.",
            )
        cfg = TreeInsertionTransformerConfig.from_namespace(args)
        for name, value in _without_meaning(cfg).items():
            if value:
                raise InputError(f"--{name} does not go with insertions", hint="Leave it out.")
        # A checkpoint says by itself whether its model deletes, whatever the command that reads it was told.
        cfg.deletion = args.deletion = getattr(args, "deletion", task.cfg.deletion)
        return cls.build_with_encoder(cfg, args, task)

    @classmethod
    def build_decoder(cls, cfg, tgt_dict, embed_tokens):
        """The decoder over partial trees."""
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
            src_tokens: ``[B, S]``
            src_lengths: ``[B]``
            partial_tree: ``labels``, dictionary ids, and ``parents``, places in the row, each ``[B, N]`` int64, in preorder; labels are
                padded on the right, parents are -1 for roots and padding
            **source_trees: ``source_spans`` or ``source_symbol_tree``, for an encoder that reads trees

        Returns:
            - ``slot`` ``[Z]`` int64, ascending: the slots that there are, numbered ``4 · (N · row + node) + kind``, kinds as in
              :mod:`tree_fairseq.tree_insertion.target`
            - ``logits`` ``[Z, V]``, of the labels that may be inserted there and of EOS, that nothing is
            - ``delete`` ``[B, N]``, logits of each node being wrong, for nodes other than roots and padding; None if the model was not
              built to delete
        """
        return self.decode(self.encode(src_tokens, src_lengths, **source_trees), partial_tree)

    def encode(self, src_tokens: Tensor, src_lengths: Tensor, **source_trees: Optional[dict[str, Tensor]]) -> Memory:
        """Reads sources, once for all steps of decoding; arguments as of :meth:`forward`.

        Returns:
            what the decoder's layers need; :meth:`Memory.select` keeps some rows of it
        """
        return self.decoder.read(self.read(src_tokens, src_lengths, **source_trees))

    def decode(self, memory: Memory, partial_tree: dict[str, Tensor]) -> dict[str, Optional[Tensor]]:
        """Scores what may be inserted in partial trees, one for each row of the memory; see :meth:`forward`."""
        return self.decoder(partial_tree, memory)


def _without_meaning(cfg: TransformerConfig) -> dict[str, object]:
    """Flags of fairseq's transformer that do not go with a memory that is projected beforehand, or with slots."""
    return {
        "adaptive-softmax-cutoff": cfg.adaptive_softmax_cutoff,
        "base-layers": cfg.base_layers,
        "checkpoint-activations": cfg.checkpoint_activations,
        "cross-self-attention": cfg.cross_self_attention,
        "decoder-layerdrop": cfg.decoder.layerdrop,
        "no-cross-attention": cfg.no_cross_attention,
    }


@register_model_architecture("tree_insertion_transformer", "tree_insertion_transformer")
def tree_insertion_transformer(args):
    """6 + 6 layers, width 512, feed-forward 2048, 8 heads; layer norms stand before their layers."""
    set_defaults(args, TreeInsertionTransformerModel.all_flags())
    for side in ("encoder", "decoder"):
        setattr(args, f"{side}_normalize_before", getattr(args, f"{side}_normalize_before", True))
    base_architecture(args)


@register_model_architecture("tree_insertion_transformer", "tree_insertion_transformer_overnight")
def tree_insertion_transformer_overnight(args):
    """The paper's decoder: 6 layers, width 768, feed-forward 3072, 12 heads; an encoder that is not pretrained has the same size."""
    set_sizes(args, 6, 768, 3072, 12)
    tree_insertion_transformer(args)


@register_model_architecture("tree_insertion_transformer", "tree_insertion_transformer_tiny")
def tree_insertion_transformer_tiny(args):
    """To try things out: 2 + 2 layers, width 64, feed-forward 128, 4 heads."""
    set_sizes(args, 2, 64, 128, 4)
    tree_insertion_transformer(args)
