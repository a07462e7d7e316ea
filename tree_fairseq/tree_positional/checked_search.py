"""Searches that ask the programming language, and the database, about each continuation they would take.

A grammar by types is a mask that is computed once. Some rules depend on more of a program: which tables are in scope,
or what only the parser knows. They are asked as in PICARD (Scholak et al., EMNLP 2021), only for candidates that a beam
would take: one that is refused makes room for the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import torch
from fairseq.search import BeamSearch, Search

from tree_fairseq.data_bin.symbol_dictionary import SymbolDictionary
from tree_fairseq.source_code.language import Language
from tree_fairseq.source_code.schema import Schema
from tree_fairseq.source_code.scopes import Scopes
from tree_fairseq.tree_positional.hypotheses import TreeHypotheses
from tree_fairseq.trees.symbols import HOLE
from tree_fairseq.trees.tree import Tree, tree_from_preorder

MOST_ENDS = 8
"""After so many refusals of the last symbol of a program, the fault lies before it: no other symbol may end it."""
MOST_REFUSALS = 1000
"""So many programs of a sentence are refused in a search before it may end no more; shorter ones are sought then."""


class ProgramCheck:
    """Says which sequences of symbols are programs that run on a schema, if there is one, and which may become some."""

    def __init__(self, dictionary: SymbolDictionary, language: Language, schema: Schema | None = None):
        self._dictionary, self._language, self._schema = dictionary, language, schema
        is_preorder = dictionary.encoding.traversal == "dfs"
        self._scopes = None if schema is None or not is_preorder else Scopes(schema)
        parts = list(map(dictionary.encoding.parts, dictionary.symbols))
        self._labels, self._arities = map(list, zip(*parts))
        self.concerned = torch.tensor(
            [self._scopes is not None and arity >= 0 and Scopes.concern(label) for label, arity in parts]
        )
        """``[V]`` bool: the symbols to which :meth:`is_possible` can say no where they do not complete a program."""

    def is_program(self, ids: Sequence[int]) -> bool:
        """Whether the language reads a program, and the database can run it."""
        tree = self._dictionary.tree(ids)
        runs = self._schema is None or self._schema.runs(self._language.write(tree))
        return runs and self._language.accepts(tree)

    def is_possible(self, ids: Sequence[int]) -> bool:
        """Whether the names of an incomplete program are bound, or may still be."""
        return self._scopes is None or self._scopes.allows(self._partial_tree(ids))

    def _partial_tree(self, ids: Sequence[int]) -> Tree:
        """The tree of the first symbols in preorder; a missing subtree is a leaf HOLE."""
        labels, arities = [self._labels[index] for index in ids], [self._arities[index] for index in ids]
        missing = 1 + sum(arities) - len(arities)
        return tree_from_preorder(labels + [HOLE] * missing, arities + [0] * missing)


class CheckedSearch(Search):
    """A search of fairseq whose candidates are checked; a refused one gets the score ``masked``.

    ``longest`` is the number of symbols of the longest program that was refused.
    """

    def __init__(self, search: Search, dictionary: SymbolDictionary, check: ProgramCheck, masked: float):
        super().__init__(dictionary)
        self.search, self.check, self._masked = search, check, masked
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
        ends: Counter[int] = Counter()
        while True:
            found = self.search.step(step, lprobs, scores, prev_output_tokens, original_batch_idxs)
            if not self.is_active:
                return found
            refused = self._refused(lprobs, found[1], found[2], prev_output_tokens, checked, ends)
            if not refused:
                return found
            rows, symbols = torch.tensor(refused, device=lprobs.device).unbind(1)
            lprobs.view(-1, lprobs.size(-1))[rows, symbols] = self._masked
            self.trees.refuse(rows, symbols)

    def prune_sentences(self, batch_idxs):
        self._refusals = Counter({new: self._refusals[old] for new, old in enumerate(batch_idxs.tolist())})
        return self.search.prune_sentences(batch_idxs)

    def _refused(self, lprobs, symbols, beams, tokens, checked, ends) -> list[tuple[int, int]]:
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
        for row, symbol, is_complete in zip(
            rows[places].tolist(), symbols[places].tolist(), completes[places].tolist()
        ):
            if (row, symbol) in checked:
                continue
            checked.add((row, symbol))
            ids = [*tokens[row, 1:].tolist(), symbol]
            if not is_complete:
                refused += [] if self.check.is_possible(ids) else [(row, symbol)]
            elif ends[row] < MOST_ENDS and not (self._may_end(row // beam) and self.check.is_program(ids)):
                self.longest = max(self.longest, len(ids))
                self._refusals[row // beam] += 1
                ends[row] = ends[row] + 1 if self._may_end(row // beam) else MOST_ENDS
                refused.append((row, symbol))
                # Those that were asked before and are not refused end a program.
                refused += set(self._all_ends(row)) - checked if ends[row] >= MOST_ENDS else []
        return refused

    def _may_end(self, sentence: int) -> bool:
        return self._refusals[sentence] < MOST_REFUSALS

    def _all_ends(self, row: int) -> list[tuple[int, int]]:
        symbols = torch.arange(len(self.check.concerned), device=self.check.concerned.device)
        ending = self.trees.completes(torch.full_like(symbols, row), symbols)
        return [(row, symbol) for symbol in symbols[ending].tolist()]
