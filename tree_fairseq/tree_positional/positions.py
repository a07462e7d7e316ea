"""Tree positional encodings (Shiv & Quirk 2019, section 3), computed as sums of a few rows of a small table.

A node is encoded by its branch path: its last k steps down from the root, the most recent step first, each step a
one-hot vector over n branches. The encoding repeats this stack P times. Copy m weights level j by

    w_jm = p_m^j sqrt(1 - p_m^2) sqrt(D / 2),    p_m = tanh(raw_m)

Level j, branch c and copy m have entry (j * n + c) * P + m. A projection maps the n * k * P values to the model's width
D. Everything is linear in the one-hot vectors, so the position of a node is the sum of at most k rows of

    table[j * n + c] = sum_m w_jm projection[:, (j * n + c) * P + m]

which is computed once per batch. No node ever needs a vector of n * k * P values.
"""

import math
import sys
from dataclasses import dataclass
from typing import Any, Optional

import torch
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.errors import InputError
from tree_fairseq.nn.stock_weights import add_initial_weights
from tree_fairseq.nn.tree_lstm import node_depths
from tree_fairseq.support.options import option

# Names under which checkpoints hold fairseq's sequence positions: learned ones, and sinusoidal ones of old versions.
_SEQUENCE_POSITIONS = ("weight", "weights", "_float_tensor")


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreePositionsConfig(FairseqDataclass):
    """Options of tree positions, which are flags of the models that use them."""

    tree_levels: int = option(
        32, "k: how many steps of the path from the root a position encodes, the most recent ones"
    )
    tree_position_dim: int = option(
        2048,
        "width of the encoding before its projection; it holds one copy of the path, with a learned "
        "decay, for each n * k of the width, where n is the number of branches",
    )
    parameter_free_tree_positions: bool = option(
        False, "ablation: one copy of the path, all levels weighted alike, no decays"
    )
    tree_decay_init: ChoiceEnum(["paper", "uniform"]) = option(
        "uniform",
        "initial raw values of the P decays: 'uniform' draws them from U(0.7, 0.999), decays of 0.60 to 0.76; 'paper' "
        "from U(-sqrt(3/P), sqrt(3/P)) as the authors' code does, so that half of the decays are negative and all are "
        "small",
        published="paper",
    )
    sequence_positions: bool = option(
        False,
        "symbols of trees also get the positions of a transformer without trees; projections of tree positions start "
        "at zero, so the model starts as that transformer (not in the paper)",
        published=False,
    )


class TreePositions(nn.Module):
    """Computes positions of width D from branch paths over n ``branches``.

    The module takes the place of a transformer's ``embed_positions``. fairseq calls that with tokens only; the
    positions to return, ``[B, T, D]``, are put into ``given`` beforehand. Encodings as wide as the model have no
    projection, unless ``always_project``. With ``--sequence-positions`` those of the ``stock`` model are added. Raises
    InputError if the encoding is too narrow for one copy of the path.
    """

    def __init__(
        self,
        branches: int,
        width: int,
        config: TreePositionsConfig,
        always_project: bool = False,
        stock: Optional[nn.Module] = None,
    ):
        super().__init__()
        self.sequence = stock if config.sequence_positions else None
        self.max_positions = sys.maxsize if self.sequence is None else self.sequence.max_positions
        self.branches, self.levels, self.width = branches, config.tree_levels, width
        self.copies = _copies(branches, config)
        self.raw_decays = None if config.parameter_free_tree_positions else nn.Parameter(torch.empty(self.copies))
        encoding_width = branches * self.levels * self.copies
        is_projected = always_project or config.sequence_positions or encoding_width != width
        self.projection = nn.Linear(encoding_width, width) if is_projected else None
        # Empty: it only follows the model's dtype and device.
        self.register_buffer("_like", torch.empty(0), persistent=False)
        self.given: Optional[Tensor] = None
        if self.raw_decays is not None:
            bound = math.sqrt(3 / self.copies)
            nn.init.uniform_(self.raw_decays, *((-bound, bound) if config.tree_decay_init == "paper" else (0.7, 0.999)))
        if self.projection is not None:
            initialise = nn.init.zeros_ if config.sequence_positions else nn.init.xavier_uniform_
            initialise(self.projection.weight)
            nn.init.zeros_(self.projection.bias)

    def level_weights(self, levels: int) -> Tensor:
        """Returns the weights w of the first L of k levels, ``[L, P]``, in float32 or better."""
        scale = math.sqrt(self.width / 2)
        # High powers of decays underflow in half precision, and rounding errors of rows would add up.
        dtype = torch.promote_types(self._like.dtype, torch.float32)
        if self.raw_decays is None:
            return torch.full((levels, 1), scale, dtype=dtype, device=self._like.device)
        raw = self.raw_decays.to(dtype)
        steps = raw.tanh().expand(levels - 1, -1)
        powers = torch.cat([torch.ones_like(raw).unsqueeze(0), steps]).cumprod(0)  # L x P
        # 1 / cosh(x) is sqrt(1 - tanh(x)^2), with a gradient also where tanh(x) rounds to 1.
        return powers * raw.cosh().reciprocal() * scale

    def table(self, levels: int) -> Tensor:
        """Returns the projected steps of the first L of k levels, ``[L * n + 1, D]``, in float32 or better.

        Row j * n + c is branch c at level j; the last row is zero.
        """
        weights = self.level_weights(levels)
        if self.projection is None:
            steps, all_steps = levels * self.branches, self.levels * self.branches
            own = torch.eye(steps, all_steps, dtype=weights.dtype, device=weights.device)
            copies = weights.repeat_interleave(self.branches, dim=0).unsqueeze(1)  # L * n x 1 x P
            rows = (own.unsqueeze(-1) * copies).flatten(1)  # L * n x D
        else:
            # D x k * n * P -> D x k x n x P -> L * n x D
            matrix = self.projection.weight.to(weights.dtype).view(self.width, self.levels, self.branches, self.copies)
            rows = (matrix[:, :levels] * weights.unsqueeze(1)).sum(-1).flatten(1).t()
        return torch.cat([rows, rows.new_zeros(1, self.width)])

    def encode(self, paths: Tensor, table: Optional[Tensor] = None) -> Tensor:
        """Returns the positions of nodes, ``[..., D]``, in the model's dtype, given their paths, ``[..., L]``.

        ``table`` is the result of :meth:`table` for at least L levels; it is computed if None.
        """
        levels = paths.size(-1)
        table = self.table(levels) if table is None else table
        first_rows = torch.arange(0, levels * self.branches, self.branches, dtype=torch.int32, device=paths.device)
        rows = torch.where(paths < 0, len(table) - 1, paths + first_rows)  # ... x L
        positions = functional.embedding_bag(rows.reshape(-1, levels), table, mode="sum")  # nodes x D
        if self.projection is not None:
            # In place: this is the largest tensor here.
            positions += self.projection.bias
        return positions.to(self._like.dtype).view(*paths.shape[:-1], self.width)

    def forward(self, tokens: Tensor, incremental_state: Optional[dict[str, Any]] = None) -> Tensor:
        """Returns the given positions, once; with those of the sequence where the model has them."""
        positions, self.given = self.given, None
        if self.sequence is None:
            return positions
        return positions + self.sequence(tokens, incremental_state=incremental_state)

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> None:
        """Adds initial weights to the checkpoint of a stock model, whose positions are kept where this one has them."""
        own = self.state_dict()
        add_initial_weights(
            state_dict, {f"{name}.{key}": weight for key, weight in own.items() if not key.startswith("sequence.")}
        )
        for key in _SEQUENCE_POSITIONS:
            weight = state_dict.pop(f"{name}.{key}", None)
            if weight is not None and f"sequence.{key}" in own:
                state_dict[f"{name}.sequence.{key}"] = weight


def _copies(branches: int, config: TreePositionsConfig) -> int:
    """Returns P."""
    if config.parameter_free_tree_positions:
        return 1
    least = branches * config.tree_levels
    if config.tree_position_dim < least:
        raise InputError(
            f"--tree-position-dim {config.tree_position_dim} is too narrow for trees of {branches} branches and "
            f"{config.tree_levels} levels",
            hint=f"It takes at least --tree-position-dim {least}, or fewer levels with --tree-levels.",
        )
    return config.tree_position_dim // least


def branch_paths(parents: Tensor, branches: Tensor, levels: int, depth: Optional[int] = None) -> Tensor:
    """Returns the branch path of every node: its last steps from the root, the most recent one first (eq. 1).

    Paths are built by doubling: steps 2^s to 2^(s+1) - 1 of a node are the first 2^s steps of its ancestor 2^s levels
    up.

    Args:
        parents: ``[B, N]`` int64, column of each node's parent; -1 for roots and for columns outside the tree
        branches: ``[B, N]`` int64, branch of each node under its parent; -1 as above
        levels: k, the number of steps to keep
        depth: of the deepest node; the host asks the device for it if it is None

    Returns:
        ``[B, N, L]`` int16, branch of the node, of its parent, of its parent's parent, ...; -1 past the root. L is the
        depth of the deepest node, at least 1 and at most k

    Examples:
        >>> # a root, its children on branches 0 and 1, and a child of the second on branch 0
        >>> branch_paths(torch.tensor([[-1, 0, 0, 2]]), torch.tensor([[-1, 0, 1, 0]]), levels=32).tolist()
        [[[-1, -1], [0, -1], [1, -1], [0, 1]]]
    """
    paths = branches.to(torch.int16).unsqueeze(-1)  # B x N x L
    ancestors = parents  # B x N, L levels up
    if depth is None:
        depth = int(node_depths(parents).max()) if parents.numel() else 0
    while paths.size(-1) < min(depth, levels):
        here = ancestors.clamp(min=0)
        above = paths.gather(1, here.unsqueeze(-1).expand_as(paths))
        paths = torch.cat([paths, above.masked_fill(ancestors.unsqueeze(-1) < 0, -1)], dim=-1)
        ancestors = ancestors.gather(1, here).masked_fill(ancestors < 0, -1)
    return paths[..., : min(max(depth, 1), levels)]


def paths_of_batch(tree: dict[str, Any], levels: int) -> Tensor:
    """:func:`branch_paths` of trees as :func:`tree_fairseq.tasks.pair_dataset.collate_symbol_trees` makes them."""
    depth = len(tree["level_sizes"]) - 1 if "level_sizes" in tree else None
    return branch_paths(tree["parents"], tree["branches"], levels, depth)
