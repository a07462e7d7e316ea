"""fairseq's transformer with an encoder of the registry, and the flags and defaults of such models."""

import copy
import logging
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import make_dataclass
from enum import EnumMeta
from typing import Any, Callable, Optional

from fairseq.data import Dictionary
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import register_model, register_model_architecture
from fairseq.models.transformer import TransformerConfig, TransformerModelBase
from fairseq.models.transformer.transformer_legacy import base_architecture, transformer_vaswani_wmt_en_de_big
from torch import Tensor

from tree_fairseq.errors import InputError
from tree_fairseq.nn.copying import POINTER, CopyConfig, SourcePointer, leave_tokens
from tree_fairseq.nn.distance_bias import DistanceBiasConfig, bias_tables
from tree_fairseq.nn.encoders import ENCODERS, encoder_of
from tree_fairseq.nn.modalities import SOURCE_INPUTS
from tree_fairseq.nn.published import PublishedConfig, default_of, options_of, set_defaults
from tree_fairseq.nn.shared_memory import STATES, MemoryDecoder
from tree_fairseq.nn.shared_names import SharedNames
from tree_fairseq.nn.stock_weights import add_initial_weights, built_aside
from tree_fairseq.support.options import flag_of, given_flags, option, refuse_flags

logger = logging.getLogger(__name__)


class ExtendedTransformer(TransformerModelBase):
    """fairseq's transformer with more flags, an encoder of the registry, and a decoder that attends to its memory.

    Modules that are fairseq's keep fairseq's names, so a stock transformer's checkpoint can be fine-tuned.
    ``tree_inputs`` has the names of the trees in ``net_input`` that the model reads.
    """

    flags: type[FairseqDataclass] = FairseqDataclass  # those beside fairseq's
    default_encoder = "transformer"
    own_parts: tuple[str, ...] = (".phrase_bias.",)  # of the names of weights that a stock transformer does not have
    decoder_class: type[MemoryDecoder] = MemoryDecoder
    copies = True  # whether there is a pointer for its decoder

    def __init__(self, cfg, encoder, decoder):
        super().__init__(cfg, encoder, decoder)
        self.tree_inputs = encoder_of(cfg).tree_inputs

    @classmethod
    def all_flags(cls) -> type[FairseqDataclass]:
        """Returns all flags beside those of fairseq's transformer."""
        return make_dataclass(cls.flags.__name__, [], bases=(PublishedConfig, CopyConfig, cls.flags))

    @classmethod
    def add_args(cls, parser):
        """Adds fairseq's flags and ours; architectures set the defaults."""
        for flags in (TransformerConfig, cls.all_flags()):
            gen_parser_from_dataclass(parser, flags(), delete_default=True, with_prefix="")

    @classmethod
    def set_defaults(cls, args: Namespace) -> None:
        """Sets the options that are not given."""
        set_defaults(args, cls.all_flags())
        base_architecture(args)

    @classmethod
    def fill_in(cls, cfg, args: Namespace, task) -> None:
        """Refuses options that do not fit, and sets those without a flag, also in ``args``, which checkpoints keep."""
        cfg.source_encoder = cls.default_encoder

    @classmethod
    def build_model(cls, args, task):
        """Builds the model; its encoder may need trees of the source."""
        cls.set_defaults(args)
        cfg = transformer_config(args, cls.all_flags())
        cls.fill_in(cfg, args, task)
        refused = {
            "--copy-source": cfg.copy_source and not cls.copies,
            # Its self-attention would read the memory, too.
            "--cross-self-attention": cfg.cross_self_attention and encoder_of(cfg).memory is not STATES,
        }
        refuse_flags(refused, f"--arch {getattr(args, 'arch', '')}")
        encoder_of(cfg).prepare(cfg, task)
        model = super().build_model(cfg, task)
        if cfg.copy_source:
            model.add_pointer(task.source_dictionary)
        model.decoder.trains_alignments = getattr(getattr(task, "cfg", None), "load_alignments", False)
        return model

    @classmethod
    def build_encoder(cls, cfg, src_dict, embed_tokens):
        """Builds the encoder of the configuration."""
        return encoder_of(cfg).build(cfg, src_dict, embed_tokens)

    @classmethod
    def build_decoder(cls, cfg, tgt_dict, embed_tokens):
        """Builds the decoder over the encoder's memory."""
        return cls.decoder_class(
            cfg, tgt_dict, embed_tokens, no_encoder_attn=cfg.no_cross_attention, memory_type=encoder_of(cfg).memory
        )

    def add_pointer(self, source: Dictionary) -> None:
        """Lets the decoder copy words of the source, whose dictionary is given."""
        cfg, decoder = self.cfg, self.decoder
        refuse_flags(given_flags(cfg, "adaptive_softmax_cutoff", "no_cross_attention"), "--copy-source")
        embed_dim = decoder.embed_tokens.embedding_dim if isinstance(decoder, MemoryDecoder) else 0
        names = SharedNames(source, decoder.dictionary)
        logger.info("[copying] %d texts of the source are also texts of the target", int(names.of_source.max()))
        decoder.pointer = built_aside(lambda: SourcePointer(cfg, decoder.memory_type, names, embed_dim))
        leave_tokens(self.encoder)

    def upgrade_state_dict(self, state_dict: dict[str, Tensor]):
        """Adds the initial weights of parts of our own to a checkpoint without them, and logs their names."""
        own = self.state_dict()
        pointer = {name: weight for name, weight in own.items() if name.startswith(POINTER)}
        add_initial_weights(state_dict, pointer)
        for part in self.own_parts:
            add_initial_weights(state_dict, {name: own[name] for name in own if part in name and name not in pointer})
        super().upgrade_state_dict(state_dict)

    def read(self, src_tokens: Tensor, src_lengths: Tensor, **options: Any) -> dict[str, list]:
        """Encodes sources ``[B, N]``; trees that the encoder does not read may be among its options."""
        unread = set(SOURCE_INPUTS).difference(self.tree_inputs)
        read = {name: value for name, value in options.items() if name not in unread}
        return self.encoder(src_tokens, src_lengths=src_lengths, **read)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        previous_symbol_tree: Optional[dict[str, Tensor]] = None,
        return_all_hiddens: bool = True,
        **kwargs,
    ):
        """Scores target tokens: logits ``[B, T, V]`` and the decoder's dict.

        ``previous_symbol_tree`` has parents and branches of ``prev_output_tokens``, ``[B, T]``; None for sequences, or
        to compute them. ``kwargs`` are trees of the source (:data:`tree_fairseq.nn.modalities.SOURCE_INPUTS`), and
        options of the decoder.
        """
        trees = {name: kwargs.pop(name) for name in SOURCE_INPUTS if name in kwargs}
        encoder_out = self.read(src_tokens, src_lengths, return_all_hiddens=return_all_hiddens, **trees)
        if previous_symbol_tree is not None:
            encoder_out["previous_symbol_tree"] = [previous_symbol_tree]
        return self.decoder(prev_output_tokens, encoder_out=encoder_out, src_lengths=src_lengths, **kwargs)


class EncoderChoiceTransformer(ExtendedTransformer):
    """A transformer whose encoder the user chooses. It has the flags of all encoders."""

    encoder_option = "source_encoder"

    @classmethod
    def all_flags(cls) -> type[FairseqDataclass]:
        """Returns the model's flags, the choice of the encoder and the encoders' flags."""
        what = "; ".join(f"{name}: {encoder.help}" for name, encoder in ENCODERS.items())
        choice = option(cls.default_encoder, f"encoder of the source ({what})")
        options = {cls.encoder_option: (cls.encoder_option, ChoiceEnum(list(ENCODERS)), choice)}
        for config in (PublishedConfig, CopyConfig, cls.flags, *(encoder.config for encoder in ENCODERS.values())):
            for own in options_of(config):
                options.setdefault(own.name, (own.name, own.type, copy.copy(own)))
        return make_dataclass(cls.flags.__name__, options.values(), bases=(FairseqDataclass,))

    @classmethod
    def fill_in(cls, cfg, args: Namespace, task) -> None:
        """Fills in the encoder."""
        cfg.source_encoder = str(getattr(args, cls.encoder_option))
        cfg.pretrained_folder = getattr(args, "encoder_path", None)
        # fairseq moves options that begin with "encoder_", so `refuse_unread_flags` does not see this one.
        is_unread = cfg.pretrained_folder is not None and cfg.source_encoder != "pretrained"
        refuse_flags({"--encoder-path": is_unread}, f"{flag_of(cls.encoder_option)} {cfg.source_encoder}")
        cfg.pretrained_description = getattr(args, "pretrained_description", None)

    @classmethod
    def build_model(cls, args, task):
        """Builds the model, and leaves in ``args``, which checkpoints keep, the description of a pretrained encoder."""
        model = super().build_model(args, task)
        args.pretrained_description = model.cfg.pretrained_description
        return model

    def refuse_unread_flags(self, args) -> None:
        """Raises InputError about a flag that only another encoder reads."""
        cfg = self.cfg
        read = {field.name for config in (self.flags, encoder_of(cfg).config) for field in options_of(config)}
        others = {field.name: field for encoder in ENCODERS.values() for field in options_of(encoder.config)}
        differing = (name for name, own in others.items() if str(getattr(cfg, name)) != str(default_of(own, cfg)))
        unread = {flag_of(name): True for name in differing if name not in read}
        refuse_flags(unread, f"{flag_of(self.encoder_option)} {cfg.source_encoder}")


def transformer_config(args: Namespace, flags: type[FairseqDataclass]) -> TransformerConfig:
    """Returns the options of fairseq's transformer and of ``flags``; ``args`` come from hydra or a command line.

    Raises InputError about a value that is none of the choices: hydra and checkpoints may have any.
    """
    for own in options_of(flags):
        value = getattr(args, own.name, None)
        if isinstance(own.type, EnumMeta) and value is not None and str(value) not in map(str, own.type):
            hint = f"Give one of {', '.join(map(str, own.type))}, or the --user-dir that registers it."
            raise InputError(f"{flag_of(own.name)} cannot be {value}", hint=hint)
    # From hydra, fairseq copies only the fields of the class.
    return make_dataclass("ModelConfig", [], bases=(flags, TransformerConfig)).from_namespace(args)


def set_sizes(
    args: Namespace, layers: int, width: int, feed_forward: int, heads: int, decoder_layers: Optional[int] = None
) -> None:
    """Sets the sizes of encoder and decoder alike; the decoder may have another number of layers."""
    args.decoder_layers = getattr(args, "decoder_layers", decoder_layers or layers)
    sizes = {"layers": layers, "embed_dim": width, "ffn_embed_dim": feed_forward, "attention_heads": heads}
    for name, size in sizes.items():
        for side in ("encoder", "decoder"):
            setattr(args, f"{side}_{name}", getattr(args, f"{side}_{name}", size))


def register_architectures(
    model: str, defaults: Callable[[Namespace], None], sizes: Mapping[str, Optional[tuple[int, ...]]]
) -> None:
    """Registers architectures, whose names begin with that of the model; ``defaults`` sets options that are not set.

    ``sizes`` are, by the rest of the name, arguments of :func:`set_sizes`, or None for those that ``defaults`` sets.
    """
    for suffix, size in sizes.items():

        def architecture(args: Namespace, size=size) -> None:
            if size is not None:
                set_sizes(args, *size)
            defaults(args)

        register_model_architecture(model, model + suffix)(architecture)


@register_model("source_encoder_transformer")
class SourceEncoderTransformer(EncoderChoiceTransformer):
    """fairseq's transformer decoder over any encoder: ``--source-encoder``."""


# The sizes of fairseq's architectures of these names, and one for first trials.
register_architectures(
    "source_encoder_transformer",
    SourceEncoderTransformer.set_defaults,
    {"": None, "_iwslt_de_en": (6, 512, 1024, 4), "_tiny": (2, 64, 128, 4)},
)


@register_model("transformer_distance_bias")
class DistanceBiasTransformer(ExtendedTransformer):
    """fairseq's transformer whose encoder has a bias by distance; ``linear`` unless another one is given.

    It is the baseline of tree models with such a bias, which may be better than a stock transformer because of the bias
    alone.
    """

    flags = DistanceBiasConfig

    @classmethod
    def set_defaults(cls, args: Namespace) -> None:
        """Sets the options that are not given."""
        args.distance_bias = getattr(args, "distance_bias", "linear")
        super().set_defaults(args)

    @classmethod
    def fill_in(cls, cfg, args: Namespace, task) -> None:
        """Refuses a model without the bias, which would be the stock transformer under another name."""
        super().fill_in(cfg, args, task)
        if not bias_tables(cfg):
            raise InputError(
                f"--arch {args.arch} without --distance-bias is fairseq's transformer", hint="Use --arch transformer."
            )


# fairseq's sizes: its base model, also for WMT; that for IWSLT; one for first trials; and the big one for WMT.
register_architectures(
    "transformer_distance_bias",
    DistanceBiasTransformer.set_defaults,
    {"": None, "_iwslt_de_en": (6, 512, 1024, 4), "_wmt_en_de": None, "_tiny": (2, 64, 128, 4)},
)
register_architectures("transformer_distance_bias", transformer_vaswani_wmt_en_de_big, {"_wmt_en_de_big": None})
