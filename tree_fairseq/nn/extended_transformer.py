"""What our models share that are fairseq's transformer with flags, an encoder and a decoder of their own."""

import copy
import dataclasses
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import fields, make_dataclass
from typing import Optional

from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import FairseqEncoder
from fairseq.models.transformer import TransformerConfig, TransformerModelBase
from fairseq.models.transformer.transformer_config import EncDecBaseConfig
from torch import Tensor


class ExtendedTransformer(TransformerModelBase):
    """fairseq's transformer. Subclasses say which flags they add, and may name the classes of encoder and decoder.

    Modules that are fairseq's keep fairseq's names, so a stock transformer's checkpoint can be fine-tuned.
    """

    flags: type[FairseqDataclass]
    """Flags beside those of fairseq's transformer."""
    encoder_class: type[FairseqEncoder]
    decoder_class: type

    @classmethod
    def add_args(cls, parser):
        """Adds fairseq's flags and ours; architectures set the defaults."""
        for flags in (TransformerConfig, cls.flags):
            gen_parser_from_dataclass(parser, flags(), delete_default=True, with_prefix="")

    @classmethod
    def build_encoder(cls, cfg, src_dict, embed_tokens):
        """The encoder."""
        return cls.encoder_class(cfg, src_dict, embed_tokens)

    @classmethod
    def build_decoder(cls, cfg, tgt_dict, embed_tokens):
        """The decoder."""
        return cls.decoder_class(cfg, tgt_dict, embed_tokens, no_encoder_attn=cfg.no_cross_attention)


class TreeReadingTransformer(ExtendedTransformer):
    """A transformer whose encoder reads trees."""

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        previous_symbol_tree: Optional[dict[str, Tensor]] = None,
        return_all_hiddens: bool = True,
        source_spans: Optional[dict[str, Tensor]] = None,
        source_symbol_tree: Optional[dict[str, Tensor]] = None,
        **kwargs,
    ):
        """Scores target tokens.

        Args:
            src_tokens: ``[B, N]``
            src_lengths: ``[B]``
            prev_output_tokens: ``[B, T]``
            previous_symbol_tree: where the target is symbol trees, parents and branches of ``prev_output_tokens``; found out
                where left out
            return_all_hiddens: keep every layer's states
            source_spans: constituency trees of the source
            source_symbol_tree: where the source is symbol trees, parents and branches of ``src_tokens``
            **kwargs: of the decoder

        Returns:
            logits ``[B, T, V]`` and the decoder's dict
        """
        trees = {"source_spans": source_spans, "source_symbol_tree": source_symbol_tree}
        encoder_out = self.encoder(
            src_tokens,
            src_lengths=src_lengths,
            return_all_hiddens=return_all_hiddens,
            **{name: tree for name, tree in trees.items() if tree is not None},
        )
        if previous_symbol_tree is not None:
            encoder_out["previous_symbol_tree"] = [previous_symbol_tree]
        return self.decoder(prev_output_tokens, encoder_out=encoder_out, src_lengths=src_lengths, **kwargs)


# FROM models/encoder_options: fairseq's options of a transformer, less those of a decoder.

_SIZES = (
    "embed_path",
    "embed_dim",
    "ffn_embed_dim",
    "layers",
    "attention_heads",
    "normalize_before",
    "learned_pos",
    "layerdrop",
)
_OPTIONS = (
    "activation_fn",
    "dropout",
    "attention_dropout",
    "activation_dropout",
    "no_token_positional_embeddings",
    "no_scale_embedding",
    "layernorm_embedding",
    "checkpoint_activations",
    "offload_activations",
)


def add_encoder_args(parser: ArgumentParser) -> None:
    """Adds the flags by which fairseq's transformers describe their encoder; architectures set the defaults."""
    add_fields(parser, EncDecBaseConfig, _SIZES, "--encoder")
    add_fields(parser, TransformerConfig, _OPTIONS)


def add_fields(parser: ArgumentParser, config: type, names: Sequence[str], prefix: str = "") -> None:
    """Adds the flags of some fields of a dataclass."""
    kept = [(field.name, field.type, copy.copy(field)) for field in fields(config) if field.name in names]
    gen_parser_from_dataclass(
        parser,
        make_dataclass(config.__name__, kept, bases=(FairseqDataclass,))(),
        delete_default=True,
        with_prefix=prefix,
    )


# FROM models/sizes: Defaults that architectures set where nothing is given.


def set_sizes(args: Namespace, layers: int, width: int, feed_forward: int, heads: int) -> None:
    """Sets the sizes of encoder and decoder alike."""
    sizes = {"layers": layers, "embed_dim": width, "ffn_embed_dim": feed_forward, "attention_heads": heads}
    for name, size in sizes.items():
        for side in ("encoder", "decoder"):
            setattr(args, f"{side}_{name}", getattr(args, f"{side}_{name}", size))


def set_defaults(args: Namespace, config: type) -> None:
    """Sets the options of a dataclass: checkpoints keep them, so that other defaults of later versions leave them alone."""
    for option in dataclasses.fields(config):
        if not option.name.startswith("_"):
            setattr(args, option.name, getattr(args, option.name, option.default))
