"""Documents of several sentences for the Tree-Transformer: positions, super-roots, and short sentences in one row."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Optional

import torch
from torch import Tensor
from torch.nn import functional

from tree_fairseq.nn.tree_batch import TreeBatch
from tree_fairseq.tree_transformer.accumulation import HierarchicalAccumulation, HierarchicalEmbeddings
from tree_fairseq.tree_transformer.tree_structure import LeafSums, TreeStructure


@dataclass(frozen=True)
class SuperRoots:
    """The super-roots of B documents, whose R sentences are the rows of a :class:`TreeStructure`.

    A super-root s covers all c leaves of its document, so the closed form of hierarchical accumulation
    (:mod:`tree_fairseq.tree_transformer.accumulation`) is a sum of terms that each belong to one sentence:

        n_s = (sum_j a_j l_j + sum_t (sum_{j under t} a_j) n_t + (sum_j a_j) n + embeddings) / c
        a_j = w_j / (d_j + 1 + kappa)

    with d_j the number of the sentence's nodes above leaf j and n the super-root's own value. The terms of the
    sentences are summed in single precision and divided by c at the end: with thousands of leaves the shares themselves
    would be too small for half precision.

    Attributes:
        document: ``[R]`` int64, document of each row
        first_row: ``[B]`` int64, row of each document's first sentence
        share: ``[R, N]`` float, ``1 / (d_j + 1 + kappa)``, zero at padding
        num_leaves: ``[B]`` float, leaves of each document
        branches: sums ``[B * (X + L)]`` of the leaves, weighted by their shares, by rank and by length of
            branch as in :class:`TreeStructure`
        widest: X, leaves of the longest document
        longest: L, nodes on the longest branch
    """

    document: Tensor
    first_row: Tensor
    share: Tensor
    num_leaves: Tensor
    branches: LeafSums
    widest: int
    longest: int

    @classmethod
    def build(
        cls, batch: TreeBatch, rows: TreeStructure, document: Tensor, column: Tensor, count_leaf: bool
    ) -> SuperRoots:
        """Derives the super-roots from the sentences below them.

        ``document`` ``[R]`` ascends from 0 without gaps; ``column`` ``[R, N]`` has the leaves' places in documents.
        """
        above = rows.covers.sum(1)  # R x N, d_j
        share = batch.is_leaf / (above + 1 + int(count_leaf)).to(rows.share.dtype)
        num_documents = int(document[-1]) + 1
        leaves = batch.is_leaf.sum(1).to(share.dtype)
        widest, longest = int(column[batch.is_leaf].max()) + 1, int(above.max()) + 1
        # The branch from the super-root to each leaf, and its nodes: the super-root and those of the sentence.
        row, leaf = batch.is_leaf.nonzero().unbind(1)
        below_row, below_leaf, node = rows.covers.mT.nonzero().unbind(1)
        length = widest + above[row, leaf]
        rank = torch.cat([column[row, leaf], below_leaf - batch.start[below_row, node]])
        all_rows = torch.cat([row, row, below_row])
        flat, order = (all_rows * share.size(1) + torch.cat([leaf, leaf, below_leaf])).sort(stable=True)
        branches = LeafSums.build(
            (document[all_rows] * (widest + longest) + torch.cat([length, rank]))[order],
            share.flatten()[flat],
            entries=torch.bincount(flat, minlength=share.numel()),
            num_rows=num_documents * (widest + longest),
        )
        first_row = torch.searchsorted(document, torch.arange(num_documents, device=document.device))
        num_leaves = share.new_zeros(num_documents).index_add(0, document, leaves)
        return cls(document, first_row, share, num_leaves, branches, widest, longest)

    def sum(self, rows: Tensor) -> Tensor:
        """Sums rows ``[R, ...]`` over documents: ``[B, ...]``."""
        return rows.new_zeros(len(self.first_row), *rows.shape[1:]).index_add(0, self.document, rows)

    def accumulate(
        self, accumulation: HierarchicalAccumulation, leaves: Tensor, values: Tensor, own: Tensor, rows: TreeStructure
    ) -> Tensor:
        """Accumulates values over whole documents (eqs. 10 and 16): ``[B, H, D / H]`` in the dtype of ``values``.

        Args:
            accumulation: the weights of the layer
            leaves: ``[N, R, D]``, states of the leaves as the attention receives them
            values: ``[R, H, S, D / H]``, projected values of leaves, then nodes
            own: ``[B, H, D / H]``, projected values of the super-roots
            rows: the trees of the rows; depths count the super-root
        """
        leaf_weight = accumulation.weigh(leaves)  # R x N x H
        with torch.autocast(leaves.device.type, enabled=False):
            leaf_share = (leaf_weight * self.share.unsqueeze(-1).to(leaf_weight)).mT  # R x H x N
            node_share = leaf_share @ rows.covers.mT.to(leaf_share)  # R x H x M
            mass = self.sum(leaf_share.sum(-1))  # B x H
        coefficients = torch.cat([leaf_share, node_share], dim=-1).unsqueeze(2).to(values.dtype)
        below = (coefficients @ values).squeeze(2)  # R x H x D/H
        total = self.sum(below.to(mass.dtype)) + mass.unsqueeze(-1) * own
        if accumulation.embeddings is not None:
            total = total + self._embed(accumulation.embeddings, leaf_weight, node_share, mass, rows.depth)
        return (total / self.num_leaves[:, None, None].to(mass)).to(values.dtype)

    def _embed(
        self, embeddings: HierarchicalEmbeddings, leaf_weight: Tensor, node_share: Tensor, mass: Tensor, depth: Tensor
    ) -> Tensor:
        """e_s of every super-root, before the division by its leaves: ``[B, H, D / H]``."""
        table = embeddings.table(self.widest, self.longest)
        sums = self.branches(leaf_weight.flatten(0, 1)).view(len(self.first_row), len(table), -1)
        embedded = (sums.mT.to(table.dtype) @ table).to(mass.dtype)
        if embeddings.by_leaf_distance:
            return embedded
        vertical = embeddings.vertical.weight
        below = node_share.to(vertical.dtype) @ vertical[depth.clamp(max=len(vertical) - 1)]  # R x H x width
        return embedded + embeddings.vertical_only(self.sum(below.to(mass.dtype)) + mass.unsqueeze(-1) * vertical[0])


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
    def build(cls, real: Tensor, document: Tensor) -> Placement:
        """Lays out the positions ``real`` ``[R, S]`` that are not padding, row by row; ``document`` is ``[R]``."""
        num_documents = int(document[-1]) + 1
        length = document.new_zeros(num_documents).index_add(0, document, real.sum(1))
        width = int(length.max())
        earlier = length.cumsum(0) - length  # B, positions in the documents before
        column = real.flatten().cumsum(0).view_as(real) - 1 - earlier[document].unsqueeze(1)
        target = (document.unsqueeze(1) * width + column).masked_fill(~real, 0).t().contiguous()  # S x R
        flat = real.t().flatten().nonzero().squeeze(1)
        source = document.new_zeros(num_documents * width)
        source[target.flatten()[flat]] = flat
        padding = torch.arange(width, device=real.device) >= length.unsqueeze(1)
        return cls(source.view(num_documents, width), target, padding)

    @property
    def column(self) -> Tensor:
        """``[R, S]`` int64, the column of each position in its document; any value at padding."""
        return self.target.t() % self.source.size(1)

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
    """Documents of several rows of trees, with attention that crosses from row to row.

    Attributes:
        rows: the trees of R rows, with the masks within them; depths count the super-root
        leaves: the leaves of each document
        everything: leaves, nodes and the super-root of each document; None if no query attends to all of them
        super_roots: None without them
        join_leaves: leaves attend beyond their row; otherwise only super-roots do
        mask_subtrees: attention across rows is from leaves to leaves; otherwise from everything to everything
    """

    rows: TreeStructure
    leaves: Placement
    everything: Optional[Placement]
    super_roots: Optional[SuperRoots]
    join_leaves: bool
    mask_subtrees: bool

    @classmethod
    def build(
        cls,
        batch: TreeBatch,
        rows: TreeStructure,
        document: Tensor,
        super_root: bool,
        join_leaves: bool,
        mask_subtrees: bool,
        count_leaf: bool,
    ) -> DocumentStructure:
        """Derives all indices, once a batch for all layers.

        ``document`` ``[R]`` is that of each row, ascending from 0, with every number in between; ``mask_subtrees`` and
        ``count_leaf`` are as in :meth:`TreeStructure.build`.
        """
        leaves, super_roots, everything = Placement.build(batch.is_leaf, document), None, None
        real = torch.cat([batch.is_leaf, batch.is_node], dim=1)
        if super_root:
            super_roots = SuperRoots.build(batch, rows, document, leaves.column, count_leaf)
            rows = dataclasses.replace(rows, depth=rows.depth + 1)
            is_first = torch.zeros_like(document, dtype=torch.bool).index_fill(0, super_roots.first_row, True)
            real = torch.cat([real, is_first.unsqueeze(1)], dim=1)
        if super_root or (join_leaves and not mask_subtrees):
            everything = Placement.build(real, document)
        return cls(rows, leaves, everything, super_roots, join_leaves, mask_subtrees)

    @property
    def padding(self) -> Tensor:
        """``[R, S]``, or ``[R, S + 1]`` with super-roots, which come last in the first row of their document."""
        if self.super_roots is None:
            return self.rows.padding
        not_first = torch.ones_like(self.rows.padding[:, :1]).index_fill(0, self.super_roots.first_row, False)
        return torch.cat([self.rows.padding, not_first], dim=1)


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
        row, first_leaf, first_node = torch.tensor(placed, device=document.device).unbind(1)
        return cls(
            leaves=_places(is_leaf, row * num_leaves + first_leaf, len(documents)),
            nodes=_places(is_node, row * num_nodes + first_node, len(documents)),
            first_leaf=first_leaf,
            document=document.new_tensor(documents),
        )

    def pack(self, sentences: dict[str, Tensor], pad: int) -> dict[str, Tensor]:
        """Lays out collated sentences in rows: the same tensors, ``[P, N]``, ``[P, M]`` and ``[P]``."""
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
