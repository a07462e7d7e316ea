"""Treeformer (Patel & Flanigan 2023): a transformer whose decoder attends to phrases as well as to tokens."""

from dataclasses import dataclass

from fairseq.models import register_model, register_model_architecture
from fairseq.models.transformer import TransformerConfig
from fairseq.models.transformer.transformer_legacy import base_architecture, transformer_iwslt_de_en

from tree_fairseq.errors import InputError
from tree_fairseq.models.extended_transformer import ExtendedTransformer
from tree_fairseq.models.sizes import set_defaults, set_sizes
from tree_fairseq.models.treeformer_decoder import TreeformerDecoder
from tree_fairseq.models.treeformer_encoder import TreeformerEncoder
from tree_fairseq.modules.chart import ChartConfig


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreeformerConfig(ChartConfig, TransformerConfig):
    """All options of the model."""


@register_model("treeformer")
class TreeformerModel(ExtendedTransformer):
    """fairseq's transformer with a chart between encoder and decoder. It needs no trees."""

    flags = ChartConfig
    encoder_class, decoder_class = TreeformerEncoder, TreeformerDecoder

    @classmethod
    def build_model(cls, args, task):
        """Builds the model for any task of translation.

        Raises:
            InputError: options of the chart that cannot be, or one of fairseq's transformer that has no meaning with it
        """
        treeformer(args)
        if args.cross_self_attention:
            raise InputError(
                "--cross-self-attention mixes target and source in one attention, which has no place for phrases",
                hint="Leave it out.",
            )
        return super().build_model(TreeformerConfig.from_namespace(args), task)


@register_model_architecture("treeformer", "treeformer")
def treeformer(args):
    """Sizes of fairseq's ``transformer``: 6 + 6 layers, width 512, 8 heads; phrases of up to 10 tokens."""
    set_defaults(args, ChartConfig)
    base_architecture(args)


@register_model_architecture("treeformer", "treeformer_iwslt_de_en")
def treeformer_iwslt_de_en(args):
    """The paper's model for IWSLT'14, either pair: 6 + 6 layers, width 512, feed-forward 1024, 4 heads."""
    transformer_iwslt_de_en(args)
    treeformer(args)


@register_model_architecture("treeformer", "treeformer_gigaword")
def treeformer_gigaword(args):
    """The paper's model for Gigaword: the size of that for IWSLT'14."""
    treeformer_iwslt_de_en(args)


@register_model_architecture("treeformer", "treeformer_cogs")
def treeformer_cogs(args):
    """The size of Csordás et al. (2021) for COGS: 2 + 2 layers, width 512, feed-forward 512, 4 heads."""
    set_sizes(args, 2, 512, 512, 4)
    treeformer(args)


@register_model_architecture("treeformer", "treeformer_cognition")
def treeformer_cognition(args):
    """The size in the script of CoGnition's authors: that for IWSLT'14."""
    treeformer_iwslt_de_en(args)


@register_model_architecture("treeformer", "treeformer_tiny")
def treeformer_tiny(args):
    """To try things out: 2 + 2 layers, width 64, feed-forward 128, 4 heads."""
    set_sizes(args, 2, 64, 128, 4)
    treeformer(args)
