"""Transformer with tree positional encodings (Shiv & Quirk 2019) between sequences and symbol trees."""

from dataclasses import dataclass, field
from typing import Optional

from fairseq.models import register_model, register_model_architecture
from fairseq.models.transformer import TransformerConfig
from fairseq.models.transformer.transformer_legacy import base_architecture

from tree_fairseq.data_bin.symbol_dictionary import SymbolTable
from tree_fairseq.errors import InputError, MissingTreesError
from tree_fairseq.nn.extended_transformer import TreeReadingTransformer, set_defaults, set_sizes
from tree_fairseq.tree_positional.decoder import TreePositionalDecoder
from tree_fairseq.tree_positional.encoder import TreePositionalEncoder
from tree_fairseq.tree_positional.positions import TreePositionsConfig


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreePositionalModelConfig(TreePositionsConfig):
    """Flags that the model has beside those of fairseq's transformer."""

    query_position: bool = field(
        default=False,
        metadata={
            "help": "tell the decoder at each step the position that its next symbol will fill (not in the paper)"
        },
    )


@dataclass
class TreePositionalTransformerConfig(TreePositionalModelConfig, TransformerConfig):
    """All options of the model; the symbols of its sides, None for a sequence, are filled in from the task."""

    source_symbols: Optional[SymbolTable] = None
    target_symbols: Optional[SymbolTable] = None


@register_model("tree_positional_transformer")
class TreePositionalTransformerModel(TreeReadingTransformer):
    """fairseq's transformer, in which symbols of trees have positions in trees, and words those in sequences."""

    reads_symbol_trees = True
    flags = TreePositionalModelConfig
    encoder_class, decoder_class = TreePositionalEncoder, TreePositionalDecoder

    @classmethod
    def build_model(cls, args, task):
        """Builds the model for a task that has ``source_symbols`` and ``target_symbols``, None for a sequence.

        Raises:
            MissingTreesError: the task knows no symbol trees
            InputError: options that do not fit the trees or each other
        """
        if not hasattr(task, "target_symbols"):
            raise MissingTreesError(
                "--arch tree_positional_transformer reads symbol trees; use --task structural_translation"
            )
        tree_positional_transformer(args)
        if args.query_position and task.target_symbols is None:
            raise InputError("--query-position needs a target of symbol trees, and this target is a sequence")
        cfg = TreePositionalTransformerConfig.from_namespace(args)
        cfg.source_symbols, cfg.target_symbols = task.source_symbols, task.target_symbols
        return super().build_model(cfg, task)


@register_model_architecture("tree_positional_transformer", "tree_positional_transformer")
def tree_positional_transformer(args):
    """Sizes of fairseq's ``transformer``: 6 + 6 layers, width 512, 8 heads."""
    set_defaults(args, TreePositionalModelConfig)
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
