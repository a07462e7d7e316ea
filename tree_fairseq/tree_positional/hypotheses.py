"""The partial trees of the hypotheses of a structural search, and which symbols may follow in each."""

from __future__ import annotations

import torch
from torch import Tensor

from tree_fairseq.data_bin.symbol_dictionary import SymbolTable
from tree_fairseq.tree_positional.legal_symbols import CLOSED, IMPOSSIBLE, ROOT, ROOT_SIBLING, LegalSymbols
from tree_fairseq.tree_positional.open_nodes import OpenNodes


class TreeHypotheses:
    """R = B·K partial trees and how many symbols each may still take.

    A row is *dead* once it has received an illegal symbol or has ended: if a sentence has fewer legal continuations
    than beams, fairseq fills the beam with such rows. A complete tree may *wait* for the other trees of its sentence by
    taking an id that is not a symbol.

    Args:
        limits: ``[B]`` int64, the largest number of symbols of each sentence's trees
        beam: K, hypotheses of a sentence
        min_len: smallest number of symbols of a tree, wherever that is possible
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
        min_len: int,
        prefix: Tensor | None,
        pad: int,
        waiting: int | None = None,
    ):
        rows = len(limits) * beam
        self._legal, self._beam, self._min_len, self._pad, self._waiting = legal, beam, min_len, pad, waiting
        self._open = OpenNodes(rows, symbols, limits.device)
        self._limit = limits.repeat_interleave(beam)  # [R]
        self._prefix = None if prefix is None else prefix.repeat_interleave(beam, dim=0)  # [R, P]
        # The least and the greatest number of symbols below all open nodes together.
        self._needed = legal.smallest[ROOT].repeat(rows)
        self._possible = legal.largest[ROOT].repeat(rows)
        self._order = torch.arange(rows, device=limits.device)
        self.is_dead = torch.zeros(rows, dtype=torch.bool, device=limits.device)
        self.sizes = torch.zeros(rows, dtype=torch.int64, device=limits.device)
        self._examine_next()

    def illegal_symbols(self) -> Tensor:
        """Returns the symbols that must not come next, ``[R, V]`` bool.

        In complete and dead trees every symbol is illegal, except the id that waiting trees take.
        """
        slack = self._room - self._needed + self._legal.smallest[self._kind]
        slack = slack.clamp(-1, IMPOSSIBLE - 1).int()
        illegal = self._legal.needed.index_select(0, self._kind) > slack[:, None]
        length = self._open.length
        if self._prefix is not None and length < self._prefix.size(1):
            forced = self._prefix[:, length, None]
            others = torch.arange(illegal.size(1), device=illegal.device) != forced
            illegal |= others & (forced != self._pad)
        if length + 1 < self._min_len:
            illegal = self._avoid_short(illegal)
        if self._waiting is not None:
            illegal[:, self._waiting] = ~self.is_complete
        self._illegal = illegal
        return illegal

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
                return "another prefix is given, or the tree would be too small"
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
        for name in ("_limit", "_prefix", "_needed", "_possible", "is_dead", "_kind", "sizes"):
            if (state := getattr(self, name)) is not None:
                setattr(self, name, state.index_select(0, order))

    def advance(self, tokens: Tensor) -> None:
        """Adds the next symbol, ``[R]`` ids, to each tree; a row that ends or receives an illegal symbol is dead."""
        legal, kind = self._legal, self._kind
        self.is_dead = self.is_dead | self._illegal[self._order, tokens]
        self._needed = self._needed - legal.smallest[kind] + legal.needed[kind, tokens]
        if self._min_len > 1:
            self._possible = self._possible - legal.largest[kind] + legal.possible[(kind == ROOT).long(), tokens]
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

    def _avoid_short(self, illegal: Tensor) -> Tensor:
        """Also forbids symbols that lead to trees below ``min_len``, unless a row has no others."""
        legal, kind = self._legal, self._kind
        wanted = self._min_len - self._open.length - 1
        least = (self._needed - legal.smallest[kind])[:, None] + legal.needed[kind]  # [R, V]
        most = (self._possible - legal.largest[kind])[:, None] + legal.possible[(kind == ROOT).long()]
        surplus = legal.surpluses[(wanted - least).clamp(min=0)]
        avoided = illegal | (most < wanted) | (least + surplus > self._room[:, None])
        return torch.where(avoided.all(dim=1, keepdim=True), illegal, avoided)
