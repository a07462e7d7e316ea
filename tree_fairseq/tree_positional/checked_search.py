"""Searches that ask the programming language, and the database, about each continuation they would take.

A grammar by types is a mask that is computed once. Some rules depend on more of a program: which tables are in scope,
or what only the parser knows. They are asked as in PICARD (Scholak et al., EMNLP 2021), only for candidates that a beam
would take: one that is refused makes room for the next.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence

import torch
from fairseq.search import BeamSearch, DiverseBeamSearch, Search

from tree_fairseq.data_bin.symbol_dictionary import SymbolDictionary
from tree_fairseq.source_code.complete_programs import is_bound, is_program
from tree_fairseq.source_code.language import Language
from tree_fairseq.source_code.partial_query import PartialQuery
from tree_fairseq.source_code.schema import Schema
from tree_fairseq.source_code.scopes import Unbound
from tree_fairseq.tree_positional.hypotheses import TreeHypotheses

MOST_ENDS = 8
"""After so many refusals of the last symbol of a program, the fault lies before it: no other symbol may end it."""
MOST_UNBOUND = 3
"""After so many refusals of a continuation in one step, all of them are asked at once."""
MOST_STATES = 10_000
"""So many states of partial queries are kept, and so many answers about complete programs."""
MOST_REFUSALS = 1000
"""So many programs of a sentence are refused in a search before it may end no more; shorter ones are sought then."""


class ProgramCheck:
    """Says which sequences of symbols are programs that run on a schema, if there is one, and which may become some."""

    def __init__(self, dictionary: SymbolDictionary, language: Language, schema: Schema | None = None):
        self._dictionary, self._language, self._schema = dictionary, language, schema
        is_preorder = dictionary.encoding.traversal == "dfs"
        self._states: dict[tuple[int, ...], PartialQuery | None] = {}
        if schema is not None and is_preorder:
            self._states[()] = PartialQuery(schema)
        self._parts = list(map(dictionary.encoding.parts, dictionary.symbols))
        self.concerned = torch.tensor(
            [bool(self._states) and arity >= 0 and PartialQuery.concern(label) for label, arity in self._parts]
        )
        """``[V]`` bool: the symbols to which :meth:`is_possible` can say no where they do not complete a program."""

    def is_program(self, ids: Sequence[int]) -> bool:
        """Whether the language reads a program, and the database can run it."""
        if not self.is_possible(ids):
            return False
        tree = self._dictionary.tree(ids)
        was_asked = self._schema is None or self._states  # about each symbol, but for trees level by level
        return is_program(tree, self._language, self._schema) and (was_asked or is_bound(tree, self._schema))

    def is_possible(self, ids: Sequence[int]) -> bool:
        """Whether the names of an incomplete program are bound, or may still be."""
        *before, last = ids
        return not self.impossible(before, [last])

    def impossible(self, before: Sequence[int], symbols: Sequence[int]) -> list[int]:
        """The symbols that, after those of ``before``, leave a name of the program that nothing can bind."""
        if not self._states:
            return []
        state = self._state(tuple(before))
        return [symbol for symbol in symbols if self._then(state, symbol) is None]

    def _state(self, ids: tuple[int, ...]) -> PartialQuery | None:
        """The state after these symbols; it is kept, because searches add one symbol after the other."""
        known = next(end for end in range(len(ids), -1, -1) if ids[:end] in self._states)
        state = self._states[ids[:known]]
        if len(self._states) > MOST_STATES:
            self._states = {(): self._states[()]}
        for end in range(known, len(ids)):
            state = self._states[ids[: end + 1]] = self._then(state, ids[end])
        return state

    def _then(self, state: PartialQuery | None, index: int) -> PartialQuery | None:
        try:
            return state and state.then(*self._parts[index])
        except Unbound:
            return None


class CheckedSearch(Search):
    """A search of fairseq whose candidates are checked; a refused one gets the score ``masked``.

    ``longest`` is the number of symbols of the longest program that was refused. ``is_program`` has the answers of the
    check, which it keeps.
    """

    def __init__(self, search: Search, dictionary: SymbolDictionary, check: ProgramCheck, masked: float):
        super().__init__(dictionary)
        self.search, self.check, self._masked = search, check, masked
        # A sentence without a program is searched several times, and its beams hold the same ones.
        self.is_program = functools.lru_cache(maxsize=MOST_STATES)(lambda ids: check.is_program(ids))
        self.stop_on_max_len = search.stop_on_max_len
        self.trees: TreeHypotheses | None = None
        self.is_active = True
        self.forget()

    def forget(self) -> None:
        """Begins a search."""
        self.longest, self._refusals = 0, Counter[int]()

    def step(self, step, lprobs, scores, prev_output_tokens=None, original_batch_idxs=None):
        """Returns fairseq's candidates of ``lprobs``, ``[B, K, V]``, where refused symbols are masked in place."""
        checked: set[tuple[int, int]] = set()
        counts = Counter[tuple[int, bool]]()
        # Sampling and diverse siblings write into the scores that they get, and diverse groups count at each call what
        # they share.
        is_beam = type(self.search) is BeamSearch
        overlap = self.search.group_overlap if isinstance(self.search, DiverseBeamSearch) else None
        while True:
            if overlap is not None:
                self.search.group_overlap = overlap.clone()
            given = lprobs if is_beam else lprobs.clone()
            found = self.search.step(step, given, scores, prev_output_tokens, original_batch_idxs)
            if not self.is_active:
                return found
            refused = self._refused(lprobs, found[1], found[2], prev_output_tokens, checked, counts)
            if not refused:
                return found
            rows, symbols = torch.tensor(refused, device=lprobs.device).unbind(1)
            lprobs.view(-1, lprobs.size(-1))[rows, symbols] = self._masked
            self.trees.refuse(rows, symbols)

    def prune_sentences(self, batch_idxs):
        self._refusals = Counter({new: self._refusals[old] for new, old in enumerate(batch_idxs.tolist())})
        return self.search.prune_sentences(batch_idxs)

    def _refused(self, lprobs, symbols, beams, tokens, checked, counts) -> list[tuple[int, int]]:
        """Returns the candidates, as rows and symbols, that the check refuses and that were not checked before."""
        sentences, beam, _ = lprobs.shape
        rows = beams + torch.arange(sentences, device=beams.device)[:, None] * beam  # [B, candidates]
        completes = self.trees.completes(rows, symbols)
        self.check.concerned = self.check.concerned.to(symbols.device)
        is_open = completes | self.trees.legal_symbols(rows, symbols) & self.check.concerned[symbols]
        if type(self.search) is BeamSearch:
            is_open[:, beam:] = False  # complete trees wait without EOS, so fairseq takes the first candidates
        places = is_open.nonzero(as_tuple=True)
        refused = []
        for row, symbol, is_end in zip(rows[places].tolist(), symbols[places].tolist(), completes[places].tolist()):
            if (row, symbol) in checked:
                continue
            checked.add((row, symbol))
            before = tokens[row, 1:].tolist()
            if is_end and (counts[row, is_end] >= MOST_ENDS or self._is_program(row // beam, [*before, symbol])):
                continue
            if not is_end and self.check.is_possible([*before, symbol]):
                continue
            refused.append((row, symbol))
            counts[row, is_end] += 1
            if counts[row, is_end] == (MOST_ENDS if is_end else MOST_UNBOUND):
                others = [other for other in self._all(row, is_end) if (row, other) not in checked]
                checked.update((row, other) for other in others)
                refused += [(row, other) for other in (others if is_end else self.check.impossible(before, others))]
        return refused

    def _is_program(self, sentence: int, ids: list[int]) -> bool:
        if self._refusals[sentence] < MOST_REFUSALS and self.is_program(tuple(ids)):
            return True
        self.longest = max(self.longest, len(ids))
        self._refusals[sentence] += 1
        return False

    def _all(self, row: int, is_end: bool) -> list[int]:
        """The symbols that complete the program of a row, or the others to which the check can say no."""
        symbols = torch.arange(len(self.check.concerned), device=self.check.concerned.device)
        rows = torch.full_like(symbols, row)
        completes = self.trees.completes(rows, symbols)
        others = self.trees.legal_symbols(rows, symbols) & self.check.concerned & ~completes
        return symbols[completes if is_end else others].tolist()
