"""N-ary Tree-LSTM (Tai, Socher & Manning 2015) over a batch of trees, from the leaves up; a base of decoders."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from fairseq.models import FairseqDecoder, FairseqIncrementalDecoder
from torch import Tensor, nn
from torch.nn import functional

MAX_POSITIONS = 100_000  # fairseq's limit for recurrent networks, which have none of their own


class RecurrentDecoder(FairseqIncrementalDecoder):
    """Computes features, then logits by a layer of its own, or by the embeddings if ``output_projection`` is None."""

    forward = FairseqDecoder.forward

    def max_positions(self) -> int:
        """Returns the length of the longest target."""
        return MAX_POSITIONS

    def output_layer(self, features: Tensor) -> Tensor:
        """Computes logits ``[R, T, V]`` from features ``[R, T, D]``."""
        if self.output_projection is None:
            return functional.linear(features, self.embed_tokens.weight)
        return self.output_projection(features)


class BranchLinear(nn.Module):
    """Linear layers for n branches, the ``degree``, applied to nodes that are sorted by branch."""

    def __init__(self, degree: int, in_features: int, out_features: int, bias: bool = True):
        super().__init__()
        # One tensor for all branches: a batch without some branch still gives every parameter a gradient.
        self.weight = nn.Parameter(torch.empty(degree, out_features, in_features))
        self.bias = nn.Parameter(torch.empty(degree, out_features)) if bias else None
        bound = in_features**-0.5  # as in torch.nn.Linear
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def layers(self) -> list[tuple[Tensor, Tensor | None]]:
        """The weight and the bias of each branch."""
        biases = [None] * len(self.weight) if self.bias is None else self.bias.unbind(0)
        return list(zip(self.weight.unbind(0), biases))


def by_branch(inputs: Tensor, sizes: list[int], layers: list[tuple[Tensor, Tensor | None]]) -> Tensor:
    """Applies the layers of their branches to nodes ``[M, in_features]``, M > 0; ``sizes`` are those of branches."""
    parts = [functional.linear(part, *layer) for part, layer in zip(inputs.split(sizes), layers) if len(part)]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def with_zero_gradients(values: Tensor, parameters: Iterable[Tensor]) -> Tensor:
    """Returns the values unchanged, and gives gradients of zero to parameters that the values do not depend on.

    Processes that train together wait for a gradient of every parameter, also for batches that do not need it.
    """
    return values + sum(parameter.flatten()[:0].sum() for parameter in parameters)


@dataclass(frozen=True)
class TreeLevels:
    """M nodes of B trees over N columns, in order of their depth, then of their branch.

    The children of a level are the next level, so a network goes down or up in as many steps as the deepest tree has
    levels. Python reads the sizes of levels alone, which come with the batch (:func:`level_sizes`).
    """

    columns: Tensor  # ``[M]`` int64, row * N + column of each node
    levels: Tensor  # ``[M]`` int64, depth of each node; 0 for roots
    branches: Tensor  # ``[M]`` int64, branch under the parent; 0 for roots
    # for each level ``[nodes]`` int64, which node of the level above is the parent; all 0 for roots
    above: tuple[Tensor, ...]
    # for each level the number of its nodes on each branch, n of them; roots count as branch 0
    branch_sizes: list[list[int]]
    shape: tuple[int, int]  # B and N

    @classmethod
    def of(
        cls, parents: Tensor, branches: Tensor, mask: Tensor, degree: int, sizes: np.ndarray | None = None
    ) -> TreeLevels:
        """The levels of a batch.

        Parents, branches and mask are those of :meth:`TreeLSTM.forward`. Without the ``sizes`` of
        :func:`level_sizes`, the host asks the device for them.
        """
        batch, width = parents.shape
        if sizes is None:
            sizes = level_sizes(*(values.cpu().numpy() for values in (parents, branches, mask)), degree)
        num_nodes = int(sizes.sum())
        keys = (node_depths(parents) * degree + branches.clamp(min=0)).masked_fill(~mask, torch.iinfo(torch.int64).max)
        keys, columns = keys.flatten().sort(stable=True)
        keys, columns = keys[:num_nodes], columns[:num_nodes]  # M; columns without a node are last

        places = columns.new_zeros(batch * width)
        places = places.index_copy(0, columns, torch.arange(num_nodes, device=parents.device))
        parent = parents.flatten()[columns]
        own = places[columns - columns % width + parent.clamp(min=0)]
        levels = keys // degree
        # Where the level above a level begins; level 0 has none.
        totals = columns.new_zeros(len(sizes) + 2).index_add(0, levels + 2, torch.ones_like(levels))
        above = (own - totals.cumsum(0)[levels]).masked_fill(parent < 0, 0)
        return cls(columns, levels, keys % degree, above.split(sizes.sum(1).tolist()), sizes.tolist(), (batch, width))

    @property
    def sizes(self) -> list[int]:
        """Number of nodes of each level."""
        return [len(above) for above in self.above]

    def take(self, values: Tensor) -> Tensor:
        """The values ``[M, ...]`` of the nodes, in order, from ``[B, N, ...]``."""
        return values.flatten(0, 1).index_select(0, self.columns)

    def put(self, values: Tensor) -> Tensor:
        """``[B, N, ...]`` from the values ``[M, ...]`` of the nodes; zero elsewhere."""
        empty = values.new_zeros(self.shape[0] * self.shape[1], *values.shape[1:])
        return empty.index_copy(0, self.columns, values).unflatten(0, self.shape)

    def slots_by_row(self, level_widths: np.ndarray | None = None) -> tuple[tuple[Tensor, ...], list[int]]:
        """Places of the nodes of each level in a grid with a row for each tree, and the grids' widths.

        Places are ``[nodes]`` int64, row * width + place in the row. Without the result of :func:`level_widths`, the
        host asks the device for it.
        """
        batch, width = self.shape
        cells = self.levels * batch + self.columns // width
        order = cells.argsort(stable=True)
        counts = cells.new_zeros(batch * len(self.above)).index_add(0, cells, torch.ones_like(cells))
        starts = counts.cumsum(0) - counts
        places = torch.empty_like(cells)
        places[order] = torch.arange(len(cells), device=cells.device) - starts[cells[order]]
        widths = counts.view(-1, batch).amax(1)
        slots = cells % batch * widths[self.levels] + places
        return slots.split(self.sizes), (widths if level_widths is None else level_widths).tolist()


def level_sizes(parents: np.ndarray, branches: np.ndarray, mask: np.ndarray, degree: int) -> np.ndarray:
    """Counts the nodes of each level on each branch, ``[L, n]`` int64, as :class:`TreeLevels` does; for collaters.

    Parents, branches and mask ``[B, N]`` are those of :meth:`TreeLSTM.forward`.
    """
    keys = (_depths(parents) * degree + np.maximum(branches, 0))[mask]
    counts = np.bincount(keys)
    return np.pad(counts, (0, -len(counts) % degree)).reshape(-1, degree)


def level_widths(parents: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Counts the nodes of each level in the tree that has most of them, ``[L]`` int64.

    Parents and mask ``[B, N]`` are those of :meth:`TreeLSTM.forward`.
    """
    depths, batch = _depths(parents), len(parents)
    counts = np.bincount((depths * batch + np.arange(batch)[:, None])[mask])
    return np.pad(counts, (0, -len(counts) % batch)).reshape(-1, batch).max(axis=1, initial=0)


def _depths(parents: np.ndarray) -> np.ndarray:
    return node_depths(torch.from_numpy(np.asarray(parents, np.int64))).numpy()


def node_depths(parents: Tensor) -> Tensor:
    """Counts the steps from each column to its root, ``[B, N]``. It doubles steps, so it never waits for the device."""
    depths, ancestors = (parents >= 0).long(), parents
    for _ in range(max(parents.size(1) - 1, 1).bit_length()):
        here = ancestors.clamp(min=0)
        depths = depths + depths.gather(1, here).masked_fill(ancestors < 0, 0)
        ancestors = ancestors.gather(1, here).masked_fill(ancestors < 0, -1)
    return depths


class TreeLSTM(nn.Module):
    r"""States of all nodes of trees whose children stand on n branches (Tai et al. 2015, eqs. 9 to 14).

    For a node with features x and the child (h_k, c_k) on branch k, zero where it is missing::

        i = σ(W_i x + Σ_l U_il h_l + b_i)      f_k = σ(W_f x + Σ_l U_fkl h_l + b_f)
        o = σ(W_o x + Σ_l U_ol h_l + b_o)      c = i ⊙ u + Σ_k f_k ⊙ c_k
        u = tanh(W_u x + Σ_l U_ul h_l + b_u)   h = o ⊙ tanh(c)

    All nodes of a level are computed together, the deepest level first.

    Args:
        input_dim, hidden_dim, degree: E, D and n; for n > 2, U_fkl is zero for k ≠ l, as the paper proposes
    """

    def __init__(self, input_dim: int, hidden_dim: int, degree: int):
        super().__init__()
        self.hidden_dim, self.degree = hidden_dim, degree
        self.full_forget_gates = degree <= 2  # the gate of a child also depends on its siblings
        self.from_features = nn.Linear(input_dim, 4 * hidden_dim)
        num_forget_gates = degree if self.full_forget_gates else 1
        self.from_children = BranchLinear(degree, hidden_dim, (3 + num_forget_gates) * hidden_dim, bias=False)

    def forward(
        self, features: Tensor, parents: Tensor, branches: Tensor, mask: Tensor, sizes: np.ndarray | None = None
    ) -> tuple[Tensor, Tensor]:
        """Computes h and c of all nodes, each ``[B, N, D]``; columns without a node are zero.

        Args:
            features: ``[B, N, E]``
            parents: ``[B, N]`` int64, column of each node's parent, which is a node; -1 for roots
            branches: ``[B, N]`` int64, branch of each node under its parent, less than n; -1 for roots
            mask: ``[B, N]`` bool, which columns hold nodes
            sizes: of levels, see :func:`level_sizes`; the host asks the device for them if they are None
        """
        levels = TreeLevels.of(parents, branches, mask, self.degree, sizes)
        gates = self.from_features(levels.take(features)).split(levels.sizes)
        branches_by_level = levels.branches.split(levels.sizes)
        layers, states, children = self.from_children.layers(), [], None
        for level in reversed(range(len(gates))):
            h, c = self._level(gates[level], children, layers)
            states.append((h, c))
            children = (h, c, levels.above[level], branches_by_level[level], levels.branch_sizes[level])
        if not states:
            nothing = with_zero_gradients(features.new_zeros(*mask.shape, self.hidden_dim), self.parameters())
            return nothing, nothing
        h, c = (levels.put(torch.cat(kind)) for kind in zip(*reversed(states)))
        return h if len(states) > 1 else with_zero_gradients(h, self.from_children.parameters()), c

    def _level(self, gates: Tensor, children: tuple | None, layers: list) -> tuple[Tensor, Tensor]:
        """h and c of a level from its gates, ``[nodes, 4 D]``, and the level below."""
        width = self.hidden_dim
        if children is None:
            i, o, u = gates[:, : 3 * width].chunk(3, dim=1)
            c = i.sigmoid() * u.tanh()
            return o.sigmoid() * c.tanh(), c
        h_below, c_below, above, branch, sizes = children
        terms = by_branch(h_below, sizes, layers)  # children x (3 + gates) D
        # Sums begin at zero, so two summands give the same sum in any order on any device. A node may have many
        # children, so halves are summed in single precision.
        single = torch.promote_types(gates.dtype, torch.float32)
        sums = terms.new_zeros(len(gates), terms.size(1) if self.full_forget_gates else 3 * width, dtype=single)
        sums = sums.index_add(0, above, terms[:, : sums.size(1)].to(single)).to(gates.dtype)
        i, o, u = (gates[:, : 3 * width] + sums[:, : 3 * width]).chunk(3, dim=1)
        if self.full_forget_gates:
            # nodes x n * D -> nodes * n x D, of which each child takes the row of its branch
            forget = sums[:, 3 * width :].reshape(-1, width)[above * self.degree + branch]
        else:
            forget = terms[:, 3 * width :]
        forget = (gates[:, 3 * width :][above] + forget).sigmoid()
        kept = torch.zeros_like(i, dtype=single).index_add(0, above, (forget * c_below).to(single))
        c = i.sigmoid() * u.tanh() + kept.to(i.dtype)
        return o.sigmoid() * c.tanh(), c
