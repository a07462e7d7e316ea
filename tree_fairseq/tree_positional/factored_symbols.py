"""Embeddings of symbols as the sum of one for the label and one for the arity: ``--factored-symbols``.

A symbol such as ``sleep^2`` is a unit of a dictionary, so a model that has only seen ``sleep^1`` knows nothing of it.
With factors, both share the vector of their label, and ``^2`` has a vector that all labels share. In a joined
dictionary a word of the source and a label that is spelled alike share their vector, too, so that names can be copied.
The output layer has the same factors, so the probability of a symbol is that of its label times that of its arity:

.. math:: p(\\ell, a \\mid h) \\propto \\exp(h \\cdot (u_\\ell + v_a))
"""

from __future__ import annotations

import torch
from fairseq.data import Dictionary
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.errors import ArityMismatchError
from tree_fairseq.trees.symbols import NULL, UNKNOWN_LABEL, SymbolEncoding


class FactoredEmbedding(nn.Module):
    """Vectors of symbols, ``[V, D]``, from vectors of labels and of arities.

    What has no arity (words, EOS, padding) has a vector of its own. So does the unknown symbol of each arity.

    Args:
        dictionary: V symbols
        encoding: how symbols are written
        width: D
    """

    def __init__(self, dictionary: Dictionary, encoding: SymbolEncoding, width: int):
        super().__init__()
        labels, arities = factors(dictionary, encoding)
        numbers: dict[str, int] = {}
        label_of = [numbers.setdefault(label, len(numbers)) for label in labels]
        self.num_embeddings, self.embedding_dim, self.padding_idx = len(dictionary), width, dictionary.pad()
        self.embed_labels = nn.Embedding(len(numbers), width, padding_idx=label_of[self.padding_idx])
        self.embed_arities = nn.Embedding(max(arities) + 1, width)
        for table in (self.embed_labels, self.embed_arities):
            nn.init.normal_(table.weight, mean=0, std=width**-0.5)
        nn.init.zeros_(self.embed_labels.weight[self.embed_labels.padding_idx])
        self.register_buffer("label_of", torch.tensor(label_of), persistent=False)
        self.register_buffer("arity_of", torch.tensor(arities) + 1, persistent=False)

    @property
    def weight(self) -> Tensor:
        """The vectors of all symbols, ``[V, D]``."""
        return self.embed_labels.weight[self.label_of] + self._arities()[self.arity_of]

    def forward(self, ids: Tensor) -> Tensor:
        """Returns the vectors of ids ``[...]``, as ``[..., D]``."""
        return self.embed_labels(self.label_of[ids]) + self._arities()[self.arity_of[ids]]

    def _arities(self) -> Tensor:
        """The vectors of arities after one of zeros, which is for what has no arity."""
        return functional.pad(self.embed_arities.weight, (0, 0, 1, 0))


class FactoredOutput(nn.Module):
    """The output layer that shares a :class:`FactoredEmbedding`: features ``[..., D]`` to logits ``[..., V]``."""

    def __init__(self, embedding: FactoredEmbedding):
        super().__init__()
        self.embedding = embedding

    def forward(self, features: Tensor) -> Tensor:
        """Computes the logits."""
        return functional.linear(features, self.embedding.weight)


def has_arities(dictionary: Dictionary, encoding: SymbolEncoding) -> bool:
    """Whether any symbol of the dictionary has an arity."""
    return max(factors(dictionary, encoding)[1]) >= 0


def factors(dictionary: Dictionary, encoding: SymbolEncoding) -> tuple[list[str], list[int]]:
    """Returns the label and the arity of each symbol, and where it has none, itself and -1; so for unknown symbols."""
    labels, arities = [], []
    special = {NULL, *dictionary.symbols[: dictionary.nspecial]}
    for symbol in dictionary.symbols:
        try:
            label, arity = encoding.split(symbol)
        except ArityMismatchError:
            label, arity = UNKNOWN_LABEL, -1
        is_known = label != UNKNOWN_LABEL and symbol != NULL
        # What is special is never a word, so a label that is spelled alike is kept apart from it.
        labels.append((label + encoding.mark if label in special else label) if is_known else symbol)
        arities.append(arity if is_known else -1)
    return labels, arities
