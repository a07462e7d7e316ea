"""The base classes of all models that classify: the readout of classes, and pooling of sentences for documents."""

from dataclasses import dataclass, field
from typing import NamedTuple, Optional

import torch
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import FairseqEncoder, FairseqEncoderModel
from fairseq.modules import FairseqDropout
from torch import Tensor, nn

from tree_fairseq.errors import InputError, MissingTreesError


class ClassReadout(nn.Module):
    """Dropout and a linear layer, the same for roots, nodes and leaves.

    Args:
        dim: width D of the states
        num_classes: C
        dropout: of the states
    """

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

    classifier_dropout: float = field(
        default=0.1, metadata={"help": "dropout of the states that classes are read from"}
    )
    freeze_embeddings: bool = field(
        default=False, metadata={"help": "leave the words' vectors as they are, such as those of --encoder-embed-path"}
    )


@dataclass
class TreeReadoutConfig(ClassifierConfig):
    """Options of models that read trees."""

    document_root: ChoiceEnum(["first", "mean", "super"]) = field(
        default="first",
        metadata={
            "help": "where a document of several sentences is read: at the root of its first sentence, at the mean of "
            "the roots of all, or at a node above all roots"
        },
    )


class Classifier(FairseqEncoderModel):
    """An encoder and a readout of classes.

    Args:
        encoder: of the texts
        readout: of its states
    """

    def __init__(self, encoder: FairseqEncoder, readout: ClassReadout):
        super().__init__(encoder)
        self.readout = readout

    @classmethod
    def build_model(cls, args, task):
        """Builds the model for a task with ``num_classes`` and, if the model reads trees, ``label_dictionary``.

        Raises:
            InputError: the task has no classes
        """
        cls.check_task(task)
        encoder, width = cls.build_encoder(args, task)
        dropout = ClassifierConfig.from_namespace(args).classifier_dropout
        return cls(encoder, ClassReadout(width, task.num_classes, dropout))

    @classmethod
    def build_encoder(cls, args, task) -> tuple[FairseqEncoder, int]:
        """Builds the encoder and returns it with the width of its states; ``args`` gets the model's defaults."""
        raise NotImplementedError

    @classmethod
    def check_task(cls, task) -> None:
        """Makes sure that a task has classes."""
        if not hasattr(task, "num_classes"):
            raise InputError(
                f"a {cls.__name__} classifies; use --task tree_classification, or tree_sentence_classification"
            )

    def get_normalized_probs(self, net_output: dict, log_probs: bool, sample: Optional[dict] = None) -> Tensor:
        """Returns the probabilities of the classes of each example, or their logarithms, ``[B, C]`` float32."""
        return self.get_normalized_probs_scriptable(net_output["logits"], log_probs, sample)


class SequenceClassifier(Classifier):
    """A classifier that reads token sequences; subclasses choose the state that represents an example."""

    def represent(self, src_tokens: Tensor, src_lengths: Tensor) -> Tensor:
        """Returns the state ``[B, D]`` that represents each example."""
        raise NotImplementedError

    def forward(self, src_tokens: Tensor, src_lengths: Tensor) -> dict[str, Optional[Tensor]]:
        """Scores classes.

        Args:
            src_tokens: ``[B, N]``, padded on the right and without EOS
            src_lengths: ``[B]``

        Returns:
            ``logits`` ``[B, C]``; ``node_logits`` and ``leaf_logits``, which are None
        """
        logits = self.readout(self.represent(src_tokens, src_lengths))
        return {"logits": logits, "node_logits": None, "leaf_logits": None}


class DocumentStates(NamedTuple):
    """The output of an encoder of B documents of R sentences.

    Attributes:
        leaves: ``[R, N, D]``, any values at padding
        nodes: ``[R, M, D]``, any values at padding
        roots: ``[B, D]``, the states that represent the documents
    """

    leaves: Tensor
    nodes: Tensor
    roots: Tensor


def first_roots(roots: Tensor, document: Tensor) -> Tensor:
    """Takes the root of the first sentence of each document (Nguyen et al. 2020).

    Args:
        roots: ``[R, D]``, states of the sentences' roots
        document: ``[R]`` int64, the document of each sentence, ascending from 0, with every number in between

    Returns:
        ``[B, D]``
    """
    return roots[document.diff(prepend=document.new_tensor([-1])) > 0]


def mean_roots(roots: Tensor, document: Tensor) -> Tensor:
    """Computes the mean over the roots of all sentences of each document; sums are in single precision at least.

    Args:
        roots, document: as for :func:`first_roots`

    Returns:
        ``[B, D]`` in the dtype of ``roots``
    """
    counts = document.bincount()
    exact = roots.to(torch.promote_types(roots.dtype, torch.float32))
    sums = exact.new_zeros(len(counts), roots.size(1)).index_add(0, document, exact)
    return (sums / counts.unsqueeze(1)).to(roots.dtype)


POOLING = {"first": first_roots, "mean": mean_roots}
"""How the roots of sentences are pooled where documents have no super-root, by the value of ``--document-root``."""


class TreeClassifier(Classifier):
    """A classifier that reads trees: the root of a document represents it, and all of its nodes and leaves have states.

    Args:
        encoder: maps ``sentence_trees`` to :class:`DocumentStates`
        readout: of its states
    """

    tree_inputs = ("sentence_trees",)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        sentence_trees: Optional[dict[str, Tensor]] = None,
        node_logits: bool = False,
    ) -> dict[str, Optional[Tensor]]:
        """Scores classes of B documents of R sentences.

        Args:
            src_tokens: ``[B, N]``, unread
            src_lengths: ``[B]``, unread
            sentence_trees: from :func:`tree_fairseq.classification.sentence_trees.collate_sentences`
            node_logits: whether to score nodes and leaves, too

        Returns:
            ``logits`` ``[B, C]`` of the documents; ``node_logits`` ``[R, M, C]`` and ``leaf_logits`` ``[R, N, C]`` of
            the sentences, any values at padding, or None

        Raises:
            MissingTreesError: the batch has no trees
        """
        if sentence_trees is None:
            raise MissingTreesError("this model reads trees, but the batch has none; use --task tree_classification")
        states = self.encoder(sentence_trees)
        return {
            "logits": self.readout(states.roots),
            "node_logits": self.readout(states.nodes) if node_logits else None,
            "leaf_logits": self.readout(states.leaves) if node_logits else None,
        }
