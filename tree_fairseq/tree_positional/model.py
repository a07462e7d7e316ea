"""Transformer with tree positional encodings (Shiv & Quirk 2019) between sequences and symbol trees."""

from dataclasses import dataclass, field
from typing import Any, Optional

from fairseq.models import register_model, register_model_architecture
from fairseq.models.transformer import TransformerConfig, TransformerEncoderBase
from fairseq.models.transformer.transformer_legacy import base_architecture
from torch import Tensor

from tree_fairseq.data_bin.symbol_dictionary import SymbolTable
from tree_fairseq.errors import InputError, MissingTreesError
from tree_fairseq.nn.encoders import EncoderType, encoder_of, register_encoder
from tree_fairseq.nn.extended_transformer import EncoderChoiceTransformer, set_defaults, set_sizes
from tree_fairseq.nn.sides import SEQUENCE, SYMBOLS, Side, has_modalities, target_side
from tree_fairseq.tree_positional.decoder import TreePositionalDecoder
from tree_fairseq.tree_positional.positions import TreePositions, TreePositionsConfig, branch_paths


class TreePositionalEncoder(TransformerEncoderBase):
    """fairseq's transformer encoder, with tree positions if the source is symbol trees.

    Args:
        cfg (TreePositionalTransformerConfig): sizes, options of the positions and ``source_symbols``
        dictionary: of the source
        embed_tokens: its table
    """

    def __init__(self, cfg, dictionary, embed_tokens, return_fc: bool = False):
        super().__init__(cfg, dictionary, embed_tokens, return_fc)
        if cfg.source_symbols is not None and self.embed_positions is not None:
            self.embed_positions = TreePositions(cfg.source_symbols.degree, embed_tokens.embedding_dim, cfg)

    def forward(
        self, *args: Any, source_symbol_tree: Optional[dict[str, Tensor]] = None, **kwargs: Any
    ) -> dict[str, list]:
        """fairseq's forward pass; ``source_symbol_tree`` are the parents and branches of symbol trees, see
        :mod:`tree_fairseq.nn.pair_dataset`.
        """
        if not isinstance(self.embed_positions, TreePositions):
            return super().forward(*args, **kwargs)
        if source_symbol_tree is None:
            raise MissingTreesError(
                "this model reads symbol trees, but the batch has none; use --task structural_translation"
            )
        paths = branch_paths(source_symbol_tree["parents"], source_symbol_tree["branches"], self.embed_positions.levels)
        with self.embed_positions.given(self.embed_positions.encode(paths)):
            return super().forward(*args, **kwargs)


def _set_symbols(cfg, side: Side) -> None:
    """Sets arities and branches of the source's symbols; None for a sequence."""
    cfg.source_symbols = side.symbols


ENCODER = register_encoder(
    EncoderType(
        "tree_positional",
        reads=(SYMBOLS, SEQUENCE),
        build=TreePositionalEncoder,
        config=TreePositionsConfig,
        fill_in=_set_symbols,
        help="a transformer with tree positions for symbol trees",
    )
)


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreePositionalModelConfig(TreePositionsConfig):
    """Flags of the model in addition to those of fairseq's transformer."""

    query_position: bool = field(
        default=False,
        metadata={"help": "also give the decoder the position of the next symbol at each step (not in the paper)"},
    )


@dataclass
class TreePositionalTransformerConfig(TreePositionalModelConfig, TransformerConfig):
    """Options of the model. The task fills in the symbols of each side, None for a sequence."""

    source_symbols: Optional[SymbolTable] = None
    target_symbols: Optional[SymbolTable] = None


@register_model("tree_positional_transformer")
class TreePositionalTransformerModel(EncoderChoiceTransformer):
    """fairseq's transformer with tree positions for symbols of trees and usual positions for words."""

    flags = TreePositionalModelConfig
    default_encoder = ENCODER.name

    def __init__(self, cfg, encoder, decoder):
        super().__init__(cfg, encoder, decoder)
        self.tree_inputs = (*self.tree_inputs, "previous_symbol_tree")

    @classmethod
    def build_model(cls, args, task):
        """Builds the model for a task that loads symbol trees.

        Raises:
            MissingTreesError: the task is fairseq's own, or the encoder reads trees that the source does not have
            InputError: options contradict the trees or each other
        """
        if not has_modalities(task):
            raise MissingTreesError(
                "--arch tree_positional_transformer reads symbol trees; use --task structural_translation"
            )
        target = target_side(task)
        tree_positional_transformer(args)
        if args.query_position and target.symbols is None:
            raise InputError("--query-position needs a target of symbol trees, but this target is a sequence")
        cfg = TreePositionalTransformerConfig.from_namespace(args)
        cfg.target_symbols = target.symbols
        return cls.build_with_encoder(cfg, args, task)

    @classmethod
    def build_decoder(cls, cfg, tgt_dict, embed_tokens):
        """Builds the decoder over the encoder's memory."""
        return TreePositionalDecoder(
            cfg, tgt_dict, embed_tokens, no_encoder_attn=cfg.no_cross_attention, memory_type=encoder_of(cfg).memory
        )


@register_model_architecture("tree_positional_transformer", "tree_positional_transformer")
def tree_positional_transformer(args):
    """Sizes of fairseq's ``transformer``: 6 + 6 layers, width 512, 8 heads."""
    set_defaults(args, TreePositionalTransformerModel.all_flags())
    base_architecture(args)


@register_model_architecture("tree_positional_transformer", "tree_positional_transformer_semantic_parsing")
def tree_positional_transformer_semantic_parsing(args):
    """The paper's semantic parser: 4 + 4 layers, width 256, feed-forward 1024, positions of 2048."""
    set_sizes(args, 4, 256, 1024, 8)
    tree_positional_transformer(args)


@register_model_architecture("tree_positional_transformer", "tree_positional_transformer_program_translation")
def tree_positional_transformer_program_translation(args):
    """The paper's translator of programs: 4 + 4 layers, width 256, feed-forward 512, positions of 2048."""
    set_sizes(args, 4, 256, 512, 8)
    tree_positional_transformer(args)


@register_model_architecture("tree_positional_transformer", "tree_positional_transformer_tiny")
def tree_positional_transformer_tiny(args):
    """To try things out: 2 + 2 layers, width 64, feed-forward 128, 4 heads, positions of 512."""
    set_sizes(args, 2, 64, 128, 4)
    args.tree_position_dim = getattr(args, "tree_position_dim", 512)
    tree_positional_transformer(args)


@register_model_architecture("transformer", "transformer_semantic_parsing")
def transformer_semantic_parsing(args):
    """The sequence baseline of semantic parsing, fairseq's own: 4 + 4 layers, width 256, feed-forward 1024."""
    set_sizes(args, 4, 256, 1024, 8)
    base_architecture(args)


@register_model_architecture("transformer", "transformer_program_translation")
def transformer_program_translation(args):
    """The sequence baseline of program translation, fairseq's own: 4 + 4 layers, width 256, feed-forward 1024."""
    set_sizes(args, 4, 256, 1024, 8)
    base_architecture(args)
