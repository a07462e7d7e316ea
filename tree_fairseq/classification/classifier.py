"""The base classes of models and tasks that classify: readouts of classes, and pooling of sentences for documents."""

from dataclasses import dataclass
from typing import Any, Callable, NamedTuple, Optional

import torch
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import FairseqEncoder, FairseqEncoderModel
from fairseq.models.transformer.transformer_legacy import base_architecture
from fairseq.modules import FairseqDropout
from torch import Tensor, nn

from tree_fairseq.classification.embeddings import add_encoder_args, build_word_embeddings
from tree_fairseq.errors import InputError, MissingTreesError
from tree_fairseq.nn.extended_transformer import set_defaults, transformer_config
from tree_fairseq.support.options import option


class ClassTask:
    """A task whose models classify; comes before fairseq's own task among the bases of a class."""

    num_classes: int
    """C; 1 for numbers."""
    regression = False
    """Whether numbers are predicted."""
    labels_all_nodes = False
    """Whether the classes of nodes are trained on, too."""


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
    freeze_embeddings: bool = option(
        False, "leave the words' vectors as they are, such as those of --encoder-embed-path"
    )


@dataclass
class TreeReadoutConfig(ClassifierConfig):
    """Options of models that read trees."""

    document_root: ChoiceEnum(["first", "mean"]) = option(
        "first",
        "where a document of several sentences is read: at the root of its first sentence, or at the mean of "
        "the roots of all",
    )


class Classifier(FairseqEncoderModel):
    """An encoder and a readout of classes."""

    flags: Optional[type[ClassifierConfig]] = None
    """Of models with fairseq's flags of a transformer's encoder: the other flags."""
    config: type[FairseqDataclass]
    """All options of models without ``flags``."""

    def __init__(self, encoder: FairseqEncoder, readout: ClassReadout):
        super().__init__(encoder)
        self.readout = readout

    @classmethod
    def add_args(cls, parser):
        """Adds the flags of the dataclass, or fairseq's of encoders and ``flags``; architectures set the defaults."""
        if cls.flags is not None:
            add_encoder_args(parser)
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

    def get_normalized_probs(self, net_output: dict, log_probs: bool, sample: Optional[dict] = None) -> Tensor:
        """Returns the probabilities of the classes of each example, or their logarithms, ``[B, C]`` float32."""
        return self.get_normalized_probs_scriptable(net_output["logits"], log_probs, sample)


TRANSFORMER_SIZES = {"": None, "_tiny": (2, 64, 128, 4)}
"""The sizes of transformers that classify: fairseq's, and the paper's tiny size."""


class SequenceClassifier(Classifier):
    """A classifier that reads token sequences; subclasses choose the state that represents an example."""

    def represent(self, src_tokens: Tensor, src_lengths: Tensor, **trees: Any) -> Tensor:
        """Returns the state ``[B, D]`` that represents each example; ``trees`` are those of ``tree_inputs``."""
        raise NotImplementedError

    def forward(self, src_tokens: Tensor, src_lengths: Tensor, **trees: Any) -> dict[str, Optional[Tensor]]:
        """Scores classes of texts ``[B, N]``, padded on the right: ``logits`` ``[B, C]``, and no other logits."""
        logits = self.readout(self.represent(src_tokens, src_lengths, **trees))
        return {"logits": logits, "node_logits": None, "leaf_logits": None}


class DocumentStates(NamedTuple):
    """The output of an encoder of B documents of R sentences, with any values at padding."""

    leaves: Tensor  # R x N x D
    nodes: Tensor  # R x M x D
    roots: Tensor  # B x D, the states that represent the documents


def pool_roots(roots: Tensor, document: Tensor, document_root: str, num_documents: Optional[int] = None) -> Tensor:
    """Takes the root of the first sentence of each document (Nguyen et al. 2020), or the mean of those of all.

    Args:
        roots: ``[R, D]``, states of the sentences' roots
        document: ``[R]`` int64, the document of each sentence, ascending from 0, with every number in between
        document_root: ``first``, or ``mean``, whose sums are in single precision at least
        num_documents: B; None to look it up, for which a GPU has to be waited for

    Returns:
        ``[B, D]`` in the dtype of ``roots``
    """
    num_documents = int(document[-1]) + 1 if num_documents is None else num_documents
    if document_root == "first":
        numbers = torch.arange(num_documents, device=document.device)
        return roots.index_select(0, torch.searchsorted(document, numbers))
    if document_root != "mean":
        raise InputError(f"--document-root {document_root} is not known; give first or mean")
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

    def completion_of_trees(self) -> Optional[Callable[[dict[str, Any]], dict[str, Any]]]:
        """Returns a function that the collater calls, to add to ``sentence_trees`` what this model reads beside them.

        None if the model reads nothing else. What members of an ensemble do not share has another name in each.
        """
        return None

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
