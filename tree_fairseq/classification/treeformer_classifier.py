"""Treeformer for classification (Patel & Flanigan 2023): phrases added to the state of an encoder's [CLS] or BOS."""

import math
from dataclasses import dataclass
from typing import Any, Optional

import torch
from fairseq.models import FairseqEncoder, register_model
from fairseq.models.transformer.transformer_legacy import base_architecture
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.classification.classifier import (
    TRANSFORMER_SIZES,
    ClassifierConfig,
    ClassReadout,
    SequenceClassifier,
    build_word_embeddings,
)
from tree_fairseq.errors import InputError
from tree_fairseq.nn.distance_bias import DistanceBiasConfig, DistanceBiasedEncoder, bias_tables, require_linear
from tree_fairseq.nn.extended_transformer import register_architectures, transformer_config
from tree_fairseq.nn.pretrained import PretrainedEncoder, encoder_folder
from tree_fairseq.nn.published import PublishedConfig, default_of, options_of, set_defaults
from tree_fairseq.nn.stock_weights import add_initial_weights, built_aside
from tree_fairseq.nn.tensors import padded_on_the_right
from tree_fairseq.support.options import flag_of, option, refuse_flags
from tree_fairseq.treeformer.chart import ChartConfig, ChartSummary


class EncoderWithBOS(DistanceBiasedEncoder):
    """fairseq's transformer encoder with BOS before each text, whose state represents the text as BERT's [CLS] does."""

    def forward(self, src_tokens: Tensor, *args: Any, **kwargs: Any) -> dict[str, list]:
        """Encodes texts ``[B, N]``, padded on the right; ``encoder_out`` is ``[N + 1, B, D]``, BOS first."""
        with_bos = functional.pad(src_tokens, (1, 0), value=self.dictionary.bos())
        return super().forward(with_bos, *args, **kwargs)

    def max_positions(self) -> int:
        """Returns the length of the longest source: BOS takes one position."""
        return super().max_positions() - 1


_SCALE = "log_scale"
_INITIAL_SCALE = 0.05
_CHART = [own.name for own in options_of(ChartConfig)]


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreeformerClassifierConfig(PublishedConfig, ClassifierConfig, ChartConfig, DistanceBiasConfig):
    """Options beside those of fairseq's encoders."""

    encoder_name: Optional[str] = option(
        None,
        "a pretrained encoder: a folder that HuggingFace's save_pretrained() wrote, or its name on the "
        "hub, such as albert-base-v2 (safetensors only). Its sizes are its own; --dropout and --attention-dropout "
        "replace its own. Without this flag, an encoder is trained from scratch",
    )
    no_chart: bool = option(False, "no phrases: the encoder's first state alone (the paper's baseline)")
    no_chart_scale: bool = option(
        False,
        "as in the paper, no learned factors, one a dimension, by which the chart's phrases are multiplied before they "
        "are added; they start at 0.05, so that the model starts close to the encoder alone",
        published=True,
    )


@register_model("treeformer_classifier")
class TreeformerClassifier(SequenceClassifier):
    """Predicts a class, or a number, from the sum of the encoder's first state and the mean of the chart's top row.

    The first state is that of a pretrained encoder's [CLS], or of BOS for an encoder trained from scratch. That token,
    the ends of sentences and their separators never enter the chart. The mean is multiplied by learned factors, one a
    dimension, which the paper does not have: their logarithms are ``log_scale``, ``[D]``. Without a chart, ``summary``
    is None.
    """

    flags = TreeformerClassifierConfig

    def __init__(
        self,
        encoder: FairseqEncoder,
        readout: ClassReadout,
        summary: Optional[ChartSummary],
        log_scale: Optional[Tensor] = None,
    ):
        super().__init__(encoder, readout)
        self.summary = summary
        self.log_scale = None if log_scale is None else nn.Parameter(log_scale)

    @classmethod
    def set_defaults(cls, args) -> None:
        """Sets sizes only without a pretrained encoder, which has its own."""
        set_defaults(args, cls.flags)
        if not args.encoder_name:
            base_architecture(args)

    @classmethod
    def build_model(cls, args, task):
        """Builds the chart, too."""
        cls.check_task(task)
        cls.set_defaults(args)
        require_linear(args, "this model")
        if args.encoder_name and bias_tables(args):
            problem = "--distance-bias is for an encoder that is trained from scratch, and --encoder-name names another"
            raise InputError(problem, hint="Leave one of them out.")
        if args.encoder_name:
            encoder: FairseqEncoder = _load_pretrained(args, task)
            width = encoder.width
        else:
            # fairseq takes options that begin with "encoder_" for those of its own encoder.
            cfg = transformer_config(args, DistanceBiasConfig)
            cfg.max_source_positions += 1  # BOS has a position of its own
            encoder = EncoderWithBOS(cfg, task.source_dictionary, build_word_embeddings(args, task.source_dictionary))
            width = cfg.encoder.embed_dim
        summary = log_scale = None
        if not args.no_chart:
            summary = built_aside(lambda: ChartSummary(width, args), args)
            if not args.no_chart_scale:
                log_scale = torch.full((width,), math.log(_INITIAL_SCALE))
        return cls(encoder, ClassReadout(width, task.num_classes, args.classifier_dropout), summary, log_scale)

    def refuse_unread_flags(self, args) -> None:
        """Raises InputError about a flag of the chart in a model without one."""
        options = [own for own in options_of(self.flags) if own.name in ("no_chart_scale", *_CHART)]
        differing = {flag_of(own.name): getattr(args, own.name) != default_of(own, args) for own in options}
        refuse_flags(differing if self.summary is None else {}, "--no-chart")

    def upgrade_state_dict(self, state_dict: dict[str, Tensor]):
        """Adds the chart to a checkpoint of the encoder alone, and factors of 1 to one from before there were any."""
        chart = {name: weight for name, weight in self.state_dict().items() if name.startswith(("summary.", _SCALE))}
        add_initial_weights(state_dict, chart)
        if _SCALE in chart and _SCALE not in state_dict:
            state_dict[_SCALE] = torch.zeros_like(chart[_SCALE])
        super().upgrade_state_dict(state_dict)

    def represent(self, src_tokens: Tensor, src_lengths: Tensor) -> Tensor:
        dictionary = self.encoder.dictionary
        tokens = padded_on_the_right(src_tokens, dictionary.pad())
        states = self.encoder(tokens, src_lengths)["encoder_out"][0]  # N + 1 x B x D
        if self.summary is None:
            return states[0]
        outside = tokens.eq(dictionary.pad()) | tokens.eq(dictionary.eos())
        phrases = self.summary(states, functional.pad(outside, (1, 0), value=True))
        return states[0] + (phrases if self.log_scale is None else phrases * self.log_scale.exp())


def _load_pretrained(args, task) -> PretrainedEncoder:
    """Loads the named encoder and writes its description to ``args``, for checkpoints."""
    description = getattr(args, "pretrained_description", None)
    folder = encoder_folder(args.encoder_name) if description is None else None
    dropout = {name: getattr(args, name, None) for name in ("dropout", "attention_dropout")}
    encoder = PretrainedEncoder.build(task.source_dictionary, folder, description, **dropout)
    args.pretrained_description = encoder.describe()
    return encoder


register_architectures("treeformer_classifier", TreeformerClassifier.set_defaults, TRANSFORMER_SIZES)
