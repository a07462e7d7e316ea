"""The slow twin of the structural search: all trees up to a size, by trying every sequence."""

from __future__ import annotations

from dataclasses import dataclass

from fairseq.data import Dictionary

from tree_fairseq.data_bin.grammar import ROOT, FieldTable, collect_grammar
from tree_fairseq.data_bin.symbol_dictionary import SymbolTable
from tree_fairseq.errors import SymbolTreeError
from tree_fairseq.trees.symbols import NULL, SymbolEncoding, unknown_symbol


@dataclass(frozen=True)
class Vocabulary:
    """A dictionary of symbols, and how they make trees."""

    dictionary: Dictionary  # with fairseq's special symbols
    encoding: SymbolEncoding  # traversal and binarisation

    @classmethod
    def of(cls, arities: list[int], traversal: str, binarization: str, unknown: bool = False) -> Vocabulary:
        """Symbols a, b, ... with these arities."""
        dictionary = Dictionary()
        for number, arity in enumerate(arities):
            dictionary.add_symbol(f"{chr(97 + number) if number < 26 else number}^{arity}")
        if binarization == "lcrs":
            dictionary.add_symbol(NULL)
        for arity in range(max(arities) + 1) if unknown else ():
            dictionary.add_symbol(unknown_symbol(arity))
        return cls(dictionary, SymbolEncoding(traversal, binarization))

    @property
    def table(self) -> SymbolTable:
        return SymbolTable.from_symbols(self.dictionary.symbols, self.encoding)

    def is_tree(self, tokens) -> bool:
        """Whether ids, EOS at the end, make exactly one tree."""
        *symbols, last = map(int, tokens)
        try:
            self.encoding.decode([self.dictionary[symbol] for symbol in symbols])
        except SymbolTreeError:
            return False
        return last == self.dictionary.eos()

    def trees(self, limit: int, rules: set | None = None, without: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
        """The symbols, as ids, of every tree of at most ``limit`` symbols whose rules are among the given ones."""
        arities = dict(enumerate(self.table.arity.tolist()))
        arities = {token: arity for token, arity in arities.items() if arity >= 0 and token not in without}
        found, waiting = [], [((), 1)]
        while waiting:
            prefix, missing = waiting.pop()
            if missing == 0:
                found.append(prefix)
            elif len(prefix) + missing <= limit:
                waiting += [((*prefix, token), missing - 1 + arity) for token, arity in arities.items()]
        found = [tree for tree in found if self.is_tree((*tree, self.dictionary.eos()))]
        if rules is not None:
            found = [tree for tree in found if rules_of(self, [tree]) <= rules]
        return sorted(found)


def rules_of(vocabulary: Vocabulary, trees) -> set:
    return collect_grammar([[vocabulary.dictionary[token] for token in tree] for tree in trees], vocabulary.encoding)


def by_id(vocabulary: Vocabulary, rules: set) -> FieldTable:
    """Rules by id, as from a file."""
    index = vocabulary.dictionary.index
    ids = [(-1 if parent == ROOT else index(parent), branch, index(child)) for parent, branch, child in sorted(rules)]
    return FieldTable.of_rules(ids, vocabulary.table)


def continuations(trees: list[tuple[int, ...]]) -> dict[tuple[int, ...], set[int]]:
    following: dict[tuple[int, ...], set[int]] = {}
    for tree in trees:
        for length, token in enumerate(tree):
            following.setdefault(tree[:length], set()).add(token)
        following[tree] = set()
    return following


def ranked(
    trees: list[tuple[int, ...]], step_scores, length_penalty: float = 1.0
) -> list[tuple[tuple[int, ...], float]]:
    """All trees with their scores, the best first."""
    scored = []
    for tree in trees:
        total = sum(float(step_scores(list(tree[:place]))[token]) for place, token in enumerate(tree))
        scored.append((tree, total / len(tree) ** length_penalty))
    return sorted(scored, key=lambda pair: -pair[1])
