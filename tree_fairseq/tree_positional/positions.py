"""Tree positional encodings (Shiv & Quirk 2019, section 3) as sums of few rows of a small table.

With n branches and k levels, a node is encoded as a stack of its last k steps from the root, the most recent one first,
each a one-hot vector of n. P copies of it, weighted by geometric series, make the encoding: copy m of level j counts

    w_jm = p_m^j sqrt(1 - p_m^2) sqrt(D / 2),    p_m = tanh(raw_m)

The entry of level j, branch c and copy m is (j * n + c) * P + m. A projection takes the n * k * P values to the D of the
model. All of that is linear in the one-hot vectors, so that the position of a node is the sum of at most k rows of

    table[j * n + c] = sum_m w_jm projection[:, (j * n + c) * P + m]

which is computed once a batch. Nothing as wide as n * k * P is ever built for a node.
"""

import contextlib
import logging
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Optional

import torch
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.errors import InputError

logger = logging.getLogger(__name__)

# What fairseq's positions of sequences leave in a checkpoint: learned ones, and sinusoidal ones of old versions.
_SEQUENCE_POSITIONS = ("weight", "weights", "_float_tensor")


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreePositionsConfig(FairseqDataclass):
    """Options of tree positions; each is a flag of the models that use them."""

    tree_levels: int = field(
        default=32,
        metadata={"help": "steps from the root to a node that its position remembers, the most recent ones: k"},
    )
    tree_position_dim: int = field(
        default=2048,
        metadata={
            "help": "width of the encoding before its projection: one decay is learned for each n * k of it, where n is the "
            "number of branches; what is left over is not used"
        },
    )
    parameter_free_tree_positions: bool = field(
        default=False, metadata={"help": "ablation: one copy of the stack, all levels weighing the same; no decays"}
    )
    tree_decay_init: ChoiceEnum(["paper", "uniform"]) = field(
        default="paper",
        metadata={
            "help": "raw values of the P decays at first: 'paper' draws from U(-sqrt(3/P), sqrt(3/P)), half of them negative "
            "and all small, 'uniform' from U(0.7, 0.999), decays of 0.60 to 0.76"
        },
    )


class TreePositions(nn.Module):
    """Positions of nodes from the paths to them.

    Stands where fairseq's transformers have the positions of sequences. Those are computed from tokens, and fairseq calls
    them with tokens; what they answer here is given beforehand, by :meth:`given`.

    Args:
        branches: n
        width: D
        config: options
        always_project: projects also where the encoding is as wide as the model

    Raises:
        InputError: the encoding is too narrow for a single copy
    """

    max_positions = sys.maxsize

    def __init__(self, branches: int, width: int, config: TreePositionsConfig, always_project: bool = False):
        super().__init__()
        self.branches, self.levels, self.width = branches, config.tree_levels, width
        self.copies = _copies(branches, config)
        self.raw_decays = None if config.parameter_free_tree_positions else nn.Parameter(torch.empty(self.copies))
        encoding_width = branches * self.levels * self.copies
        is_projected = always_project or encoding_width != width
        self.projection = nn.Linear(encoding_width, width) if is_projected else None
        # Has no values: its type and device are those of the model.
        self.register_buffer("_like", torch.empty(0), persistent=False)
        self._given: Optional[Tensor] = None
        self._reset_parameters(config)

    def _reset_parameters(self, config: TreePositionsConfig) -> None:
        if self.raw_decays is not None:
            bound = math.sqrt(3 / self.copies)
            nn.init.uniform_(self.raw_decays, *((-bound, bound) if config.tree_decay_init == "paper" else (0.7, 0.999)))
        if self.projection is not None:
            nn.init.xavier_uniform_(self.projection.weight)
            nn.init.zeros_(self.projection.bias)

    @property
    def _dtype(self) -> torch.dtype:
        # High powers of decays underflow in half precision, and errors of rows would add up.
        return torch.promote_types(self._like.dtype, torch.float32)

    def level_weights(self, levels: int) -> Tensor:
        """What each copy counts at each level, ``w``.

        Args:
            levels: how many of the k levels, L

        Returns:
            ``[L, P]``, float32 or better
        """
        scale = math.sqrt(self.width / 2)
        if self.raw_decays is None:
            return torch.full((levels, 1), scale, dtype=self._dtype, device=self._like.device)
        raw = self.raw_decays.to(self._dtype)
        steps = raw.tanh().expand(levels - 1, -1)
        powers = torch.cat([torch.ones_like(raw).unsqueeze(0), steps]).cumprod(0)  # L x P
        # 1 / cosh(x) is sqrt(1 - tanh(x)^2), with a gradient also where tanh(x) rounds to 1.
        return powers * raw.cosh().reciprocal() * scale

    def table(self, levels: int) -> Tensor:
        """The projected steps.

        Args:
            levels: how many of the k levels, L

        Returns:
            ``[L * n + 1, D]``, float32 or better: branch c at level j in row j * n + c, and a row of zeros
        """
        weights = self.level_weights(levels)
        if self.projection is None:
            own = torch.eye(
                levels * self.branches, self.levels * self.branches, dtype=weights.dtype, device=weights.device
            )
            copies = weights.repeat_interleave(self.branches, dim=0).unsqueeze(1)  # L * n x 1 x P
            rows = (own.unsqueeze(-1) * copies).flatten(1)  # L * n x D
        else:
            matrix = self.projection.weight.to(weights.dtype).view(self.width, self.levels, self.branches, self.copies)
            rows = (matrix[:, :levels] * weights.unsqueeze(1)).sum(-1)  # D x L x n
            rows = rows.flatten(1).t()
        return torch.cat([rows, rows.new_zeros(1, self.width)])

    def encode(self, paths: Tensor, table: Optional[Tensor] = None) -> Tensor:
        """The positions of nodes.

        Args:
            paths: ``[..., L]`` integers, the branches from a node up to its root, -1 past it
            table: of :meth:`table`, for at least L levels, where it is at hand

        Returns:
            ``[..., D]``, in the type of the model
        """
        levels = paths.size(-1)
        table = self.table(levels) if table is None else table
        first_rows = torch.arange(0, levels * self.branches, self.branches, dtype=torch.int32, device=paths.device)
        rows = torch.where(paths < 0, len(table) - 1, paths + first_rows)  # ... x L
        positions = functional.embedding_bag(rows.reshape(-1, levels), table, mode="sum")
        if self.projection is not None:
            # In place: nothing else here is as large as a batch of positions.
            positions += self.projection.bias
        return positions.to(self._like.dtype).view(*paths.shape[:-1], self.width)

    @contextlib.contextmanager
    def given(self, positions: Tensor) -> Iterator[None]:
        """Within it, a call answers these positions, ``[B, T, D]``."""
        self._given = positions
        try:
            yield
        finally:
            self._given = None

    def forward(self, tokens: Tensor, incremental_state: Optional[dict[str, Any]] = None) -> Tensor:
        """fairseq's call for the positions of tokens: those of :meth:`given`."""
        return self._given

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> None:
        """Completes the weights of a model with positions of sequences by initial ones, and says which.

        Args:
            state_dict: of the whole model
            name: of this module in it
        """
        own = {f"{name}.{key}": weight for key, weight in self.state_dict().items()}
        if own and not any(key in state_dict for key in own):
            state_dict.update(own)
            logger.info("weights that the checkpoint does not have, left as initialised: %s", ", ".join(own))
        for key in _SEQUENCE_POSITIONS:
            state_dict.pop(f"{name}.{key}", None)


def _copies(branches: int, config: TreePositionsConfig) -> int:
    if config.tree_levels < 1:
        raise InputError(
            f"--tree-levels {config.tree_levels} remembers nothing", hint="Positions need at least one level."
        )
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


# FROM modules/branch_paths: Paths of branches from nodes up to their roots, for all nodes of a batch at once.

_warned: set[int] = set()


def branch_paths(parents: Tensor, branches: Tensor, levels: int) -> Tensor:
    """The last steps on the way from the root to each node, the most recent one first (Shiv & Quirk 2019, eq. 1).

    Paths double: the steps 2^s to 2^(s+1) - 1 of a node are the first 2^s of its ancestor 2^s levels up.

    Args:
        parents: ``[B, N]`` int64, column of each node's parent; -1 for roots and for what belongs to no tree
        branches: ``[B, N]`` int64, branch of each node under its parent; -1 as above
        levels: steps that are kept, k; warns once where a tree is deeper

    Returns:
        ``[B, N, L]`` int16, branch of the node, of its parent, of its parent's parent, ...; -1 where the root was passed.
        L is at least 1 and no more than k or than the deepest node of the batch needs
    """
    paths = branches.to(torch.int16).unsqueeze(-1)  # B x N x L
    ancestors = parents  # B x N, L levels up
    while paths.size(-1) < levels and bool((ancestors >= 0).any()):
        here = ancestors.clamp(min=0)
        above = paths.gather(1, here.unsqueeze(-1).expand_as(paths))
        paths = torch.cat([paths, above.masked_fill(ancestors.unsqueeze(-1) < 0, -1)], dim=-1)
        ancestors = ancestors.gather(1, here).masked_fill(ancestors < 0, -1)
    depth = int((paths >= 0).any(0).any(0).sum())
    # Branches tell what is missing: the parent of a node that stands k levels deep is the root's, not forgotten.
    if depth > levels or bool((branches.gather(1, ancestors.clamp(min=0)) >= 0).logical_and(ancestors >= 0).any()):
        warn_of_depth(_deepest(parents), levels)
    return paths[..., : min(max(depth, 1), levels)]


def warn_of_depth(depth: int, levels: int) -> None:
    """Says, once a run, that trees are deeper than what positions remember.

    Args:
        depth: levels from the root to a node
        levels: steps that are kept
    """
    if levels not in _warned:
        _warned.add(levels)
        logger.warning(
            "a tree has a symbol %d levels below its root, and positions remember the last %d steps to it: earlier ones are "
            "forgotten (--tree-levels). This is said once.",
            depth,
            levels,
        )


def _deepest(parents: Tensor) -> int:
    depth, ancestors = 0, parents
    while bool((ancestors >= 0).any()):
        depth += 1
        ancestors = parents.gather(1, ancestors.clamp(min=0)).masked_fill(ancestors < 0, -1)
    return depth
