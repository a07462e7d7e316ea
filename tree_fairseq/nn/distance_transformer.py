"""fairseq's transformer with a bias by distance in its encoder, the baseline of tree models with such a bias.

A tree model with a bias may be better than a stock transformer because of the bias alone. This model has the bias, by
distance along the sentence or in the tree, and nothing else that the stock model does not have.
"""

from argparse import Namespace

from fairseq.models import register_model
from fairseq.models.transformer.transformer_legacy import transformer_vaswani_wmt_en_de_big

from tree_fairseq.errors import InputError
from tree_fairseq.nn.distance_bias import DistanceBiasConfig, bias_tables
from tree_fairseq.nn.extended_transformer import ExtendedTransformer, register_architectures


@register_model("transformer_distance_bias")
class DistanceBiasTransformer(ExtendedTransformer):
    """fairseq's transformer whose encoder has a bias by distance; ``linear`` unless another one is given."""

    flags = DistanceBiasConfig
    default_encoder = "transformer"

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
                f"--arch {args.arch} without a bias is fairseq's transformer", hint="Use --arch transformer."
            )


# fairseq's sizes: its base model, also for WMT; that for IWSLT; one for first trials; and the big one for WMT.
register_architectures(
    "transformer_distance_bias",
    DistanceBiasTransformer.set_defaults,
    {"": None, "_iwslt_de_en": (6, 512, 1024, 4), "_wmt_en_de": None, "_tiny": (2, 64, 128, 4)},
)
register_architectures("transformer_distance_bias", transformer_vaswani_wmt_en_de_big, {"_wmt_en_de_big": None})
