"""Transformer with tree positional encodings (Shiv & Quirk 2019) between sequences and symbol trees."""

from dataclasses import dataclass
from typing import Optional

from fairseq.models import register_model
from fairseq.models.transformer.transformer_legacy import base_architecture
from torch import Tensor

from tree_fairseq.errors import InputError, MissingTreesError
from tree_fairseq.nn.distance_bias import DistanceBiasConfig, DistanceBiasedEncoder
from tree_fairseq.nn.encoders import EncoderType, register_encoder
from tree_fairseq.nn.extended_transformer import (
    DistanceBiasTransformer,
    EncoderChoiceTransformer,
    register_architectures,
)
from tree_fairseq.nn.modalities import NO_SYMBOL_TREES, SEQUENCE, SYMBOLS, has_modalities, source_side, target_side
from tree_fairseq.nn.shared_memory import SHARED_STATES, with_rows_moved
from tree_fairseq.support.options import given_flags, option, refuse_flags
from tree_fairseq.tree_positional.decoder import FactoredEmbedding, TreePositionalDecoder, has_arities
from tree_fairseq.tree_positional.positions import TreePositions, TreePositionsConfig, paths_of_batch


class TreePositionalEncoder(DistanceBiasedEncoder):
    """fairseq's transformer encoder, with tree positions if the source is symbol trees (``cfg.source_symbols``)."""

    def __init__(self, cfg, dictionary, embed_tokens, return_fc: bool = False):
        super().__init__(cfg, dictionary, embed_tokens, return_fc)
        if cfg.source_symbols is not None and self.embed_positions is not None:
            width = embed_tokens.embedding_dim
            self.embed_positions = TreePositions(cfg.source_symbols.degree, width, cfg, stock=self.embed_positions)

    def forward(self, *args, source_symbol_tree: Optional[dict[str, Tensor]] = None, **kwargs) -> dict[str, list]:
        """Adds tree positions; ``source_symbol_tree`` has parents and branches of symbol trees."""
        if isinstance(self.embed_positions, TreePositions):
            if source_symbol_tree is None:
                raise MissingTreesError(NO_SYMBOL_TREES)
            paths = paths_of_batch(source_symbol_tree, self.embed_positions.levels)
            self.embed_positions.given = self.embed_positions.encode(paths)
        return {**super().forward(*args, **kwargs), "order": []}

    reorder_encoder_out = staticmethod(with_rows_moved)


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreePositionalEncoderConfig(TreePositionsConfig, DistanceBiasConfig):
    """Flags of the encoder in addition to those of fairseq's transformer."""


ENCODER = register_encoder(
    EncoderType(
        "tree_positional",
        reads=(SYMBOLS, SEQUENCE),
        build=TreePositionalEncoder,
        memory=SHARED_STATES,
        config=TreePositionalEncoderConfig,
        fill_in=lambda cfg, side: setattr(cfg, "source_symbols", side.symbols),
        help="a transformer with tree positions for symbol trees",
    )
)


@dataclass
class TreePositionalModelConfig(TreePositionalEncoderConfig):
    """Flags of the model in addition to those of fairseq's transformer."""

    query_position: bool = option(
        False, "also give the decoder the position of the next symbol at each step (not in the paper)", published=False
    )
    factored_symbols: bool = option(
        False,
        "the vector of a symbol is the sum of one for its label and one for its arity, which the output shares "
        "(not in the paper)",
        published=False,
    )


@register_model("tree_positional_transformer")
class TreePositionalTransformerModel(EncoderChoiceTransformer):
    """fairseq's transformer with tree positions for symbols of trees and usual positions for words."""

    flags = TreePositionalModelConfig
    default_encoder = ENCODER.name
    decoder_class = TreePositionalDecoder

    def __init__(self, cfg, encoder, decoder):
        super().__init__(cfg, encoder, decoder)
        self.tree_inputs = (*self.tree_inputs, "previous_symbol_tree")

    @classmethod
    def fill_in(cls, cfg, args, task) -> None:
        """Fills in the symbols of the target; the task has to load symbol trees."""
        if not has_modalities(task) or (source_side(task).symbols, target_side(task).symbols) == (None, None):
            raise MissingTreesError(
                "--arch tree_positional_transformer reads symbol trees, and neither side of this task has any; use "
                "--task structural_translation on a folder of --source-modality or --target-modality tree"
            )
        cfg.target_symbols = target_side(task).symbols
        if cfg.factored_symbols:
            _require_factors(cfg)
        super().fill_in(cfg, args, task)

    @classmethod
    def build_embedding(cls, cfg, dictionary, embed_dim, path=None):
        """fairseq's vectors, or those of labels and arities where the dictionary has symbols of trees."""
        if cfg.factored_symbols and has_arities(dictionary, cfg.target_symbols.encoding):
            return FactoredEmbedding(dictionary, cfg.target_symbols.encoding, embed_dim)
        return super().build_embedding(cfg, dictionary, embed_dim, path)


def _require_factors(cfg) -> None:
    """Refuses options that need a vector for each whole symbol; raises InputError."""
    if cfg.target_symbols is None:
        raise InputError("--factored-symbols needs a target of symbol trees, but this target is a sequence")
    if not (cfg.share_decoder_input_output_embed or cfg.share_all_embeddings):
        raise InputError(
            "--factored-symbols: the output has the same factors as the embeddings",
            hint="Add --share-decoder-input-output-embed.",
        )
    names = "encoder_embed_path", "decoder_embed_path", "adaptive_softmax_cutoff"
    refuse_flags(given_flags(cfg, *names), "--factored-symbols, which has vectors of labels and arities")


def _set_tiny_defaults(args) -> None:
    args.tree_position_dim = getattr(args, "tree_position_dim", 512)
    TreePositionalTransformerModel.set_defaults(args)


# The paper's semantic parser and its translator of programs have positions of 2048, the default.
register_architectures(
    "tree_positional_transformer",
    TreePositionalTransformerModel.set_defaults,
    {"": None, "_semantic_parsing": (4, 256, 1024, 8), "_program_translation": (4, 256, 512, 8)},
)
# For first trials.
register_architectures("tree_positional_transformer", _set_tiny_defaults, {"_tiny": (2, 64, 128, 4)})
# The sequence baselines of both, fairseq's own model, without and with a bias by distance.
_BASELINES = {"_semantic_parsing": (4, 256, 1024, 8), "_program_translation": (4, 256, 1024, 8)}
register_architectures("transformer", base_architecture, _BASELINES)
register_architectures("transformer_distance_bias", DistanceBiasTransformer.set_defaults, _BASELINES)
