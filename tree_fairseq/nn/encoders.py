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
from tree_fairseq.nn import modalities
from tree_fairseq.nn.distance_bias import DistanceBiasConfig, DistanceBiasedEncoder, bias_tables, require_linear
from tree_fairseq.nn.pretrained import PretrainedEncoder
from tree_fairseq.nn.shared_memory import STATES, MemoryType
from tree_fairseq.support.options import option

_PREPROCESS = {
    modalities.CONSTITUENCY: "constituency trees: preprocess with --tree-parser, and use --task tree_translation or "
    "another that reads trees",
    modalities.SYMBOLS: "symbol trees: preprocess with --source-modality tree, and use --task structural_translation",
}


def _lack_of_trees(task: Any) -> str:
    """Says that a task reads no trees of the source, and which task does if the folder has some."""
    data, lang = (getattr(getattr(task, "cfg", None), name, None) for name in ("data", "source_lang"))
    with contextlib.suppress(MissingTreesError):
        manifest = Manifest.load(data.split(":")[0]) if isinstance(data, str) else None
        if manifest is not None and not modalities.has_modalities(task):
            fitting = {"tree_translation": manifest.sides, "structural_translation": manifest.symbols}
            if names := [name for name, sides in fitting.items() if lang in sides]:
                return f"this task reads none, although {data} has them: use --task {names[0]}. In general"
    return "the source of this task has none;"


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass(frozen=True)
class EncoderType:
    """An entry of the registry."""

    name: str  # of the encoder, for flags
    # modalities of sources that it reads; sources of all modalities can be read as a ``sequence`` of tokens
    reads: tuple[str, ...]
    # makes the encoder from a model's configuration, the source's dictionary and its embeddings, and sets
    # ``cfg.encoder.embed_dim`` if the encoder's states have another width
    build: Callable[[Any, Dictionary, Optional[nn.Embedding]], FairseqEncoder]
    memory: MemoryType = STATES  # how decoders attend to its output
    # its options; each is a flag of the models that leave the choice of an encoder to the user
    config: type[FairseqDataclass] = FairseqDataclass
    # sets in the configuration what the encoder needs of the source's side, before it is built
    fill_in: Callable[[Any, modalities.Side], None] = lambda cfg, side: None
    help: str = ""  # describes it in the help of flags
    # whether it reads the lengths of sources on the host, ``source_lengths``, which are None where a batch does not
    # have them
    reads_lengths: bool = False

    @property
    def tree_inputs(self) -> tuple[str, ...]:
        """The names of the trees and lengths that it reads in ``net_input``."""
        trees = (modalities.TREE_INPUTS[modality] for modality in self.reads if modality in modalities.TREE_INPUTS)
        return (*trees, modalities.SOURCE_LENGTHS) if self.reads_lengths else tuple(trees)

    def prepare(self, cfg: Any, task) -> None:
        """Sets in the configuration what the encoder needs of a task, which has to have trees that it reads."""
        side = modalities.source_side(task)
        if modalities.SEQUENCE not in self.reads and side.modality not in self.reads:
            raise MissingTreesError(
                f"the encoder {self.name!r} reads trees, and {_lack_of_trees(task)} it needs "
                + " or ".join(_PREPROCESS[modality] for modality in self.reads)
            )
        if side.modality == modalities.CONSTITUENCY and modalities.SYMBOLS in self.reads:
            hint = "Give 'tree', which reads the parses, or 'transformer', which reads the words."
            raise InputError(f"the encoder {self.name!r} would ignore the parses of the source", hint=hint)
        if modalities.CONSTITUENCY not in self.reads:
            require_linear(cfg, f"the encoder {self.name!r}")
        self.fill_in(cfg, side)


ENCODERS: dict[str, EncoderType] = {}  # the registry, by name


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


def _build_pretrained(cfg: Any, dictionary: Dictionary, embed_tokens: Optional[nn.Embedding]) -> PretrainedEncoder:
    """Builds a pretrained encoder; the memory has its width."""
    encoder = PretrainedEncoder.build(dictionary, cfg.pretrained_folder, cfg.pretrained_description)
    cfg.encoder.embed_dim, cfg.pretrained_description = encoder.width, encoder.describe()
    return encoder


register_encoder(
    EncoderType(
        "transformer",
        reads=(modalities.SEQUENCE,),
        build=lambda cfg, *given: (DistanceBiasedEncoder if bias_tables(cfg) else TransformerEncoderBase)(cfg, *given),
        config=DistanceBiasConfig,
        help="fairseq's transformer",
    )
)
register_encoder(
    EncoderType(
        "pretrained",
        reads=(modalities.SEQUENCE,),
        build=_build_pretrained,
        config=PretrainedEncoderConfig,
        help="a pretrained encoder such as BERT, see --encoder-path",
    )
)
