"""Documents of several sentences: where leaves and nodes of their rows lie in a document, and distances between leaves.

A row holds one sentence, or a few of one document; R rows make B documents. The S = N + M positions of a row are its
leaves, then its nodes; a document has X positions.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Optional

import torch
from torch import Tensor

from tree_fairseq.classification.dataset import DocumentSizes
from tree_fairseq.nn.distances import leaf_relations
from tree_fairseq.nn.tree_batch import TreeBatch
from tree_fairseq.tree_transformer.tree_structure import TreeStructure


def document_sizes(sentence_trees: dict[str, Any], pad: int) -> DocumentSizes:
    """Returns the sizes of collated documents, counted if the collater has not."""
    if "sizes" in sentence_trees:
        return DocumentSizes(**sentence_trees["sizes"])
    is_leaf, is_node = sentence_trees["tokens"].ne(pad), sentence_trees["end"] > sentence_trees["start"]
    return DocumentSizes.count(is_leaf, is_node, sentence_trees["document"])


@dataclass(frozen=True)
class Placement:
    """Positions of R rows, laid out one after another in B documents of at most X positions.

    Attributes:
        source: ``[B, X]`` int64, the position of rows, in flattened ``[S, R]``, that each place holds; 0 at padding
        target: ``[S, R]`` int64, the place, in flattened ``[B, X]``, of each position; 0 at padding
        padding: ``[B, X]`` bool, true at padding
    """

    source: Tensor
    target: Tensor
    padding: Tensor

    @classmethod
    def build(cls, real: Tensor, document: Tensor, num_documents: int, width: int) -> Placement:
        """Lays out the positions ``real`` ``[R, S]`` that are not padding, row by row; ``document`` is ``[R]``.

        ``num_documents`` is B, and ``width`` X.
        """
        length = document.new_zeros(num_documents).index_add(0, document, real.sum(1))
        earlier = length.cumsum(0) - length  # B, positions in the documents before
        column = real.flatten().cumsum(0).view_as(real) - 1 - earlier.index_select(0, document).unsqueeze(1)
        place, end = document.unsqueeze(1) * width + column, num_documents * width
        flat = torch.arange(real.numel(), device=real.device).view(real.shape[::-1])  # S x R
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
        """Moves ``[S or more, R, ...]`` to ``[B, X, ...]``; padding gets arbitrary positions."""
        return rows.flatten(0, 1).index_select(0, self.source.flatten()).unflatten(0, self.source.shape)

    def to_rows(self, documents: Tensor) -> Tensor:
        """Moves ``[B, X, ...]`` to ``[S, R, ...]``; padding gets arbitrary positions."""
        return documents.flatten(0, 1).index_select(0, self.target.flatten()).unflatten(0, self.target.shape)


@dataclass(frozen=True)
class DocumentStructure:
    """Documents whose leaves attend beyond their row.

    Attributes:
        rows: the trees of the rows, with the attention masks within them
        leaves: the leaves of each document
        everything: leaves and nodes of each document, if both attend to all of them (no subtree masks); else None
    """

    rows: TreeStructure
    leaves: Placement
    everything: Optional[Placement]

    @classmethod
    def build(
        cls, batch: TreeBatch, rows: TreeStructure, document: Tensor, sizes: DocumentSizes, mask_subtrees: bool
    ) -> DocumentStructure:
        """Derives all indices, once a batch for all layers.

        ``document`` ``[R]`` is that of each row, ascending from 0, with every number in between.
        """
        leaves = Placement.build(batch.is_leaf, document, sizes.documents, sizes.leaves)
        everything = None
        if not mask_subtrees:
            real = torch.cat([batch.is_leaf, batch.is_node], dim=1)  # (R, S)
            everything = Placement.build(real, document, sizes.documents, sizes.positions)
        return cls(rows, leaves, everything)

    @property
    def padding(self) -> Tensor:
        """``[R, S]`` bool, true at padding."""
        return self.rows.padding


def joined_rows(rows: dict[str, Tensor], leaves: Placement, limit: int, label_pad: int) -> dict[str, Tensor]:
    """Rows of sentences ``[R, N, N]``, by the table, laid out by documents of X leaves: ``[B, X, X]``.

    Leaves of different rows are as if no tree had both (:func:`tree_fairseq.nn.distances.leaf_relations`).
    Padding has any values.
    """
    num_rows = leaves.target.size(1)
    column, row = leaves.source // num_rows, leaves.source % num_rows  # B x X
    apart = row.unsqueeze(2) != row.unsqueeze(1)

    def join(values: Tensor, otherwise: int) -> Tensor:
        num_leaves = values.size(1)
        place = (row * num_leaves + column).unsqueeze(2) * num_leaves + column.unsqueeze(1)
        return values.flatten()[place].masked_fill(apart, otherwise)

    return {table: join(values, label_pad if table == "label" else limit) for table, values in rows.items()}


def text_rows(
    tables: Collection[str], sentence_trees: dict[str, Any], num_leaves: int, pad: int, limit: int
) -> dict[str, Tensor]:
    """Rows of the ``tables`` for the leaves of documents, ``[B, X, X]``, from their sentences.

    ``sentence_trees`` come from :func:`tree_fairseq.classification.dataset.collate_sentences`; X is ``num_leaves``.
    """
    batch = TreeBatch.from_net_input(sentence_trees, sentence_trees["tokens"], pad)
    sizes = document_sizes(sentence_trees, pad)
    leaves = Placement.build(batch.is_leaf, sentence_trees["document"], sizes.documents, num_leaves)
    return joined_rows(leaf_relations(tables, batch, limit, pad), leaves, limit, pad)
