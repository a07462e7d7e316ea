"""The trees of documents, cut into sentences and collated: ``net_input["sentence_trees"]``.

A batch of B documents has R sentences in the order of the documents; each has up to N leaves and M nodes. The root of a
sentence is its node 0, or its leaf 0 if the sentence is a single leaf, which has no node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from tree_fairseq.classification.class_trees import ClassNodes
from tree_fairseq.classification.targets import IGNORE
from tree_fairseq.data_bin.tree_store import StoredTree
from tree_fairseq.nn.tree_batch import NODE_FIELDS, NodeArrays, TreeReader, collate_trees
from tree_fairseq.trees.spans import unary_chains


@dataclass(frozen=True)
class SentenceTree:
    """A sentence of a document, without its words.

    Attributes:
        position: of its first leaf in the document
        length: N, its leaves
        nodes: its M nodes; their spans are relative to the sentence
        node_target: the class of each node, ``[M]`` int64, `IGNORE` where it has none; None if only examples have
            classes
        leaf_target: the same of the leaves, ``[N]``
    """

    position: int
    length: int
    nodes: NodeArrays
    node_target: np.ndarray | None = None
    leaf_target: np.ndarray | None = None


class SentenceTreeReader:
    """Cuts a stored forest into sentences and reduces their trees to the nodes that a model reads.

    Args:
        read_tree: chooses these nodes and their labels
        has_class: finds the nodes of a full tree that have a class; None if only examples have one
    """

    def __init__(self, read_tree: TreeReader, has_class: ClassNodes | None = None):
        self.read_tree = read_tree
        self.has_class = has_class

    def __call__(self, tree: StoredTree, classes: np.ndarray | None = None) -> list[SentenceTree]:
        """Returns the sentences of a document.

        Args:
            tree: the full trees of its sentences
            classes: of the nodes that have one, in preorder, int64, `IGNORE` for unlabelled nodes; None if they are not
                known

        Raises:
            CorruptFileError: the numbers of nodes and classes differ.
        """
        node_target = leaf_target = None
        if self.has_class is not None and classes is not None:
            node_target, leaf_target = self._targets(tree, classes)
        nodes = self.read_tree(tree)
        roots = np.flatnonzero(tree.depth == 0)
        starts, ends = tree.start[roots].tolist(), tree.end[roots].tolist()
        cuts = np.searchsorted(nodes.start, [*starts, tree.num_leaves]).tolist()
        sentences = []
        for start, end, first, last in zip(starts, ends, cuts, cuts[1:]):
            own = slice(first, last)
            arrays = NodeArrays(nodes.label[own], nodes.start[own] - start, nodes.end[own] - start, nodes.depth[own])
            targets = (None, None) if node_target is None else (node_target[own], leaf_target[start:end])
            sentences.append(SentenceTree(start, end - start, arrays, *targets))
        return sentences

    def _targets(self, tree: StoredTree, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Classes of the nodes that are kept and of the leaves; a unary chain has that of its top."""
        placed = self.has_class.place(tree, classes, IGNORE)
        _, top = unary_chains(np.stack([tree.start, tree.end], axis=1))
        over_one = np.flatnonzero(tree.end - tree.start == 1)
        leaves, first = np.unique(tree.start[over_one], return_index=True)
        leaf_target = np.full(tree.num_leaves, IGNORE, np.int64)
        leaf_target[leaves] = placed[over_one[first]]
        return placed[top], leaf_target


def kept_leaves(tree: StoredTree, limit: int) -> tuple[int, int]:
    """Cuts a document after the last sentence that ends within a limit.

    Args:
        tree: its full trees
        limit: the largest number of leaves

    Returns:
        the number of leaves that remain, 0 if the first sentence is longer than the limit, and the number of sentences
        left out
    """
    ends = tree.end[tree.depth == 0]
    kept = int(np.searchsorted(ends, limit, side="right"))
    return int(ends[kept - 1]) if kept else 0, len(ends) - kept


def cut_tree(tree: StoredTree, leaves: int) -> StoredTree:
    """Returns the trees over the first leaves of a document; a sentence has to end there."""
    kept = tree.start < leaves
    return StoredTree(leaves, *(values[kept] for values in tree[1:]))


def collate_sentences(
    documents: Sequence[tuple[Tensor, Sequence[SentenceTree]]], pad: int, label_pad: int
) -> dict[str, Tensor]:
    """Stacks the sentences of B documents.

    Args:
        documents: the leaves of each, int64, and its sentences
        pad: id of padding leaves
        label_pad: label id of padding nodes

    Returns:
        ``tokens`` ``[R, N]``, padded on the right; ``label``, ``start``, ``end`` and ``depth`` ``[R, M]``
        (:func:`tree_fairseq.nn.tree_batch.collate_trees`); ``document`` ``[R]``, the document of each sentence,
        ascending from 0; ``position`` ``[R]``, that of the sentence's first leaf in its document. All int64
    """
    sentences = [(number, sentence) for number, (_, own) in enumerate(documents) for sentence in own]
    width = max((sentence.length for _, sentence in sentences), default=0)
    tokens = torch.full((len(sentences), width), pad, dtype=torch.int64)
    for index, (number, sentence) in enumerate(sentences):
        leaves = documents[number][0][sentence.position : sentence.position + sentence.length]
        tokens[index, : sentence.length] = leaves
    return {
        "tokens": tokens,
        **collate_trees([sentence.nodes for _, sentence in sentences], label_pad),
        "document": torch.tensor([number for number, _ in sentences], dtype=torch.int64),
        "position": torch.tensor([sentence.position for _, sentence in sentences], dtype=torch.int64),
    }


def collate_targets(sentences: Sequence[SentenceTree]) -> dict[str, Tensor]:
    """Stacks the classes of nodes and leaves: ``node_target`` ``[R, M]`` and ``leaf_target`` ``[R, N]``, int64."""
    batch = {}
    for name in ("node_target", "leaf_target"):
        targets = [getattr(sentence, name) for sentence in sentences]
        padded = np.full((len(targets), max(map(len, targets))), IGNORE, np.int64)
        for row, target in enumerate(targets):
            padded[row, : len(target)] = target
        batch[name] = torch.from_numpy(padded)
    return batch


def to_constraints(sentence_trees: dict[str, Tensor], numbers: Tensor) -> Tensor:
    """Writes collated sentences and the numbers of their documents as one tensor, whose rows are the sentences.

    Args:
        sentence_trees: from :func:`collate_sentences`
        numbers: ``[B]`` int64

    Returns:
        ``[R, 4 + N + 4 M]`` int64
    """
    document = sentence_trees["document"]
    leaf_count = torch.full_like(document, sentence_trees["tokens"].size(1))
    columns = torch.stack([document, sentence_trees["position"], numbers[document], leaf_count], dim=1)
    return torch.cat([columns, sentence_trees["tokens"], *(sentence_trees[name] for name in NODE_FIELDS)], dim=1)


def from_constraints(constraints: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    """Reads the sentences and the numbers ``[B]`` that :func:`to_constraints` wrote."""
    document, position, number, leaf_count = constraints[:, :4].unbind(1)
    num_leaves = int(leaf_count[0])
    tokens, spans = constraints[:, 4:].split([num_leaves, constraints.size(1) - 4 - num_leaves], dim=1)
    num_nodes = spans.size(1) // len(NODE_FIELDS)
    fields = dict(zip(NODE_FIELDS, spans.unflatten(1, (len(NODE_FIELDS), num_nodes)).unbind(1)))
    is_first = document.diff(prepend=document.new_tensor([-1])) > 0
    return {"tokens": tokens, **fields, "document": document, "position": position}, number[is_first]


@dataclass(frozen=True)
class Packing:
    """A packing of short sentences: consecutive sentences of one document share a row, as the trees of a forest.

    R sentences with N leaves and M nodes go into P rows with as many leaves and nodes, as long as they fit. If each
    sentence were padded by itself, most of a batch would be padding.

    Attributes:
        leaves: ``[R, N]`` int64, the place of each leaf in flattened ``[P, N]``; one past the last place at padding
        nodes: ``[R, M]`` int64, the same of nodes
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

        Args:
            is_leaf: ``[R, N]`` bool, false at padding, which is on the right
            is_node: ``[R, M]`` bool, the same of nodes
            document: ``[R]`` int64, document of each sentence, ascending
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
        row, first_leaf, first_node = torch.tensor(placed, device=document.device).unbind(1)
        return cls(
            leaves=_places(is_leaf, row * num_leaves + first_leaf, len(documents)),
            nodes=_places(is_node, row * num_nodes + first_node, len(documents)),
            first_leaf=first_leaf,
            document=document.new_tensor(documents),
        )

    def pack(self, sentences: dict[str, Tensor], pad: int) -> dict[str, Tensor]:
        """Lays out collated sentences in rows.

        Args:
            sentences: ``tokens`` ``[R, N]``, padded on the right; ``label``, ``start``, ``end`` and ``depth`` ``[R,
                M]``
            pad: id of padding leaves and labels

        Returns:
            the same of the rows, ``[P, N]`` and ``[P, M]``, and ``document`` ``[P]``
        """
        shift = self.first_leaf.unsqueeze(1)
        return {
            "tokens": self._fill(sentences["tokens"], self.leaves, pad),
            "label": self._fill(sentences["label"], self.nodes, pad),
            "start": self._fill(sentences["start"] + shift, self.nodes, 0),
            "end": self._fill(sentences["end"] + shift, self.nodes, 0),
            "depth": self._fill(sentences["depth"], self.nodes, 0),
            "document": self.document,
        }

    def _fill(self, values: Tensor, places: Tensor, padding: int) -> Tensor:
        flat = values.new_full((len(self.document) * places.size(1) + 1,), padding)
        return flat.index_copy(0, places.flatten(), values.flatten())[:-1].view(len(self.document), places.size(1))

    def unpack(self, rows: Tensor, places: Tensor) -> Tensor:
        """Takes the states of sentences ``[R, N or M, D]``, zero at padding, from rows ``[P, N or M, D]``."""
        padded = functional.pad(rows.flatten(0, 1), (0, 0, 0, 1))
        return padded.index_select(0, places.flatten()).unflatten(0, places.shape)


def _places(real: Tensor, first: Tensor, num_rows: int) -> Tensor:
    """Consecutive places from the first of each sentence, ``[R, columns]``."""
    columns = torch.arange(real.size(1), device=real.device)
    return torch.where(real, first.unsqueeze(1) + columns, num_rows * real.size(1))
