"""Which symbols may fill a slot, and what they demand of those that follow: tables, made once for each search."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tree_fairseq.data_bin.grammar import Grammar
from tree_fairseq.data_bin.symbol_dictionary import SymbolTable
from tree_fairseq.errors import StructuralSearchError

# FROM generators/completion_lengths: How many symbols a subtree may have, by the kind of slot that it fills.
#
# A *kind* of slot says which symbols may stand there; the kinds of the slots that a symbol opens depend on the symbol alone.
# The smallest and the largest subtree of each kind are fixed points over the kinds.

UNBOUNDED = 2**40
"""More symbols than any tree has; sums of a million of them still fit into 64 bits."""


def symbols_below(sizes: Tensor, child_kinds: Tensor, is_child: Tensor) -> Tensor:
    """How many symbols follow each symbol if each of its slots is filled by a subtree of its kind's size.

    Args:
        sizes: ``[Q]``, size of a subtree of each kind
        child_kinds: ``[V, n]``, kind of the slot on each branch
        is_child: ``[V, n]`` bool, branches that a symbol opens

    Returns:
        ``[V]`` int64
    """
    return (sizes[child_kinds] * is_child).sum(dim=1)


def smallest_subtrees(allowed: Tensor, child_kinds: Tensor, is_child: Tensor) -> Tensor:
    """Number of symbols of the smallest subtree of each kind.

    Args:
        allowed: ``[Q, V]`` bool, symbols that may fill a slot of each kind
        child_kinds, is_child: see :func:`symbols_below`

    Returns:
        ``[Q]`` int64; UNBOUNDED where no finite subtree exists
    """
    sizes = torch.full((len(allowed),), UNBOUNDED, device=allowed.device)
    while True:
        with_symbol = 1 + symbols_below(sizes, child_kinds, is_child)
        smaller = with_symbol.where(allowed, torch.tensor(UNBOUNDED)).amin(dim=1)
        smaller = smaller.clamp(max=UNBOUNDED)
        if torch.equal(smaller, sizes):
            return sizes
        sizes = smaller


def largest_subtrees(allowed: Tensor, child_kinds: Tensor, is_child: Tensor) -> Tensor:
    """Number of symbols of the largest subtree of each kind.

    The fixed point is approached from above: kinds below which none recurs become finite, one after the other, others never.

    Args:
        allowed: ``[Q, V]`` bool, symbols that may fill a slot of each kind and can be completed there
        child_kinds, is_child: see :func:`symbols_below`

    Returns:
        ``[Q]`` int64; UNBOUNDED where there is no largest, 0 where no symbol is allowed
    """
    sizes = torch.full((len(allowed),), UNBOUNDED, device=allowed.device)
    while True:
        with_symbol = 1 + symbols_below(sizes, child_kinds, is_child)
        larger = with_symbol.where(allowed, torch.tensor(0)).amax(dim=1).clamp(max=UNBOUNDED)
        if torch.equal(larger, sizes):
            return sizes
        sizes = larger


def next_surpluses(arities: list[int], length: int) -> Tensor:
    """Which numbers of symbols can follow beside the one that each open slot needs.

    Any forest that fills k slots with m symbols has m - k children in sum, and any arities with that sum, filled up with
    leaves, make one: m - k is a sum of arities, whatever k.

    Args:
        arities: of the symbols
        length: up to which surplus

    Returns:
        ``[length + 1]`` int64, for each number the least possible surplus that is not below it; UNBOUNDED if there is none
    """
    steps = sorted({arity for arity in arities if arity > 0})
    possible = [True]
    for surplus in range(1, length + 1 + max(steps, default=0)):
        possible.append(any(step <= surplus and possible[surplus - step] for step in steps))
    following, found = UNBOUNDED, []
    for surplus in range(len(possible) - 1, -1, -1):
        following = surplus if possible[surplus] else following
        found.append(following)
    return torch.tensor(found[::-1][: length + 1])


IMPOSSIBLE = 2**31 - 1
"""What a symbol needs that may not stand in a slot."""

# Kinds of slots that every table has. CLOSED is that of trees that are complete; the root has no sibling but <null>.
CLOSED, ROOT, ROOT_SIBLING = range(3)


@dataclass(frozen=True)
class LegalSymbols:
    """The kinds of slots, Q of them, and the symbols that may fill them.

    Attributes:
        kinds: ``[V + 1, n]`` int64, kind of the slot on each branch of a symbol; the last row is the root's slot
        smallest: ``[Q]`` int64, symbols of the smallest subtree of a kind; 0 for CLOSED
        largest: ``[Q]`` int64, of the largest; UNBOUNDED if there is none
        needed: ``[Q, V]`` int32, symbols that follow at least if a symbol fills a slot; IMPOSSIBLE where it may not
        possible: ``[2, V]`` int64, symbols that can follow a symbol at most, where it is not the root and where it is
        surpluses: see :func:`next_surpluses`
        is_binary: whether siblings are children
    """

    kinds: Tensor
    smallest: Tensor
    largest: Tensor
    needed: Tensor
    possible: Tensor
    surpluses: Tensor
    is_binary: bool

    @classmethod
    def build(
        cls, symbols: SymbolTable, grammar: Grammar | None = None, suppressed: tuple[int, ...] = (), min_len: int = 1
    ) -> LegalSymbols:
        """Makes the tables.

        Args:
            symbols: what the ids mean
            grammar: restricts children to those that it has
            suppressed: ids that are never generated
            min_len: the number of symbols that trees should have at least

        Raises:
            StructuralSearchError: no tree can be made
        """
        arity = symbols.arity.clone()
        arity[list(suppressed)] = -1
        kinds, allowed = _free_kinds(symbols, arity)
        if grammar is not None:
            kinds, allowed = _seen_kinds(grammar, kinds, allowed)
        branches = torch.arange(kinds.size(1))
        first = symbols.first_branch[:, None]
        is_child = (branches >= first) & (branches < first + arity[:, None])  # [V, n]

        # A symbol at the root opens the same slots as elsewhere, less siblings.
        root_kinds = kinds[:-1].clone()
        is_binary = symbols.encoding.binarization == "lcrs"
        if is_binary:
            root_kinds[:, 1] = ROOT_SIBLING
        smallest = smallest_subtrees(allowed, kinds[:-1], is_child)
        needed = symbols_below(smallest, kinds[:-1], is_child).clamp(max=IMPOSSIBLE).int().repeat(len(allowed), 1)
        needed[ROOT] = symbols_below(smallest, root_kinds, is_child).clamp(max=IMPOSSIBLE)
        needed.masked_fill_(~allowed, IMPOSSIBLE)
        allowed = needed < IMPOSSIBLE
        largest = largest_subtrees(allowed, kinds[:-1], is_child)
        possible = torch.stack([symbols_below(largest, these, is_child) for these in (kinds[:-1], root_kinds)])
        if not allowed[ROOT].any():
            raise StructuralSearchError(
                "no finite tree can be made of the target dictionary's symbols" + (" by the grammar" if grammar else "")
            )
        smallest[CLOSED], smallest[ROOT] = 0, 1 + needed[ROOT].amin()
        largest[ROOT] = (1 + possible[1][allowed[ROOT]].amax()).clamp(max=UNBOUNDED)
        # With a grammar, any number between the smallest and the largest is taken to be possible.
        steps = [1] if grammar is not None else arity[allowed.any(dim=0)].tolist()
        surpluses = next_surpluses(steps, min_len)
        return cls(kinds, smallest, largest, needed, possible, surpluses, is_binary)

    @property
    def smallest_tree(self) -> int:
        """Number of symbols of the smallest tree."""
        return int(self.smallest[ROOT])

    def to(self, device: torch.device) -> LegalSymbols:
        """The tables on another device."""
        names = ("kinds", "smallest", "largest", "needed", "possible", "surpluses")
        return LegalSymbols(*(getattr(self, name).to(device) for name in names), self.is_binary)


def _free_kinds(symbols: SymbolTable, arity: Tensor) -> tuple[Tensor, Tensor]:
    """What the encoding allows, without a grammar.

    Returns:
        kinds, ``[V + 1, n]``, and which symbols they allow, ``[Q, V]``
    """
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
    # A symbol with arity 1 says that a sibling follows, one with arity 2 that one may.
    kinds[:-1, 1].masked_fill_(arity == 2, sibling)
    allowed[node] = (arity >= 0) & (arity <= 2) & ~is_null
    allowed[sibling] = allowed[node] | is_null
    allowed[ROOT] = allowed[node] & (arity != 1)
    allowed[ROOT_SIBLING] = is_null
    return kinds, allowed


def _seen_kinds(grammar: Grammar, kinds: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
    """A kind for each parent and branch of the grammar.

    Args:
        grammar: the rules
        kinds, allowed: what the encoding allows

    Returns:
        kinds, ``[V + 1, n]``, and which symbols they allow, ``[Q, V]``
    """
    degree = kinds.size(1)
    is_root = grammar.parents < 0
    # Rules that the encoding does not know belong to no slot.
    is_inside = ~is_root & (grammar.branches < degree)
    pairs = (grammar.parents * degree + grammar.branches)[is_inside]
    pairs, numbers = torch.unique(pairs, return_inverse=True)
    seen = torch.zeros(ROOT_SIBLING + 1 + len(pairs), allowed.size(1), dtype=torch.bool)
    seen[ROOT, grammar.children[is_root]] = True
    seen[ROOT_SIBLING] = True
    seen[ROOT_SIBLING + 1 + numbers, grammar.children[is_inside]] = True

    seen_kinds = torch.full_like(kinds, CLOSED)
    seen_kinds[-1] = ROOT
    seen_kinds.view(-1)[pairs] = torch.arange(len(pairs)) + ROOT_SIBLING + 1
    free = torch.cat([torch.arange(ROOT_SIBLING + 1), kinds.view(-1)[pairs]])
    return seen_kinds, seen & allowed[free]
