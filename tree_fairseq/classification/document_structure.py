"""Documents of several sentences: where the leaves of their rows lie in a document.

A row holds one sentence, or a few of one document; R rows of N leaves make B documents of at most X leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from tree_fairseq.nn.tree_batch import Branches
from tree_fairseq.tree_transformer.tree_structure import TreeStructure


@dataclass(frozen=True)
class Placement:
    """The leaves of R rows, laid out one after another in B documents.

    Attributes:
        source: ``[B, X]`` int64, the leaf of rows, in flattened ``[N, R]``, that each place holds; 0 at padding
        target: ``[N, R]`` int64, the place, in flattened ``[B, X]``, of each leaf; 0 at padding
        padding: ``[B, X]`` bool, true at padding
    """

    source: Tensor
    target: Tensor
    padding: Tensor

    @classmethod
    def build(cls, real: Tensor, document: Tensor, num_documents: int, width: int) -> Placement:
        """Lays out the leaves ``real`` ``[R, N]`` that are not padding, row by row; ``document`` is ``[R]``.

        ``num_documents`` is B, and ``width`` X.
        """
        length = document.new_zeros(num_documents).index_add(0, document, real.sum(1))
        earlier = length.cumsum(0) - length  # B, leaves in the documents before
        column = real.flatten().cumsum(0).view_as(real) - 1 - earlier.index_select(0, document).unsqueeze(1)
        place, end = document.unsqueeze(1) * width + column, num_documents * width
        flat = torch.arange(real.numel(), device=real.device).view(real.shape[::-1])  # N x R
        source = document.new_zeros(end + 1).scatter(0, place.masked_fill(~real, end).flatten(), flat.t().flatten())
        padding = torch.arange(width, device=real.device) >= length.unsqueeze(1)
        target = place.masked_fill(~real, 0).t().contiguous()
        return cls(source[:end].view(num_documents, width), target, padding)

    @property
    def attention_bias(self) -> Tensor:
        """``[B, 1, 1, X]`` float, -inf at padding."""
        bias = torch.zeros(self.padding.shape, device=self.padding.device)
        return bias.masked_fill(self.padding, float("-inf"))[:, None, None]

    def to_documents(self, rows: Tensor) -> Tensor:
        """Moves ``[N or more, R, ...]`` to ``[B, X, ...]``; padding gets arbitrary leaves."""
        return rows.flatten(0, 1).index_select(0, self.source.flatten()).unflatten(0, self.source.shape)

    def to_rows(self, documents: Tensor) -> Tensor:
        """Moves ``[B, X, ...]`` to ``[N, R, ...]``; padding gets arbitrary leaves."""
        return documents.flatten(0, 1).index_select(0, self.target.flatten()).unflatten(0, self.target.shape)


class DocumentStructure(NamedTuple):
    """Documents whose leaves attend beyond their row.

    Attributes:
        rows: the trees of the rows, with the attention masks within them
        leaves: the leaves of each document
    """

    rows: TreeStructure
    leaves: Placement

    @property
    def padding(self) -> Tensor:
        """``[R, S]`` bool, true at padding."""
        return self.rows.padding


@dataclass(frozen=True)
class Packing:
    """A packing of short sentences: consecutive sentences of one document share a row, as the trees of a forest.

    R sentences with N leaves and M nodes go into P rows with as many leaves and nodes, as long as they fit. If each
    sentence were padded by itself, most of a batch would be padding.

    Attributes:
        leaves, nodes: ``[R, N]`` and ``[R, M]`` int64, the places of leaves in flattened ``[P, N]``, and of nodes; one
            past the last place at padding
        first_leaf: ``[R]`` int64, column of the first leaf of each sentence
        document: ``[P]`` int64, document of each row, ascending
    """

    leaves: Tensor
    nodes: Tensor
    first_leaf: Tensor
    document: Tensor

    @classmethod
    def build(cls, is_leaf: Tensor, is_node: Tensor, document: Tensor) -> Packing:
        """Fills row after row, in the order of the sentences.

        ``is_leaf`` ``[R, N]`` and ``is_node`` ``[R, M]`` are false at padding, which is on the right; ``document``
        ``[R]`` is that of each sentence, ascending.
        """
        num_leaves, num_nodes = is_leaf.size(1), is_node.size(1)
        sizes = torch.stack([is_leaf.sum(1), is_node.sum(1), document], dim=1)
        placed, documents = [], []
        leaves = nodes = 0
        for own_leaves, own_nodes, own_document in sizes.tolist():
            fits = leaves + own_leaves <= num_leaves and nodes + own_nodes <= num_nodes
            if not documents or documents[-1] != own_document or not fits:
                documents.append(own_document)
                leaves = nodes = 0
            placed.append((len(documents) - 1, leaves, nodes))
            leaves, nodes = leaves + own_leaves, nodes + own_nodes
        row, first_leaf, first_node = torch.tensor(placed).unbind(1)
        return cls(
            leaves=_places(is_leaf, row * num_leaves + first_leaf, len(documents)),
            nodes=_places(is_node, row * num_nodes + first_node, len(documents)),
            first_leaf=first_leaf,
            document=document.new_tensor(documents),
        )

    def pack(self, sentences: dict[str, Tensor], pad: int, label_pad: int) -> dict[str, Tensor]:
        """Lays out collated sentences in rows: the same tensors, ``[P, N]``, ``[P, M]`` and ``[P]``."""
        shift = self.first_leaf.unsqueeze(1)
        return {
            "tokens": self._fill(sentences["tokens"], self.leaves, pad),
            "label": self._fill(sentences["label"], self.nodes, label_pad),
            "start": self._fill(sentences["start"] + shift, self.nodes, 0),
            "end": self._fill(sentences["end"] + shift, self.nodes, 0),
            "depth": self._fill(sentences["depth"], self.nodes, 0),
            "document": self.document,
        }

    def _fill(self, values: Tensor, places: Tensor, padding: int) -> Tensor:
        flat = values.new_full((len(self.document) * places.size(1) + 1,), padding)
        return flat.index_copy(0, places.flatten(), values.flatten())[:-1].view(len(self.document), places.size(1))


def pack(sentences: dict[str, Any], pad: int, label_pad: int) -> dict[str, Any]:
    """Packs collated sentences (:func:`tree_fairseq.classification.dataset.collate_sentences`).

    Returns:
        the same entries for rows; ``leaves`` and ``nodes`` of :class:`Packing`, for :func:`unpack`; ``most_leaves``,
        the greatest number of leaves in a document. No model has to wait for a device to count them
    """
    is_leaf, is_node = sentences["tokens"].ne(pad), sentences["end"] > sentences["start"]
    packing = Packing.build(is_leaf, is_node, sentences["document"])
    rows = packing.pack(sentences, pad, label_pad)
    arrays = (rows[name].numpy() for name in ("start", "end", "depth"))
    return {
        **rows,
        "branches": Branches.list(*arrays).as_dict(),
        "leaves": packing.leaves,
        "nodes": packing.nodes,
        "most_leaves": int(sentences["document"].bincount(is_leaf.sum(1)).max()),
    }


def unpack(rows: Tensor, places: Tensor) -> Tensor:
    """Takes the states of sentences ``[R, N or M, D]``, zero at padding, from rows ``[P, N or M, D]``."""
    padded = functional.pad(rows.flatten(0, 1), (0, 0, 0, 1))
    return padded.index_select(0, places.flatten()).unflatten(0, places.shape)


def _places(real: Tensor, first: Tensor, num_rows: int) -> Tensor:
    """Consecutive places from the first of each sentence, ``[R, columns]``."""
    columns = torch.arange(real.size(1), device=real.device)
    return torch.where(real, first.unsqueeze(1) + columns, num_rows * real.size(1))
