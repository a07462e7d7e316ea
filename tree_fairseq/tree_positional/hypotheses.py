"""The partial trees of a structural search, and which symbols may follow in each.

The *kind* of an open node determines which symbols may fill it; the kinds of the nodes that a symbol opens depend on
the symbol alone. The smallest subtree of each kind is a fixed point over the kinds. A symbol is legal if the smallest
subtrees of all open nodes still fit into the limit. A node is *open* once its parent has been generated and its own
symbol has not.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tree_fairseq.data_bin.grammar import FieldTable
from tree_fairseq.data_bin.symbol_dictionary import SymbolTable
from tree_fairseq.errors import StructuralSearchError

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


IMPOSSIBLE = 2**15 - 1
"""The number of symbols that must follow a symbol where it is illegal; 16 bits, because each step reads many."""

_INFINITE = 2**40  # symbols of a subtree that never ends; the sum of a million of them still fits into 64 bits

# Kinds that every table has. Complete trees have kind CLOSED; the only sibling of the root is <null>.
CLOSED, ROOT, ROOT_SIBLING = range(3)


@dataclass(frozen=True)
class LegalSymbols:
    """The Q kinds of open nodes and the symbols that may fill them.

    Attributes:
        kinds: ``[V + 1, n]`` int64, kind of the child on each branch of a symbol; the last row is the root's kind
        smallest: ``[Q]`` int64, symbols of the smallest subtree of a kind; 0 for CLOSED
        needed: ``[Q, V]`` int16, the least number of symbols below a symbol of a kind; IMPOSSIBLE if it is illegal
        is_binary: whether trees are left-child right-sibling
        has_grammar: whether a grammar restricts children
    """

    kinds: Tensor
    smallest: Tensor
    needed: Tensor
    is_binary: bool
    has_grammar: bool = False

    @classmethod
    def build(
        cls, symbols: SymbolTable, grammar: FieldTable | None = None, suppressed: tuple[int, ...] = ()
    ) -> LegalSymbols:
        """Computes the tables; a grammar restricts children, and ``suppressed`` ids are never generated.

        Raises StructuralSearchError if the symbols make no finite tree.
        """
        arity = symbols.arity.clone()
        arity[list(suppressed)] = -1
        kinds, allowed = _free_kinds(symbols, arity)
        if grammar is not None:
            kinds, allowed = _field_kinds(grammar, kinds, allowed)
        branches = torch.arange(kinds.size(1))
        first = symbols.first_branch[:, None]
        is_child = (branches >= first) & (branches < first + arity[:, None])  # V x n

        # A symbol at the root opens the same nodes as elsewhere, but has no sibling.
        child_kinds, root_kinds = kinds[:-1], kinds[:-1].clone()
        is_binary = symbols.encoding.binarization == "lcrs"
        if is_binary:
            root_kinds[:, 1] = ROOT_SIBLING
        smallest = smallest_subtrees(allowed, child_kinds, is_child)
        needed = symbols_below(smallest, child_kinds, is_child).clamp(max=IMPOSSIBLE).short().repeat(len(allowed), 1)
        needed[ROOT] = symbols_below(smallest, root_kinds, is_child).clamp(max=IMPOSSIBLE)
        needed.masked_fill_(~allowed, IMPOSSIBLE)
        if (needed[ROOT] == IMPOSSIBLE).all():
            raise StructuralSearchError(
                "the symbols of the target dictionary make no finite tree" + (" under the grammar" if grammar else "")
            )
        smallest[CLOSED], smallest[ROOT] = 0, 1 + needed[ROOT].amin()
        return cls(kinds, smallest, needed, is_binary, grammar is not None)

    @property
    def smallest_tree(self) -> int:
        """The number of symbols of the smallest tree."""
        return int(self.smallest[ROOT])

    def to(self, device: torch.device) -> LegalSymbols:
        """Returns the tables on another device."""
        return LegalSymbols(*(part.to(device) if isinstance(part, Tensor) else part for part in vars(self).values()))


def smallest_subtrees(allowed: Tensor, child_kinds: Tensor, is_child: Tensor) -> Tensor:
    """Returns the number of symbols of the smallest subtree of each kind, ``[Q]`` int64.

    ``allowed`` ``[Q, V]`` bool are the symbols that may fill an open node of each kind; for the others see
    :func:`symbols_below`. The iteration starts from above. Subtrees that never end are beyond IMPOSSIBLE.
    """
    sizes = torch.full((len(allowed),), _INFINITE, device=allowed.device)
    while True:
        with_symbol = 1 + symbols_below(sizes, child_kinds, is_child)  # V
        found = with_symbol.where(allowed, torch.tensor(_INFINITE)).amin(dim=1).clamp(max=_INFINITE)
        if torch.equal(found, sizes):
            return sizes
        sizes = found


def symbols_below(sizes: Tensor, child_kinds: Tensor, is_child: Tensor) -> Tensor:
    """Returns how many symbols follow each symbol, ``[V]``, if every child is a subtree of its kind's size, ``[Q]``.

    ``child_kinds``, ``[V, n]``, is the kind of the child on each branch; ``is_child`` tells whether there is one.
    """
    return (sizes[child_kinds] * is_child).sum(dim=1)


def _free_kinds(symbols: SymbolTable, arity: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the kinds of the encoding alone, ``[V + 1, n]``, and the symbols that they allow, ``[Q, V]``."""
    node, sibling = ROOT_SIBLING + 1, ROOT_SIBLING + 2
    kinds = torch.full((len(arity) + 1, symbols.degree), node)
    kinds[-1] = ROOT
    allowed = torch.zeros(sibling + 1, len(arity), dtype=torch.bool)
    if symbols.encoding.binarization == "none":
        allowed[[ROOT, node]] = arity >= 0
        return kinds, allowed
    is_null = torch.zeros_like(allowed[0])
    if symbols.null is not None:
        is_null[symbols.null] = arity[symbols.null] >= 0
    # After a symbol of arity 1 a sibling follows; after one of arity 2 a sibling may follow.
    kinds[:-1, 1].masked_fill_(arity == 2, sibling)
    allowed[node] = (arity >= 0) & (arity <= 2) & ~is_null
    allowed[sibling] = allowed[node] | is_null
    allowed[ROOT] = allowed[node] & (arity != 1)
    allowed[ROOT_SIBLING] = is_null
    return kinds, allowed


def _field_kinds(grammar: FieldTable, kinds: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
    """Returns kinds and allowed symbols under a grammar, with one kind for each field, given those of the encoding."""
    first = ROOT_SIBLING + 1
    fields = torch.where(grammar.fields < 0, CLOSED, grammar.fields + first)
    free = torch.arange(first + len(grammar.allowed))  # by kind, that of the encoding
    free[first:] = CLOSED
    free[fields] = kinds[:-1]
    free[CLOSED] = CLOSED
    seen = torch.cat([allowed.new_ones(first, allowed.size(1)), grammar.allowed])
    seen[ROOT] = grammar.allowed[0]
    return torch.cat([fields, kinds[-1:]]), seen & allowed[free]


class TreeHypotheses:
    """R = B·K partial trees and how many symbols each may still take.

    A row is *dead* once it has received an illegal symbol or has ended: if a sentence has fewer legal continuations
    than beams, fairseq fills the beam with such rows. A complete tree may *wait* for the other trees of its sentence by
    taking an id that is not a symbol.

    Args:
        limits: ``[B]`` int64, the largest number of symbols of each sentence's trees
        beam: K, hypotheses of a sentence
        prefix: ``[B, P]`` int64, the first symbols of each sentence's trees, then padding
        waiting: id that complete trees take while they wait; None if they must end

    Attributes:
        is_dead: ``[R]`` bool
        is_complete: ``[R]`` bool, trees without open nodes, which may end now
        sizes: ``[R]`` int64, symbols of each tree
        is_growing: ``[B]`` bool, sentences with a row that is neither dead nor complete
    """

    def __init__(
        self,
        symbols: SymbolTable,
        legal: LegalSymbols,
        limits: Tensor,
        beam: int,
        prefix: Tensor | None,
        pad: int,
        waiting: int | None = None,
    ):
        rows = len(limits) * beam
        self._legal, self._beam, self._pad, self._waiting = legal, beam, pad, waiting
        self._open = OpenNodes(rows, symbols, limits.device)
        self._arity = symbols.arity.to(limits.device)
        self._limit = limits.repeat_interleave(beam)  # [R]
        self._prefix = None if prefix is None else prefix.repeat_interleave(beam, dim=0)  # [R, P]
        # All steps write to the same memory.
        self._all_needed = legal.needed.new_empty(rows, legal.needed.size(1))
        self._all_illegal = torch.empty(self._all_needed.shape, device=limits.device)
        self._needed = legal.smallest[ROOT].repeat(rows)  # the least number of symbols below all open nodes together
        self._order = torch.arange(rows, device=limits.device)
        self.refused: list[tuple[int, int]] = []  # rows and ids, until an observer has read them
        self.is_dead = torch.zeros(rows, dtype=torch.bool, device=limits.device)
        self.sizes = torch.zeros(rows, dtype=torch.int64, device=limits.device)
        self._examine_next()

    def illegal_symbols(self) -> Tensor:
        """Returns the symbols that must not come next, ``[R, V]`` float: 1 where a symbol is illegal, otherwise 0.

        In complete and dead trees every symbol is illegal, except the id that waiting trees take.
        """
        slack = self._room - self._needed + self._legal.smallest[self._kind]
        slack = slack.clamp(-1, IMPOSSIBLE - 1).short()
        rows = len(slack)
        needed = torch.index_select(self._legal.needed, 0, self._kind, out=self._all_needed[:rows])
        illegal = torch.gt(needed, slack[:, None], out=self._all_illegal[:rows])
        length = self._open.length
        if self._prefix is not None and length < self._prefix.size(1):
            forced = self._prefix[:, length, None]
            others = torch.arange(illegal.size(1), device=illegal.device) != forced
            illegal.masked_fill_(others & (forced != self._pad), 1.0)
        if self._waiting is not None:
            illegal[:, self._waiting] = 1.0 - self.is_complete.to(illegal)
        self._illegal = illegal
        return illegal

    def legal_symbols(self, rows: Tensor, tokens: Tensor) -> Tensor:
        """Returns whether ids, of any shape, would fill an open node of their rows, after :meth:`illegal_symbols`."""
        return (self._illegal[rows, tokens] == 0) & (self._open.count[rows] > 0)

    def completes(self, rows: Tensor, tokens: Tensor) -> Tensor:
        """Returns whether ids, of any shape, are the last symbols of the trees of their rows."""
        return self.legal_symbols(rows, tokens) & (self._open.count[rows] == 1) & (self._arity[tokens] == 0)

    def refuse(self, rows: Tensor, tokens: Tensor) -> None:
        """Makes ids illegal in their rows."""
        self.refused += zip(rows.tolist(), tokens.tolist())
        self._illegal[rows, tokens] = 1.0

    def skip(self, sentences: Tensor) -> None:
        """Ends all rows of some sentences, ``[B]`` bool."""
        self.is_dead = self.is_dead | sentences.repeat_interleave(self._beam)
        self._examine_next()

    def why_illegal(self, row: int, symbol: int, symbols: SymbolTable) -> str | None:
        """Says why a symbol must not come next in a row, after :meth:`illegal_symbols`; None if it may."""
        if not bool(self._illegal[row, symbol]):
            return None
        if bool(self.is_complete[row]):
            return "the tree is complete"
        arity, kind = int(symbols.arity[symbol]), int(self._kind[row])
        if arity < 0:
            count = int(self._open.count[row])
            return (
                f"not a symbol of trees; {count} open {'node needs a symbol' if count == 1 else 'nodes need symbols'}"
            )
        needed = int(self._legal.needed[kind, symbol])
        if needed < IMPOSSIBLE:
            left = int(self._room[row] - self._needed[row] + self._legal.smallest[kind])
            if needed <= left:
                return "another prefix is given"
            return (
                f"needs {needed} more symbol{'s' * (needed != 1)}, {max(left, 0)} {'is' if left == 1 else 'are'} left"
            )
        if symbol == symbols.null:
            return "only a next sibling can be missing" if kind != ROOT else "the root cannot be missing"
        if kind == ROOT_SIBLING:
            return "the root has no siblings"
        if kind == ROOT and self._legal.is_binary and arity == 1:
            return "a sibling follows it, and the root has no siblings"
        return "the grammar does not have it here" if self._legal.has_grammar else "it is never generated here"

    def reorder(self, order: Tensor) -> None:
        """Makes row ``order[i]`` the new row i; ``order`` is ``[R']`` int64."""
        self._open.reorder(order)
        self._order = order
        for name in ("_limit", "_prefix", "_needed", "is_dead", "_kind", "sizes"):
            if (state := getattr(self, name)) is not None:
                setattr(self, name, state.index_select(0, order))

    def advance(self, tokens: Tensor) -> None:
        """Adds the next symbol, ``[R]`` ids, to each tree; a row that ends or receives an illegal symbol is dead."""
        legal, kind = self._legal, self._kind
        self.is_dead = self.is_dead | (self._illegal[self._order, tokens] > 0)
        self._needed = self._needed - legal.smallest[kind] + legal.needed[kind, tokens]
        self.sizes = self.sizes + (self._open.count > 0)
        self._open.advance(tokens)
        self._examine_next()

    def _examine_next(self) -> None:
        """Finds the kind of the next open node of each row."""
        nodes = self._open
        self._room = self._limit - nodes.length - 1  # [R], how many symbols may follow the next one
        is_open = nodes.count > 0
        self.is_complete = ~(is_open | self.is_dead)
        lives = is_open & ~self.is_dead
        self.is_growing = lives.view(-1, self._beam).any(dim=1)
        parent, branch, symbol = nodes.next()
        kind = self._legal.kinds[symbol, branch]
        if self._legal.is_binary:
            # START has column 0, the root column 1.
            kind = kind.masked_fill((parent == 1) & (branch == 1), ROOT_SIBLING)
        self._kind = kind.masked_fill(~lives, CLOSED)
