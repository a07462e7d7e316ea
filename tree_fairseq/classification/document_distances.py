"""Distances between the leaves of a document, for biases: each of its sentences has a tree of its own."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from torch import Tensor

from tree_fairseq.classification.dataset import DocumentSizes
from tree_fairseq.classification.document_structure import Placement
from tree_fairseq.nn.common_ancestors import leaf_relations
from tree_fairseq.nn.tree_batch import TreeBatch


def joined_rows(rows: dict[str, Tensor], leaves: Placement, limit: int, label_pad: int) -> dict[str, Tensor]:
    """Rows of sentences ``[R, N, N]``, by the table, laid out by documents of X leaves: ``[B, X, X]``.

    Leaves of different rows are as if no tree had both (:func:`tree_fairseq.nn.common_ancestors.leaf_relations`).
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
    document = sentence_trees["document"]
    if "sizes" in sentence_trees:
        sizes = DocumentSizes(**sentence_trees["sizes"])
    else:
        sizes = DocumentSizes.count(batch.is_leaf, batch.is_node, document)
    leaves = Placement.build(batch.is_leaf, document, sizes.documents, num_leaves)
    return joined_rows(leaf_relations(tables, batch, limit, pad), leaves, limit, pad)
