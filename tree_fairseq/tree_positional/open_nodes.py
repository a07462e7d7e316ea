"""The open nodes of trees that are generated symbol by symbol: where the next symbol belongs, and the path to it.

A node is *open* once its parent has been generated and its own symbol has not.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tree_fairseq.data_bin.symbol_dictionary import SymbolTable

# A frame has the column of a symbol among the tokens, the branch of its next child, the branch after its last child,
# and its id.
_BRANCH, _END = 1, 2
_ROOT = (-1, -1, 0, -1)


class OpenNodes:
    """The open nodes of R partial trees, which start empty, with an open root.

    A symbol with children opens one frame, however many children it has, because its missing children are consecutive.
    Depth-first generation continues the frame opened last (a stack), breadth-first generation the frame opened first (a
    queue). All rows advance together, without a loop over rows and without waiting for the device.

    Attributes:
        count: ``[R]`` int64, open nodes; 1 at the start and 0 when a tree is complete
        length: number of ids that every row has received
    """

    def __init__(self, rows: int, symbols: SymbolTable, device: torch.device | str):
        self._symbols = symbols.to(device)
        self._is_stack = symbols.encoding.traversal == "dfs"
        self.length = 0
        self.count = torch.ones(rows, dtype=torch.int64, device=device)
        # Frame 0 is never read: rows that open no frame write there.
        self._frames = torch.tensor(_ROOT, device=device).repeat(rows, 2, 1)  # [R, frames, 4]
        self._next = self._frames[:, 1]  # [R, 4], the frame of the next open node
        self._place = self.count.clone()  # [R], the index of that frame
        self._last = self.count.clone()  # [R], the index of the frame opened last

    def next(self) -> tuple[Tensor, Tensor, Tensor]:
        """Returns for the next open nodes the parent's column, the branch under it, and the parent's id, ``[R]`` int64.

        START is column 0 and symbol t is column t + 1. All three are -1 for the root and for a complete tree.
        """
        column, branch, _, symbol = self._next.masked_fill((self.count == 0)[:, None], -1).unbind(1)
        return column, branch, symbol

    def advance(self, tokens: Tensor) -> None:
        """Fills the next open node of every tree with an id, ``[R]``.

        EOS, padding, and any id after the tree is complete fill no node but take a column.
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
            # Below an exhausted frame lies the next one; a new frame replaces the exhausted one.
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
        """Makes row ``order[i]`` the new row i; ``order`` is ``[R']`` int64 and may repeat or omit rows."""
        self.count, self._frames, self._next, self._place, self._last = (
            state.index_select(0, order) for state in (self.count, self._frames, self._next, self._place, self._last)
        )

    def _reserve(self) -> None:
        # Frame 0, the root's frame, one for each id, and one past them, where a complete queue ends.
        rows, reserved, _ = self._frames.shape
        if self.length + 3 > reserved:
            more = self._frames.new_full((rows, max(reserved, 16), len(_ROOT)), -1)
            self._frames = torch.cat([self._frames, more], dim=1)
