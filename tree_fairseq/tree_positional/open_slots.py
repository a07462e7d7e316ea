"""Where the next symbols of trees that grow symbol by symbol belong."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from tree_fairseq.data_bin.symbol_dictionary import SymbolTable
from tree_fairseq.tree_positional.positions import warn_of_depth

# Columns of a frame: the column of a symbol among the tokens, the branch that its next child stands on, the branch after
# its last child's, and its id.
_COLUMN, _BRANCH, _END, _SYMBOL = range(4)
_ROOT = (-1, -1, 0, -1)


class OpenSlots:
    """The slots of R growing trees that are still to be filled.

    A symbol with children opens one frame, however many children it has: those that are missing follow each other.
    Depth-first trees take the frame that was opened last (a stack), breadth-first trees the one that was opened first (a
    queue). All rows move at once, without a loop over rows and without waiting for the device.

    Args:
        rows: number of trees R; all are empty, with the root's slot open
        symbols: what the ids mean
        device: where the tensors live

    Attributes:
        count: ``[R]`` int64, open slots; 1 at the start and 0 when a tree is complete
        length: number of ids that every row was given so far
    """

    def __init__(self, rows: int, symbols: SymbolTable, device: torch.device | str | None = None):
        self._symbols = symbols.to(device if device is not None else symbols.arity.device)
        self._is_stack = symbols.encoding.traversal == "dfs"
        device = self._symbols.arity.device
        self.length = 0
        self.count = torch.ones(rows, dtype=torch.int64, device=device)
        # Column 0 is never read: it takes what rows write that open no frame.
        self._frames = torch.tensor(_ROOT, device=device).repeat(rows, 2, 1)  # [R, frames, 4]
        self._next = self._frames[:, 1]  # [R, 4], the frame that holds the next slot
        self._place = self.count.clone()  # [R], where that frame stands
        self._last = self.count.clone()  # [R], where the frame stands that was opened last

    def next_parent(self) -> Tensor:
        """The parents of the slots to be filled next.

        Returns:
            ``[R]`` int64, columns in ``prev_output_tokens``, where START is 0 and symbol t is t + 1; -1 for the root and
            where the tree is complete
        """
        return self._of_next(_COLUMN)

    def next_branch(self) -> Tensor:
        """The branches of the slots to be filled next, ``[R]`` int64; -1 for the root and where the tree is complete."""
        return self._of_next(_BRANCH)

    def next_parent_symbol(self) -> Tensor:
        """The ids of the parents of the slots to be filled next, ``[R]`` int64; -1 as in :meth:`next_parent`."""
        return self._of_next(_SYMBOL)

    def advance(self, tokens: Tensor) -> None:
        """Fills the next slot of every tree.

        Args:
            tokens: ``[R]`` ids; one that is no symbol (EOS, padding), or that comes when the tree is complete, fills nothing
                but takes a column
        """
        self.length += 1
        self._reserve()
        arity = self._symbols.arity[tokens]
        fills = (self.count > 0) & (arity >= 0)
        opens = fills & (arity > 0)
        rows = torch.arange(len(tokens), device=tokens.device)

        branch = self._next[:, _BRANCH] + fills
        self._frames[rows, self._place, _BRANCH] = branch
        is_exhausted = fills & (branch == self._next[:, _END])
        if self._is_stack:
            # The frame under an exhausted one, whose place the new frame takes.
            self._place = self._place - is_exhausted.long() + opens
            opened = self._place
        else:
            self._place = self._place + is_exhausted
            self._last = opened = self._last + opens
        first = self._symbols.first_branch[tokens]
        frame = torch.stack([torch.full_like(first, self.length), first, first + arity, tokens], dim=1)  # [R, 4]
        self._frames[rows, opened * opens] = frame
        self.count = self.count + fills * (arity - 1)
        self._next = self._frames[rows, self._place]

    def reorder(self, order: Tensor) -> None:
        """Replaces row i by what was row ``order[i]``; rows may be repeated or left out.

        Args:
            order: ``[R']`` int64
        """
        self.count, self._frames, self._next, self._place, self._last = (
            state.index_select(0, order) for state in (self.count, self._frames, self._next, self._place, self._last)
        )

    def _of_next(self, field: int) -> Tensor:
        return self._next[:, field].masked_fill(self.count == 0, -1)

    def _reserve(self) -> None:
        # The frame that is never read, the root's, one for each id, and the one past them where a complete queue ends.
        rows, reserved, _ = self._frames.shape
        if self.length + 3 > reserved:
            more = self._frames.new_full((rows, max(reserved, 16), len(_ROOT)), -1)
            self._frames = torch.cat([self._frames, more], dim=1)


# FROM modules/growing_paths: Paths of branches to the nodes of trees that grow symbol by symbol.


class GrowingPaths:
    """Where the columns of ``prev_output_tokens`` stand in R trees, column by column.

    Args:
        rows: number of trees R
        symbols: what the ids mean
        levels: steps of a path that are kept, k
        device: where the tensors live

    Attributes:
        columns: ``[R, T, L]`` int16, the paths of the columns so far, as :mod:`tree_fairseq.tree_positional.positions` has them;
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
