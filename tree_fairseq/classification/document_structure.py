"""Documents of several sentences for the Tree-Transformer: positions, super-roots, and short sentences in one row."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Optional

import torch
from torch import Tensor
from torch.nn import functional

from tree_fairseq.classification.dataset import DocumentSizes
from tree_fairseq.nn.devices import without_autocast
from tree_fairseq.nn.tree_batch import TreeBatch
from tree_fairseq.tree_transformer.accumulation import HierarchicalAccumulation, HierarchicalEmbeddings
from tree_fairseq.tree_transformer.leaf_sums import LeafSums
from tree_fairseq.tree_transformer.tree_structure import TreeStructure


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
        branches: sums of the leaves, weighted by their shares, by rank and by length of branch: ``[B * X]`` of leaves'
            ranks in the super-root, ``[B * X]`` of their ranks in the nodes of their sentences, and ``[B * L]`` of
            nodes on the branch from the super-root. The last of each also counts all that is more
        high_ranks: whether there may be ranks from X - 1, whose sums may be missing then
        lengths: ``[R, N]`` float, shares times the nodes of a branch
        excess: ``[R, N]`` float, shares times the nodes of a branch beyond L; None if no branch is longer
    """

    document: Tensor
    first_row: Tensor
    share: Tensor
    num_leaves: Tensor
    branches: tuple[LeafSums, LeafSums, LeafSums]
    num_ranks: int
    num_lengths: int
    high_ranks: bool
    lengths: Tensor
    excess: Optional[Tensor]

    @classmethod
    def build(
        cls,
        batch: TreeBatch,
        rows: TreeStructure,
        document: Tensor,
        column: Tensor,
        sizes: DocumentSizes,
        count_leaf: bool,
        limits: tuple[int, int],
    ) -> SuperRoots:
        """Derives the super-roots from the sentences below them.

        ``document`` ``[R]`` ascends from 0 without gaps; ``column`` ``[R, N]`` has the leaves' places in documents. The
        ``limits`` are the numbers of ranks and of lengths of :meth:`BranchSums.build`.
        """
        max_ranks, max_lengths = limits
        above = rows.covers.sum(1)  # R x N, d_j
        share = batch.is_leaf / (above + 1 + int(count_leaf)).to(rows.share.dtype)
        leaves = batch.is_leaf.sum(1).to(share.dtype)
        first_row = torch.searchsorted(document, torch.arange(sizes.documents, device=document.device))
        num_ranks, num_leaves = min(max_ranks, sizes.leaves), share.size(1)
        longest = min(rows.covers.size(1), num_leaves) + 1
        num_lengths, all_leaves = min(max_lengths, longest), torch.arange(share.numel(), device=share.device)

        def sums(value: Tensor, leaf: Tensor, count: int) -> LeafSums:
            row = document.index_select(0, leaf // num_leaves) * count + value.clamp(min=0, max=count - 1)
            by_row = row.sort(stable=True).indices
            return LeafSums.build(
                row, leaf, share.flatten().index_select(0, leaf), by_row, sizes.documents * count, share.numel()
            )

        # The branch from the super-root to each leaf, and its nodes: the super-root and those of the sentence.
        node, leaf = rows.branches.node, rows.branches.leaf
        rank = leaf % max(num_leaves, 1) - batch.start.flatten().index_select(0, node)
        branches = (
            sums(column.flatten(), all_leaves, num_ranks),
            sums(rank, leaf, num_ranks),
            sums(above.flatten(), all_leaves, num_lengths),
        )
        return cls(
            document,
            first_row,
            share,
            num_leaves=share.new_zeros(sizes.documents).index_add(0, document, leaves),
            branches=branches,
            num_ranks=num_ranks,
            num_lengths=num_lengths,
            high_ranks=sizes.leaves >= max_ranks,
            lengths=share * (above + 1),
            excess=share * (above + 1 - num_lengths).clamp(min=0) if longest > max_lengths else None,
        )

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
        with without_autocast(leaves):
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
        weight = leaf_weight.flatten(0, 1)
        tables = embeddings.ranks(self.num_ranks, self.high_ranks), embeddings.heights(self.num_lengths)
        own, inner, vertical = (
            sums(weight).view(len(self.first_row), -1, weight.size(1)).mT.to(table.dtype) @ table
            for sums, table in zip(self.branches, (tables[0], *tables))
        )
        horizontal = (own + inner).to(mass.dtype)
        if self.high_ranks:
            # The ranks above are those less the last one.
            nodes = self.sum((leaf_weight * self.lengths.unsqueeze(2).to(leaf_weight)).sum(1))  # B x H
            horizontal = horizontal + nodes.unsqueeze(2) * embeddings.ranks(self.num_ranks, False)[-1]
        if embeddings.by_leaf_distance:
            vertical = vertical.to(mass.dtype)
            if self.excess is not None:
                more = self.sum((leaf_weight * self.excess.unsqueeze(2).to(leaf_weight)).sum(1))  # B x H
                vertical = vertical + more.unsqueeze(2) * embeddings.vertical.weight[-1]
            return torch.cat([vertical, horizontal], dim=2)
        embedded = functional.pad(horizontal, (embeddings.vertical.embedding_dim, 0))
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
        sizes: Optional[DocumentSizes] = None,
        limits: Optional[tuple[int, int]] = None,
    ) -> DocumentStructure:
        """Derives all indices, once a batch for all layers.

        ``document`` ``[R]`` is that of each row, ascending from 0, with every number in between; ``mask_subtrees`` and
        ``count_leaf`` are as in :meth:`TreeStructure.build`. The ``sizes`` are counted if they are not known;
        ``limits`` are the numbers of ranks and of lengths of :meth:`BranchSums.build`, None for no limits.
        """
        if sizes is None:
            sizes = DocumentSizes.count(batch.is_leaf, batch.is_node, document)
        leaves = Placement.build(batch.is_leaf, document, sizes.documents, sizes.leaves)
        super_roots, everything = None, None
        real = torch.cat([batch.is_leaf, batch.is_node], dim=1)
        if super_root:
            super_roots = SuperRoots.build(
                batch, rows, document, leaves.column, sizes, count_leaf, limits or (sizes.leaves, sizes.leaves)
            )
            rows = dataclasses.replace(rows, depth=rows.depth + 1)
            is_first = torch.zeros_like(document, dtype=torch.bool).index_fill(0, super_roots.first_row, True)
            real = torch.cat([real, is_first.unsqueeze(1)], dim=1)
        if super_root or (join_leaves and not mask_subtrees):
            everything = Placement.build(real, document, sizes.documents, sizes.positions + int(super_root))
        return cls(rows, leaves, everything, super_roots, join_leaves, mask_subtrees)

    @property
    def padding(self) -> Tensor:
        """``[R, S]``, or ``[R, S + 1]`` with super-roots, which come last in the first row of their document."""
        if self.super_roots is None:
            return self.rows.padding
        not_first = torch.ones_like(self.rows.padding[:, :1]).index_fill(0, self.super_roots.first_row, False)
        return torch.cat([self.rows.padding, not_first], dim=1)
