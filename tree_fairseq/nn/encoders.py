"""The registry of encoders: what each reads, how it is built, and how decoders attend to its memory.

An encoder is registered by its own file, and every decoder of the package then works with it:

>>> register_encoder(EncoderType("my_encoder", reads=(SEQUENCE,), build=MyEncoder))

Models that leave the choice to the user have the flags of all encoders.
"""

import contextlib
from dataclasses import dataclass
from typing import Any, Callable, Optional

from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass
from fairseq.models import FairseqEncoder
from fairseq.models.transformer import TransformerEncoderBase
from torch import nn

from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.errors import InputError, MissingTreesError
from tree_fairseq.nn.distance_bias import DistanceBiasConfig, DistanceBiasedEncoder, bias_tables, require_linear
from tree_fairseq.nn.modalities import (
    CONSTITUENCY,
    SEQUENCE,
    SOURCE_LENGTHS,
    SYMBOLS,
    TREE_INPUTS,
    Side,
    has_modalities,
    source_side,
)
from tree_fairseq.nn.pretrained import PretrainedEncoder
from tree_fairseq.nn.shared_memory import STATES, MemoryType
from tree_fairseq.support.options import option

_PREPROCESS = {
    CONSTITUENCY: "constituency trees: preprocess with --tree-parser, and use --task tree_translation or another "
    "that reads trees",
    SYMBOLS: "symbol trees: preprocess with --source-modality tree, and use --task structural_translation",
}


def _lack_of_trees(task: Any) -> str:
    """Says that a task reads no trees of the source, and which task does if the folder has some."""
    data, lang = (getattr(getattr(task, "cfg", None), name, None) for name in ("data", "source_lang"))
    with contextlib.suppress(MissingTreesError):
        manifest = Manifest.load(data.split(":")[0]) if isinstance(data, str) else None
        if manifest is not None and not has_modalities(task):
            fitting = {"tree_translation": manifest.sides, "structural_translation": manifest.symbols}
            if names := [name for name, sides in fitting.items() if lang in sides]:
                return f"this task reads none, although {data} has them: use --task {names[0]}. In general"
    return "the source of this task has none;"


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass(frozen=True)
class EncoderType:
    """An entry of the registry.

    Attributes:
        name: of the encoder, for flags
        reads: modalities of sources that it reads; sources of all modalities can be read as a ``sequence`` of tokens
        build: makes the encoder from a model's configuration, the source's dictionary and its embeddings, and sets
            ``cfg.encoder.embed_dim`` if the encoder's states have another width
        memory: how decoders attend to its output
        config: its options; each is a flag of the models that leave the choice of an encoder to the user
        fill_in: sets in the configuration what the encoder needs of the source's side, before it is built
        help: describes it in the help of flags
        reads_lengths: whether it reads the lengths of sources on the host, ``source_lengths``, which are None where a
            batch does not have them
    """

    name: str
    reads: tuple[str, ...]
    build: Callable[[Any, Dictionary, Optional[nn.Embedding]], FairseqEncoder]
    memory: MemoryType = STATES
    config: type[FairseqDataclass] = FairseqDataclass
    fill_in: Callable[[Any, Side], None] = lambda cfg, side: None
    help: str = ""
    reads_lengths: bool = False

    @property
    def tree_inputs(self) -> tuple[str, ...]:
        """The names of the trees and lengths that it reads in ``net_input``."""
        trees = (TREE_INPUTS[modality] for modality in self.reads if modality in TREE_INPUTS)
        return (*trees, SOURCE_LENGTHS) if self.reads_lengths else tuple(trees)

    def prepare(self, cfg: Any, task) -> None:
        """Sets in the configuration what the encoder needs of a task, which has to have trees that it reads."""
        side = source_side(task)
        if SEQUENCE not in self.reads and side.modality not in self.reads:
            raise MissingTreesError(
                f"the encoder {self.name!r} reads trees, and {_lack_of_trees(task)} it needs "
                + " or ".join(_PREPROCESS[modality] for modality in self.reads)
            )
        if side.modality == CONSTITUENCY and SYMBOLS in self.reads:
            hint = "Give 'tree', which reads the parses, or 'transformer', which reads the words."
            raise InputError(f"the encoder {self.name!r} would ignore the parses of the source", hint=hint)
        if CONSTITUENCY not in self.reads:
            require_linear(cfg, f"the encoder {self.name!r}")
        self.fill_in(cfg, side)


ENCODERS: dict[str, EncoderType] = {}
"""The registry, by name."""


def register_encoder(encoder: EncoderType) -> EncoderType:
    """Adds an encoder to the registry, or replaces the one of its name."""
    ENCODERS[encoder.name] = encoder
    return encoder


def encoder_of(cfg: Any) -> EncoderType:
    """Returns the encoder that a model's configuration names."""
    return ENCODERS[cfg.source_encoder]


@dataclass
class PretrainedEncoderConfig(FairseqDataclass):
    """Options of a pretrained encoder."""

    encoder_path: Optional[str] = option(
        None, "folder of the pretrained encoder, as HuggingFace's save_pretrained() writes it (safetensors only)"
    )


def _build_transformer(cfg: Any, dictionary: Dictionary, embed_tokens: Optional[nn.Embedding]) -> FairseqEncoder:
    """Builds fairseq's encoder, or one with a bias by distance if the options ask for it."""
    encoder = DistanceBiasedEncoder if bias_tables(cfg) else TransformerEncoderBase
    return encoder(cfg, dictionary, embed_tokens)


def _build_pretrained(cfg: Any, dictionary: Dictionary, embed_tokens: Optional[nn.Embedding]) -> PretrainedEncoder:
    """Builds a pretrained encoder; the memory has its width."""
    encoder = PretrainedEncoder.build(dictionary, cfg.pretrained_folder, cfg.pretrained_description)
    cfg.encoder.embed_dim, cfg.pretrained_description = encoder.width, encoder.describe()
    return encoder


register_encoder(
    EncoderType(
        "transformer",
        reads=(SEQUENCE,),
        build=_build_transformer,
        config=DistanceBiasConfig,
        help="fairseq's transformer",
    )
)
register_encoder(
    EncoderType(
        "pretrained",
        reads=(SEQUENCE,),
        build=_build_pretrained,
        config=PretrainedEncoderConfig,
        help="a pretrained encoder such as BERT, see --encoder-path",
    )
)
