"""What our models share that are fairseq's transformer with flags, an encoder and a decoder of their own."""

from __future__ import annotations

from typing import Optional

from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import FairseqEncoder
from fairseq.models.transformer import TransformerConfig, TransformerModelBase
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
    """One whose encoder reads trees."""

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        source_tree: Optional[dict[str, Tensor]] = None,
        previous_tree: Optional[dict[str, Tensor]] = None,
        return_all_hiddens: bool = True,
        **kwargs,
    ):
        """Scores target tokens.

        Args:
            src_tokens: ``[B, N]``
            src_lengths: ``[B]``
            prev_output_tokens: ``[B, T]``
            source_tree: what the encoder reads of the source's trees
            previous_tree: where the target is trees, that of ``prev_output_tokens``; found out where left out
            return_all_hiddens: keep every layer's states
            **kwargs: of the decoder

        Returns:
            logits ``[B, T, vocabulary]`` and the decoder's dict
        """
        encoder_out = self.encoder(
            src_tokens, src_lengths=src_lengths, return_all_hiddens=return_all_hiddens, source_tree=source_tree
        )
        if previous_tree is not None:
            encoder_out["previous_tree"] = [previous_tree]
        return self.decoder(prev_output_tokens, encoder_out=encoder_out, src_lengths=src_lengths, **kwargs)
