"""The base classes of models and tasks that classify: word vectors, readouts, documents' roots, predicted classes."""

import copy
import math
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass, fields, make_dataclass
from typing import Any, Callable, NamedTuple, Optional, Union

import torch
from fairseq.data import Dictionary
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import FairseqEncoder, FairseqEncoderModel
from fairseq.models.transformer import TransformerConfig, TransformerModelBase
from fairseq.models.transformer.transformer_config import EncDecBaseConfig
from fairseq.models.transformer.transformer_legacy import base_architecture
from fairseq.modules import FairseqDropout
from torch import Tensor, nn

from tree_fairseq.errors import InputError, MissingTreesError
from tree_fairseq.nn.extended_transformer import transformer_config
from tree_fairseq.nn.published import set_defaults
from tree_fairseq.nn.tensors import mean_log_probs
from tree_fairseq.support.options import option


class ClassTask:
    """A task whose models classify; comes before fairseq's own task among the bases of a class."""

    num_classes: int  # C; 1 for numbers
    regression = False  # whether numbers are predicted
    labels_all_nodes = False  # whether the classes of nodes are trained on, too


class ClassReadout(nn.Module):
    """Dropout and a linear layer, the same for roots, nodes and leaves."""

    def __init__(self, dim: int, num_classes: int, dropout: float):
        super().__init__()
        self.dropout = FairseqDropout(dropout, module_name=type(self).__name__)
        self.linear = nn.Linear(dim, num_classes)
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, states: Tensor) -> Tensor:
        """Scores the classes for states ``[..., D]``: ``[..., C]``."""
        return self.linear(self.dropout(states))


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class ClassifierConfig(FairseqDataclass):
    """Options of all models that classify."""

    classifier_dropout: float = option(0.1, "dropout of the states that classes are read from")


@dataclass
class TreeReadoutConfig(ClassifierConfig):
    """Options of models that read trees."""

    document_root: ChoiceEnum(["first", "mean"]) = option(
        "first",
        "where a document of several sentences is read: at the root of its first sentence, as in the code of the "
        "Tree-Transformer's authors, or at the mean of the roots of all",
        published="first",
    )


@dataclass
class RecurrentConfig(ClassifierConfig):
    """Options of LSTMs along the text and in trees."""

    encoder_embed_dim: int = option(512, "width of the vectors of words and labels")
    encoder_embed_path: Optional[str] = option(None, "path to pre-trained vectors of words")
    encoder_hidden_size: int = option(512, "width of the states, of each direction or of nodes")
    dropout: float = option(0.1, "dropout of the vectors of words and labels, and between layers")


_SIZES = "embed_path embed_dim ffn_embed_dim layers attention_heads normalize_before learned_pos layerdrop".split()
_OPTIONS = (
    "activation_fn dropout attention_dropout activation_dropout no_token_positional_embeddings no_scale_embedding "
    "layernorm_embedding checkpoint_activations offload_activations"
).split()


def _add_fields(parser: ArgumentParser, config: type, names: Sequence[str], prefix: str = "") -> None:
    kept = [(own.name, own.type, copy.copy(own)) for own in fields(config) if own.name in names]
    flags = make_dataclass(config.__name__, kept, bases=(FairseqDataclass,))
    gen_parser_from_dataclass(parser, flags(), delete_default=True, with_prefix=prefix)


def build_word_embeddings(cfg, dictionary: Dictionary) -> nn.Embedding:
    """Makes the vectors ``[V, encoder_embed_dim]`` of words as fairseq's transformer does.

    Those of the file ``encoder_embed_path`` replace random ones.
    """
    return TransformerModelBase.build_embedding(cfg, dictionary, cfg.encoder_embed_dim, cfg.encoder_embed_path)


class Classifier(FairseqEncoderModel):
    """An encoder and a readout of classes."""

    flags: Optional[type[ClassifierConfig]] = None
    """The flags beside fairseq's of a transformer's encoder, for models that have those; None for others."""
    config: type[FairseqDataclass]  # all options of models without ``flags``

    def __init__(self, encoder: FairseqEncoder, readout: ClassReadout):
        super().__init__(encoder)
        self.readout = readout

    @classmethod
    def add_args(cls, parser):
        """Adds the flags of the dataclass, or fairseq's of encoders and ``flags``; architectures set the defaults."""
        if cls.flags is not None:
            _add_fields(parser, EncDecBaseConfig, _SIZES, "--encoder")
            _add_fields(parser, TransformerConfig, _OPTIONS)
            gen_parser_from_dataclass(parser, cls.flags(), delete_default=True, with_prefix="")
        else:
            super().add_args(parser)

    @classmethod
    def set_defaults(cls, args) -> None:
        """Sets the sizes of fairseq's transformer and ``flags`` where they are not given."""
        base_architecture(args)
        set_defaults(args, cls.flags)

    @classmethod
    def build_model(cls, args, task):
        """Builds the model for a :class:`ClassTask`, which has a ``label_dictionary`` if the model reads trees."""
        cls.check_task(task)
        if cls.flags is None:
            cfg = cls.config.from_namespace(args)
        else:
            cls.set_defaults(args)
            cfg = transformer_config(args, cls.flags)
        encoder, width = cls.build_encoder(cfg, task, build_word_embeddings(cfg, task.source_dictionary))
        return cls(encoder, ClassReadout(width, task.num_classes, cfg.classifier_dropout))

    @classmethod
    def check_task(cls, task) -> None:
        """Raises InputError unless the task is one of classification."""
        if not isinstance(task, ClassTask):
            tasks = "--task tree_classification, or tree_sentence_classification"
            raise InputError(f"a {cls.__name__} classifies; use {tasks}")

    @classmethod
    def build_encoder(cls, cfg, task, embeddings: nn.Embedding) -> tuple[FairseqEncoder, int]:
        """Builds the encoder over the vectors of words, and returns it with the width of its states."""
        raise NotImplementedError


TRANSFORMER_SIZES = {"": None, "_tiny": (2, 64, 128, 4)}
"""The sizes of transformers that classify: fairseq's, and the paper's tiny size."""


class SequenceClassifier(Classifier):
    """A classifier that reads token sequences; subclasses choose the state that represents an example."""

    def represent(self, src_tokens: Tensor, src_lengths: Tensor) -> Tensor:
        """Returns the state ``[B, D]`` that represents each example."""
        raise NotImplementedError

    def forward(self, src_tokens: Tensor, src_lengths: Tensor) -> dict[str, Optional[Tensor]]:
        """Scores classes of texts ``[B, N]``, padded on the right: ``logits`` ``[B, C]``, and no other logits."""
        logits = self.readout(self.represent(src_tokens, src_lengths))
        return {"logits": logits, "node_logits": None, "leaf_logits": None}


class DocumentStates(NamedTuple):
    """The output of an encoder of B documents of R sentences, with any values at padding."""

    leaves: Tensor  # R x N x D
    nodes: Tensor  # R x M x D
    roots: Tensor  # B x D, the states that represent the documents


def pool_roots(roots: Tensor, document: Tensor, num_documents: int, document_root: str) -> Tensor:
    """Takes the root of the first sentence of each document, or the mean of the roots of all.

    Args:
        roots: ``[R, D]``, states of the sentences' roots
        document: ``[R]`` int64, the document of each sentence, ascending from 0, with every number in between
        num_documents: B
        document_root: ``first``, as in the code of Nguyen et al. (2020), whose paper does not say where a document is
            read; or ``mean``, whose sums are in single precision at least

    Returns:
        ``[B, D]`` in the dtype of ``roots``
    """
    if document_root == "first":
        numbers = torch.arange(num_documents, device=document.device)
        return roots.index_select(0, torch.searchsorted(document, numbers))
    exact = roots.to(torch.promote_types(roots.dtype, torch.float32))
    sums = exact.new_zeros(num_documents, roots.size(1)).index_add(0, document, exact)
    counts = exact.new_zeros(num_documents).index_add(0, document, torch.ones_like(exact[:, 0]))
    return (sums / counts.unsqueeze(1)).to(roots.dtype)


class TreeClassifier(Classifier):
    """A classifier that reads trees: the root of a document represents it, and all of its nodes and leaves have states.

    The encoder maps ``sentence_trees`` (:func:`tree_fairseq.classification.dataset.collate_sentences`) to
    :class:`DocumentStates`.
    """

    tree_inputs = ("sentence_trees",)
    complete_trees: Optional[Callable[[dict[str, Any], int], dict[str, Any]]] = None
    """Adds to ``sentence_trees``, given the symbol of padding, what the model reads beside them, in the collater."""

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        sentence_trees: Optional[dict[str, Tensor]] = None,
        node_logits: bool = False,
    ) -> dict[str, Optional[Tensor]]:
        """Scores classes of B documents of R sentences; tokens and lengths are not read.

        Returns:
            ``logits`` ``[B, C]`` of the documents; ``node_logits`` ``[R, M, C]`` and ``leaf_logits`` ``[R, N, C]`` of
            the sentences, any values at padding, or None if they are not asked for
        """
        if sentence_trees is None:
            raise MissingTreesError("this model reads trees, but the batch has none; use --task tree_classification")
        states = self.encoder(sentence_trees)
        return {
            "logits": self.readout(states.roots),
            "node_logits": self.readout(states.nodes) if node_logits else None,
            "leaf_logits": self.readout(states.leaves) if node_logits else None,
        }


class Predictor:
    """Takes the place of fairseq's generators; subclasses predict what the hypotheses hold."""

    def __init__(self, dictionary: Dictionary):
        self.dictionary = dictionary
        self.symbols_to_strip_from_output = {dictionary.eos()}

    def generate(self, models: Sequence[nn.Module], sample: dict, **kwargs) -> list[list[dict]]:
        """Returns hypotheses as fairseq's generators do; prefixes and constraints are not read."""
        for model in models:
            model.eval()
        with torch.no_grad():
            return self.predict(models, sample["net_input"])

    def predict(self, models: Sequence[nn.Module], net_input: dict) -> list[list[dict]]:
        raise NotImplementedError


class ClassPredictor(Predictor):
    """Makes every class a hypothesis, the most probable first.

    The probabilities of an ensemble are the mean of those of its members.
    """

    def predict(self, models: Sequence[nn.Module], net_input: dict) -> list[list[dict]]:
        """Returns all classes for each example: ``tokens`` are the class and EOS, ``score`` is its log probability."""
        log_probs = mean_log_probs([model(**net_input)["logits"] for model in models])  # B x C
        ranked = log_probs.sort(dim=1, descending=True, stable=True)
        tokens = ranked.indices + self.dictionary.nspecial
        return [
            [hypothesis([token, self.dictionary.eos()], score) for token, score in zip(row, scores)]
            for row, scores in zip(tokens.tolist(), ranked.values.tolist())
        ]


def hypothesis(tokens: Union[Sequence[int], Tensor], score: float) -> dict:
    """Returns a hypothesis of fairseq, whose first token has the whole score."""
    tokens = torch.as_tensor(tokens)
    scores = torch.zeros(len(tokens))
    scores[0] = score
    return {"tokens": tokens, "score": score, "positional_scores": scores, "attention": None, "alignment": []}


def class_probabilities(ranked: Sequence[dict], dictionary: Dictionary) -> dict[str, float]:
    """Returns the probability of each class, by its name, in the order of the hypotheses."""
    return {dictionary[int(hypothesis["tokens"][0])]: math.exp(hypothesis["score"]) for hypothesis in ranked}
