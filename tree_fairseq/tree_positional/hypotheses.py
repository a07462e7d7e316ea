"""The trees that the hypotheses of a search have made so far, and what may follow in each."""

from __future__ import annotations

import torch
from torch import Tensor

from tree_fairseq.data_bin.symbol_dictionary import SymbolTable
from tree_fairseq.tree_positional.legal_symbols import CLOSED, IMPOSSIBLE, ROOT, ROOT_SIBLING, LegalSymbols
from tree_fairseq.tree_positional.open_slots import OpenSlots


class GrowingTrees:
    """R = B·K trees, each with the number of symbols that it may still take.

    A row is *dead* when it took what it must not, or ended: where there are fewer legal continuations than beams, fairseq
    fills the beam with such rows. A complete tree may *wait* for the others of its sentence, by taking an id that is no symbol.

    Args:
        symbols: what the ids mean
        legal: what may stand where
        limits: ``[B]`` int64, the largest number of symbols of each sentence's trees
        beam: hypotheses of a sentence K
        min_len: the number of symbols that trees should have, where that is possible
        prefix: ``[B, P]`` int64, symbols that each sentence's trees begin with, then padding
        pad: the id of padding
        waiting: the id that complete trees may take; None if they must end

    Attributes:
        is_dead: ``[R]`` bool
        is_complete: ``[R]`` bool, trees without open slots that may end now
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
        self._slots = OpenSlots(rows, symbols, limits.device)
        self._limit = limits.repeat_interleave(beam)  # [R]
        self._prefix = None if prefix is None else prefix.repeat_interleave(beam, dim=0)  # [R, P]
        self._forced: Tensor | None = None  # [R], the symbol that the prefix has for the next slot
        # Symbols that the open slots take together, at least and at most.
        self._needed = legal.smallest[ROOT].repeat(rows)
        self._possible = legal.largest[ROOT].repeat(rows)
        self._order = torch.arange(rows, device=limits.device)
        self.is_dead = torch.zeros(rows, dtype=torch.bool, device=limits.device)
        self.sizes = torch.zeros(rows, dtype=torch.int64, device=limits.device)
        self._look()

    def illegal_symbols(self) -> Tensor:
        """Which symbols must not come next.

        Returns:
            ``[R, V]`` bool; in trees that are complete or dead none may come, but what those take that wait
        """
        slack = self._room - self._needed + self._legal.smallest[self._kind]
        slack = slack.clamp(-1, IMPOSSIBLE - 1).int()
        illegal = self._legal.needed.index_select(0, self._kind) > slack[:, None]
        if self._forced is not None:
            others = torch.arange(illegal.size(1), device=illegal.device) != self._forced[:, None]
            illegal |= others & (self._forced != self._pad)[:, None]
        if self._slots.length + 1 < self._min_len:
            illegal = self._avoid_short(illegal)
        if self._waiting is not None:
            illegal[:, self._waiting] = ~self.is_complete
        self._illegal = illegal
        return illegal

    def reorder(self, order: Tensor) -> None:
        """Replaces row i by what was row ``order[i]``.

        Args:
            order: ``[R']`` int64
        """
        self._slots.reorder(order)
        self._order = order
        states = (self._limit, self._needed, self._possible, self.is_dead, self._kind, self.sizes)
        self._limit, self._needed, self._possible, self.is_dead, self._kind, self.sizes = (
            state.index_select(0, order) for state in states
        )
        if self._prefix is not None:
            self._prefix = self._prefix.index_select(0, order)

    def advance(self, tokens: Tensor) -> None:
        """Puts the next symbol into each tree; a row that ends, or whose symbol is illegal, dies.

        Args:
            tokens: ``[R]`` ids
        """
        legal, kind = self._legal, self._kind
        self.is_dead = self.is_dead | self._illegal[self._order, tokens]
        self._needed = self._needed - legal.smallest[kind] + legal.needed[kind, tokens]
        if self._min_len > 1:
            self._possible = self._possible - legal.largest[kind] + legal.possible[(kind == ROOT).long(), tokens]
        self.sizes = self.sizes + (self._slots.count > 0)
        self._slots.advance(tokens)
        self._look()

    def _look(self) -> None:
        """What the next slot of each row is."""
        slots = self._slots
        self._room = self._limit - slots.length - 1  # [R], for symbols after the next one
        is_open = slots.count > 0
        self.is_complete = ~(is_open | self.is_dead)
        lives = is_open & ~self.is_dead
        self.is_growing = lives.view(-1, self._beam).any(dim=1)
        branch = slots.next_branch()
        kind = self._legal.kinds[slots.next_parent_symbol(), branch]
        if self._legal.is_binary:
            # START has column 0, the root column 1.
            kind = kind.masked_fill((slots.next_parent() == 1) & (branch == 1), ROOT_SIBLING)
        self._kind = kind.masked_fill(~lives, CLOSED)
        if self._prefix is not None:
            self._forced = self._prefix[:, slots.length] if slots.length < self._prefix.size(1) else None

    def _avoid_short(self, illegal: Tensor) -> Tensor:
        """Forbids also what leads to short trees, in rows where anything else is left."""
        legal, kind = self._legal, self._kind
        wanted = self._min_len - self._slots.length - 1
        least = (self._needed - legal.smallest[kind])[:, None] + legal.needed[kind]  # [R, V]
        most = (self._possible - legal.largest[kind])[:, None] + legal.possible[(kind == ROOT).long()]
        surplus = legal.surpluses[(wanted - least).clamp(min=0)]
        avoided = illegal | (most < wanted) | (least + surplus > self._room[:, None])
        return torch.where(avoided.all(dim=1, keepdim=True), illegal, avoided)
