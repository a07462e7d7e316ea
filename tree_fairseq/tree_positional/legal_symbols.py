"""Tables of a structural search: which symbols may fill an open node, and how many symbols must follow them.

The *kind* of an open node determines which symbols may fill it; the kinds of the nodes that a symbol opens depend on
the symbol alone. The smallest and the largest subtree of each kind are fixed points over the kinds.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tree_fairseq.data_bin.symbol_dictionary import Grammar, SymbolTable
from tree_fairseq.errors import StructuralSearchError

UNBOUNDED = 2**40
"""Stands for an unlimited number of symbols; the sum of a million of them still fits into 64 bits."""


def symbols_below(sizes: Tensor, child_kinds: Tensor, is_child: Tensor) -> Tensor:
    """Returns how many symbols follow each symbol, ``[V]``, if every child is a subtree of its kind's size, ``[Q]``.

    ``child_kinds``, ``[V, n]``, is the kind of the child on each branch; ``is_child`` tells whether there is one.
    """
    return (sizes[child_kinds] * is_child).sum(dim=1)


def subtree_sizes(allowed: Tensor, child_kinds: Tensor, is_child: Tensor, largest: bool = False) -> Tensor:
    """Returns the number of symbols of the smallest, or the largest, subtree of each kind, ``[Q]`` int64.

    Both iterations start from above. Thus the largest subtrees of kinds that never recur below themselves become finite
    one after the other.

    Args:
        allowed: ``[Q, V]`` bool, symbols that may fill an open node of each kind, and for the largest subtrees can be
            completed there
        child_kinds, is_child: see :func:`symbols_below`

    Returns:
        UNBOUNDED if no finite subtree exists, or if subtrees can grow without limit; the largest is 0 if no symbol is
        allowed
    """
    excluded, best = (0, torch.amax) if largest else (UNBOUNDED, torch.amin)
    sizes = torch.full((len(allowed),), UNBOUNDED, device=allowed.device)
    while True:
        with_symbol = 1 + symbols_below(sizes, child_kinds, is_child)
        found = best(with_symbol.where(allowed, torch.tensor(excluded)), dim=1).clamp(max=UNBOUNDED)
        if torch.equal(found, sizes):
            return sizes
        sizes = found


def next_surpluses(arities: list[int], length: int) -> Tensor:
    """Returns the least possible surplus from each number up to ``length`` on; UNBOUNDED if none exists.

    The surplus of a forest that fills k open nodes with m symbols is m - k, the number of its children in sum.
    Conversely, symbols whose arities sum to m - k, filled up with leaves, make such a forest. So the possible surpluses
    are the sums of arities, whatever k.
    """
    steps, sums = {arity for arity in arities if arity > 0}, {0}
    for surplus in range(1, length + 1 + max(steps, default=0)):
        if any(surplus - step in sums for step in steps):
            sums.add(surplus)
    possible = torch.tensor([*sorted(sums), UNBOUNDED])
    return possible[torch.searchsorted(possible, torch.arange(length + 1))]


IMPOSSIBLE = 2**31 - 1
"""The number of symbols that must follow a symbol where it is illegal."""

# Kinds that every table has. Complete trees have kind CLOSED; the only sibling of the root is <null>.
CLOSED, ROOT, ROOT_SIBLING = range(3)


@dataclass(frozen=True)
class LegalSymbols:
    """The Q kinds of open nodes and the symbols that may fill them.

    Attributes:
        kinds: ``[V + 1, n]`` int64, kind of the child on each branch of a symbol; the last row is the root's kind
        smallest: ``[Q]`` int64, symbols of the smallest subtree of a kind; 0 for CLOSED
        largest: ``[Q]`` int64, symbols of the largest subtree of a kind; UNBOUNDED if subtrees can grow without limit
        needed: ``[Q, V]`` int32, the least number of symbols below a symbol of a kind; IMPOSSIBLE if it is illegal
        possible: ``[2, V]`` int64, the greatest number of symbols below a symbol; in row 1, below one at the root
        surpluses: see :func:`next_surpluses`
        is_binary: whether trees are left-child right-sibling
        has_grammar: whether a grammar restricts children
    """

    kinds: Tensor
    smallest: Tensor
    largest: Tensor
    needed: Tensor
    possible: Tensor
    surpluses: Tensor
    is_binary: bool
    has_grammar: bool = False

    @classmethod
    def build(
        cls, symbols: SymbolTable, grammar: Grammar | None = None, suppressed: tuple[int, ...] = (), min_len: int = 1
    ) -> LegalSymbols:
        """Computes the tables; a grammar restricts children, and ``suppressed`` ids are never generated.

        Raises:
            StructuralSearchError: the symbols make no finite tree
        """
        arity = symbols.arity.clone()
        arity[list(suppressed)] = -1
        kinds, allowed = _free_kinds(symbols, arity)
        if grammar is not None:
            kinds, allowed = _seen_kinds(grammar, kinds, allowed)
        branches = torch.arange(kinds.size(1))
        first = symbols.first_branch[:, None]
        is_child = (branches >= first) & (branches < first + arity[:, None])  # [V, n]

        # A symbol at the root opens the same nodes as elsewhere, but has no sibling.
        child_kinds, root_kinds = kinds[:-1], kinds[:-1].clone()
        is_binary = symbols.encoding.binarization == "lcrs"
        if is_binary:
            root_kinds[:, 1] = ROOT_SIBLING
        smallest = subtree_sizes(allowed, child_kinds, is_child)
        needed = symbols_below(smallest, child_kinds, is_child).clamp(max=IMPOSSIBLE).int().repeat(len(allowed), 1)
        needed[ROOT] = symbols_below(smallest, root_kinds, is_child).clamp(max=IMPOSSIBLE)
        needed.masked_fill_(~allowed, IMPOSSIBLE)
        allowed = needed < IMPOSSIBLE
        largest = subtree_sizes(allowed, child_kinds, is_child, largest=True)
        possible = torch.stack([symbols_below(largest, these, is_child) for these in (child_kinds, root_kinds)])
        if not allowed[ROOT].any():
            raise StructuralSearchError(
                "the symbols of the target dictionary make no finite tree" + (" under the grammar" if grammar else "")
            )
        smallest[CLOSED], smallest[ROOT] = 0, 1 + needed[ROOT].amin()
        largest[ROOT] = (1 + possible[1][allowed[ROOT]].amax()).clamp(max=UNBOUNDED)
        # With a grammar, every number between the smallest and the largest counts as possible.
        steps = [1] if grammar is not None else arity[allowed.any(dim=0)].tolist()
        surpluses = next_surpluses(steps, min_len)
        return cls(kinds, smallest, largest, needed, possible, surpluses, is_binary, grammar is not None)

    @property
    def smallest_tree(self) -> int:
        """The number of symbols of the smallest tree."""
        return int(self.smallest[ROOT])

    def to(self, device: torch.device) -> LegalSymbols:
        """Returns the tables on another device."""
        return LegalSymbols(*(part.to(device) if isinstance(part, Tensor) else part for part in vars(self).values()))


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


def _seen_kinds(grammar: Grammar, kinds: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the same with one kind for each parent and branch of the grammar."""
    degree = kinds.size(1)
    is_root = grammar.parents < 0
    # Rules with a branch that the encoding does not have never apply.
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
