"""Paths of branches to the nodes of trees that grow symbol by symbol."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from tree_fairseq.data.symbol_table import SymbolTable
from tree_fairseq.modules.branch_paths import warn_of_depth
from tree_fairseq.modules.open_slots import OpenSlots


class GrowingPaths:
    """Where the columns of ``prev_output_tokens`` stand in R trees, column by column.

    Args:
        rows: number of trees R
        symbols: what the ids mean
        levels: steps of a path that are kept, k
        device: where the tensors live

    Attributes:
        columns: ``[R, T, L]`` int16, the paths of the columns so far, as :mod:`tree_fairseq.modules.branch_paths` has them;
            L is at least that of the longest
        next: ``[R, L']`` int16, the paths of the slots to be filled next; -1 where the tree is complete
    """

    def __init__(self, rows: int, symbols: SymbolTable, levels: int, device: torch.device):
        self._levels = levels
        self._arity = symbols.arity.to(device)
        self._slots = OpenSlots(rows, symbols, device)
        self.columns = torch.full((rows, 0, 1), -1, dtype=torch.int16, device=device)
        self.next = self.columns.new_full((rows, 1), -1)

    def append(self, tokens: Tensor) -> None:
        """Takes the next column.

        Args:
            tokens: ``[R]`` ids; in the first column they stand for START, whatever they are
        """
        is_start = self.columns.size(1) == 0
        path = self.next
        if is_start:
            path = torch.full_like(path, -1)
        else:
            path = path.masked_fill(self._arity[tokens].unsqueeze(1) < 0, -1)
            self._slots.advance(tokens)
        columns = padded_paths(self.columns, path.size(-1))
        self.columns = torch.cat([columns, path.unsqueeze(1)], dim=1)
        self.next = self._path_of_next()

    def reorder(self, order: Tensor) -> None:
        """Replaces row i by what was row ``order[i]``; rows may be repeated or left out.

        Args:
            order: ``[R']`` int64
        """
        self._slots.reorder(order)
        self.columns, self.next = self.columns.index_select(0, order), self.next.index_select(0, order)

    def _path_of_next(self) -> Tensor:
        parent, branch = self._slots.next_parent(), self._slots.next_branch()
        levels = self.columns.size(-1)
        # Without a parent it is START's path that is taken, which is empty.
        column = parent.clamp(min=0)[:, None, None].expand(-1, 1, levels)
        above = self.columns.gather(1, column).squeeze(1)  # R x L
        if levels == self._levels:
            # A path of k steps is possible from column k on: only then the device is asked.
            if self.columns.size(1) > levels and bool((above[:, -1] >= 0).any()):
                warn_of_depth(levels + 1, levels)
            above = above[:, :-1]
        return torch.cat([branch.to(above.dtype).unsqueeze(1), above], dim=1)


def padded_paths(paths: Tensor, levels: int) -> Tensor:
    """The same paths ``[..., L]`` with room for ``levels`` steps."""
    return functional.pad(paths, (0, levels - paths.size(-1)), value=-1)
