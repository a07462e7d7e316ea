"""Classifiers that read token sequences: fairseq's transformer and its bidirectional LSTM."""

import contextlib
from dataclasses import dataclass
from functools import partial

import torch
from fairseq.models import register_model, register_model_architecture
from fairseq.models.lstm import LSTMEncoder
from torch import Tensor

from tree_fairseq.classification import classifier
from tree_fairseq.nn.distance_bias import DistanceBiasConfig, DistanceBiasedEncoder, require_linear
from tree_fairseq.nn.extended_transformer import register_architectures
from tree_fairseq.nn.published import set_defaults
from tree_fairseq.nn.tensors import has_fast_bfloat16, without_autocast
from tree_fairseq.support.options import option


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TransformerClassifierConfig(classifier.ClassifierConfig, DistanceBiasConfig):
    """Flags of the transformer in addition to those of fairseq's encoders."""


@register_model("transformer_classifier")
class TransformerClassifier(classifier.SequenceClassifier):
    """fairseq's transformer encoder, read at the mean of the states of all tokens; it may have a bias by distance."""

    flags = TransformerClassifierConfig

    @classmethod
    def build_encoder(cls, cfg, task, embeddings):
        require_linear(cfg, "this model")
        return DistanceBiasedEncoder(cfg, task.source_dictionary, embeddings), cfg.encoder.embed_dim

    def represent(self, src_tokens: Tensor, src_lengths: Tensor) -> Tensor:
        """Returns the mean state of each text, ``[B, D]``."""
        encoded = self.encoder(src_tokens, src_lengths)
        padding = encoded["encoder_padding_mask"][0]
        states = encoded["encoder_out"][0].transpose(0, 1).masked_fill(padding.unsqueeze(2), 0)  # B x N x D
        # Texts have thousands of tokens, whose sum may be beyond half precision.
        total = states.sum(1, dtype=torch.promote_types(states.dtype, torch.float32))
        return (total / (~padding).sum(1, keepdim=True)).to(states.dtype)


@dataclass
class LSTMClassifierConfig(classifier.RecurrentConfig):
    """All options of the LSTM."""

    encoder_layers: int = option(1, "number of layers")


@register_model("lstm_classifier", dataclass=LSTMClassifierConfig)
class LSTMClassifier(classifier.SequenceClassifier):
    """fairseq's bidirectional LSTM, read at the last states of both directions."""

    config = LSTMClassifierConfig

    @classmethod
    def build_encoder(cls, cfg, task, embeddings):
        sizes = cfg.encoder_embed_dim, cfg.encoder_hidden_size, cfg.encoder_layers
        options = {"bidirectional": True, "left_pad": False, "pretrained_embed": embeddings}
        encoder = LSTMEncoder(task.source_dictionary, *sizes, cfg.dropout, cfg.dropout, **options)
        return encoder, 2 * cfg.encoder_hidden_size

    def represent(self, src_tokens: Tensor, src_lengths: Tensor) -> Tensor:
        # Without AVX-512, oneDNN has no LSTM in bfloat16, but autocast asks it for one.
        is_possible = src_tokens.device.type != "cpu" or has_fast_bfloat16()
        with contextlib.nullcontext() if is_possible else without_autocast(src_tokens):
            # fairseq refuses columns that are padding in all rows.
            _, last, _, _ = self.encoder(src_tokens[:, : int(src_lengths.max())], src_lengths, enforce_sorted=False)
        return last[-1]  # of the upper layer, forward and backward: (B, 2 D)


register_architectures("transformer_classifier", TransformerClassifier.set_defaults, classifier.TRANSFORMER_SIZES)
# One layer of width 64 a direction: 67,000 weights, as in transformer_classifier_tiny, vectors apart.
register_model_architecture("lstm_classifier", "lstm_classifier_tiny")(
    partial(set_defaults, config=LSTMClassifierConfig, encoder_embed_dim=64, encoder_hidden_size=64)
)
