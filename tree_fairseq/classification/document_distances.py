"""Distances between the leaves of documents, whose trees are those of single sentences."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from tree_fairseq.classification.document_structure import DocumentSizes, Placement
from tree_fairseq.nn.distances import leaf_distances, leaves_covered


def joined_distances(rows: Tensor, leaves: Placement, limit: int) -> Tensor:
    """Distances in rows ``[R, N, N]`` laid out by documents of X leaves: ``[B, X, X]``.

    Leaves of different rows are ``limit`` apart: no tree has both. Padding has any distance.
    """
    num_rows, num_leaves = rows.shape[:2]
    column, row = leaves.source // num_rows, leaves.source % num_rows  # B x X
    place = (row * num_leaves + column).unsqueeze(2) * num_leaves + column.unsqueeze(1)
    together = row.unsqueeze(2) == row.unsqueeze(1)
    return rows.flatten()[place].masked_fill(~together, limit)


def text_distances(sentence_trees: dict[str, Any], num_leaves: int, pad: int, limit: int) -> Tensor:
    """Distances between the leaves of documents ``[B, X, X]`` int32, from their sentences.

    ``sentence_trees`` come from :func:`tree_fairseq.classification.dataset.collate_sentences`; X is ``num_leaves``.
    """
    tokens, document = sentence_trees["tokens"], sentence_trees["document"]
    is_leaf = tokens.ne(pad)
    if "sizes" in sentence_trees:
        sizes = DocumentSizes(**sentence_trees["sizes"])
    else:
        sizes = DocumentSizes.count(is_leaf, sentence_trees["end"] > sentence_trees["start"], document)
    leaves = Placement.build(is_leaf, document, sizes.documents, num_leaves)
    return joined_distances(leaf_distances(leaves_covered(sentence_trees, tokens, pad), limit), leaves, limit)
