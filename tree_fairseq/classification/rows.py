"""Examples to be classified as rows: a sentence is a row, whose nodes and leaves may have classes of their own.

In a batch of B documents there are R rows in the order of the documents; a row has N leaves and M nodes. The root is node 0,
or leaf 0 in a row of one leaf, which has no node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from fairseq.data import Dictionary
from torch import Tensor

from tree_fairseq.classification.class_trees import ClassNodes
from tree_fairseq.data_bin.tree_store import StoredTree
from tree_fairseq.errors import CorruptFileError
from tree_fairseq.nn.tree_batch import NodeArrays, TreeReader, collate_trees
from tree_fairseq.trees.spans import unary_chains

IGNORE = -100
"""In the place of a class: there is none, or the place is padding. torch's losses pass over it."""

_SPAN_FIELDS = ("label", "start", "end", "depth")


@dataclass(frozen=True)
class SentenceRow:
    """A sentence of a document.

    Attributes:
        position: of its first leaf in the document
        length: N, its leaves
        nodes: its M nodes, spans relative to the sentence
        node_target: the class of each node, ``[M]`` int64, `IGNORE` for none; None where nodes have no classes
        leaf_target: the same of the leaves, ``[N]``
    """

    position: int
    length: int
    nodes: NodeArrays
    node_target: np.ndarray | None = None
    leaf_target: np.ndarray | None = None


class RowReader:
    """Cuts a stored forest into rows of what a model reads.

    Args:
        read_tree: which nodes those are, and their labels
        has_class: which nodes of a full tree have a class; None where only examples have one
    """

    def __init__(self, read_tree: TreeReader, has_class: ClassNodes | None = None):
        self.read_tree = read_tree
        self.has_class = has_class

    def __call__(self, tree: StoredTree, classes: np.ndarray | None = None) -> list[SentenceRow]:
        """The rows of a document.

        Args:
            tree: the full trees of its sentences
            classes: of the nodes that have one, in preorder, int64, `IGNORE` for no class; None for none

        Raises:
            CorruptFileError: tree and classes do not belong together.
        """
        node_target = leaf_target = None
        if self.has_class is not None and classes is not None:
            node_target, leaf_target = self._targets(tree, classes)
        nodes = self.read_tree(tree)
        roots = np.flatnonzero(tree.depth == 0)
        starts, ends = tree.start[roots].tolist(), tree.end[roots].tolist()
        cuts = np.searchsorted(nodes.start, [*starts, tree.num_leaves]).tolist()
        rows = []
        for start, end, first, last in zip(starts, ends, cuts, cuts[1:]):
            own = slice(first, last)
            arrays = NodeArrays(nodes.label[own], nodes.start[own] - start, nodes.end[own] - start, nodes.depth[own])
            targets = (None, None) if node_target is None else (node_target[own], leaf_target[start:end])
            rows.append(SentenceRow(start, end - start, arrays, *targets))
        return rows

    def _targets(self, tree: StoredTree, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Classes of the nodes that are kept and of the leaves; a unary chain has that of its top."""
        placed = self.has_class.places(tree, classes, IGNORE)
        _, top = unary_chains(np.stack([tree.start, tree.end], axis=1))
        over_one = np.flatnonzero(tree.end - tree.start == 1)
        leaves, first = np.unique(tree.start[over_one], return_index=True)
        leaf_target = np.full(tree.num_leaves, IGNORE, np.int64)
        leaf_target[leaves] = placed[over_one[first]]
        return placed[top], leaf_target


def kept_leaves(tree: StoredTree, limit: int) -> tuple[int, int]:
    """How much of a document remains when it is cut to whole sentences from its beginning.

    Args:
        tree: its full trees
        limit: leaves that may remain at most

    Returns:
        leaves that remain, 0 if the first sentence is longer than the limit, and sentences that are left out
    """
    ends = tree.end[tree.depth == 0]
    kept = int(np.searchsorted(ends, limit, side="right"))
    return int(ends[kept - 1]) if kept else 0, len(ends) - kept


def cut_tree(tree: StoredTree, leaves: int) -> StoredTree:
    """The trees over the first leaves of a document; a sentence ends there."""
    kept = tree.start < leaves
    return StoredTree(leaves, *(values[kept] for values in tree[1:]))


def collate_rows(
    documents: Sequence[tuple[Tensor, Sequence[SentenceRow]]], pad: int, label_pad: int
) -> dict[str, Tensor]:
    """Stacks the rows of B documents.

    Args:
        documents: the leaves of each, ``[N]`` int64, and its rows
        pad: id of padding leaves
        label_pad: label id of padding nodes

    Returns:
        ``tokens`` ``[R, N]``, padded on the right; ``label``, ``start``, ``end`` and ``depth`` ``[R, M]``
        (:func:`tree_fairseq.nn.tree_batch.collate_trees`); ``document`` ``[R]``: of each row, ascending from 0; ``position`` ``[R]``: of
        the row's first leaf in its document. All int64
    """
    rows = [(number, row) for number, (_, own) in enumerate(documents) for row in own]
    width = max((row.length for _, row in rows), default=0)
    tokens = torch.full((len(rows), width), pad, dtype=torch.int64)
    for index, (number, row) in enumerate(rows):
        tokens[index, : row.length] = documents[number][0][row.position : row.position + row.length]
    return {
        "tokens": tokens,
        **collate_trees([row.nodes for _, row in rows], label_pad),
        "document": torch.tensor([number for number, _ in rows], dtype=torch.int64),
        "position": torch.tensor([row.position for _, row in rows], dtype=torch.int64),
    }


def collate_targets(rows: Sequence[SentenceRow]) -> dict[str, Tensor]:
    """``node_target`` ``[R, M]`` and ``leaf_target`` ``[R, N]``, int64, of rows that have them."""
    return {name: _padded([getattr(row, name) for row in rows]) for name in ("node_target", "leaf_target")}


def _padded(targets: Sequence[np.ndarray]) -> Tensor:
    padded = np.full((len(targets), max(map(len, targets))), IGNORE, np.int64)
    for row, target in enumerate(targets):
        padded[row, : len(target)] = target
    return torch.from_numpy(padded)


def class_targets(classes: Tensor, dictionary: Dictionary) -> np.ndarray:
    """A line of class tokens, EOS at its end, as numbers from 0, int64; `IGNORE` for ``<unk>``, which stands for no class."""
    ids = classes.numpy()[: -1 if len(classes) and classes[-1] == dictionary.eos() else None].astype(np.int64)
    return np.where(ids == dictionary.unk(), IGNORE, ids - dictionary.nspecial)


def example_class(classes: np.ndarray, index: int) -> int:
    """The class of an example itself, the first of its line (:func:`class_targets`).

    Raises:
        CorruptFileError: there is none
    """
    if not len(classes) or classes[0] < 0:
        raise CorruptFileError(f"example {index + 1} has no class. Preprocess again")
    return int(classes[0])


def pack_rows(sentence_trees: dict[str, Tensor], numbers: Tensor) -> Tensor:
    """Collated rows and the numbers of their documents as one tensor; :func:`unpack_rows` is its inverse.

    Args:
        sentence_trees: what :func:`collate_rows` returned
        numbers: ``[B]`` int64

    Returns:
        ``[R, 4 + N + 4 M]`` int64
    """
    document = sentence_trees["document"]
    leaf_count = torch.full_like(document, sentence_trees["tokens"].size(1))
    columns = torch.stack([document, sentence_trees["position"], numbers[document], leaf_count], dim=1)
    return torch.cat([columns, sentence_trees["tokens"], *(sentence_trees[name] for name in _SPAN_FIELDS)], dim=1)


def unpack_rows(packed: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    """The rows and the numbers ``[B]`` that :func:`pack_rows` was given."""
    document, position, number, leaf_count = packed[:, :4].unbind(1)
    tokens, spans = packed[:, 4:].split([int(leaf_count[0]), packed.size(1) - 4 - int(leaf_count[0])], dim=1)
    fields = dict(
        zip(_SPAN_FIELDS, spans.chunk(len(_SPAN_FIELDS), dim=1) if spans.size(1) else [spans] * len(_SPAN_FIELDS))
    )
    first_row = (document.diff(prepend=document.new_tensor([-1])) > 0).nonzero().squeeze(1)
    return {"tokens": tokens, **fields, "document": document, "position": position}, number[first_row]
