"""The symbols of trees: dictionaries with an unknown symbol for every arity, and the grammar of the training data.

The grammar says which symbols occur under which. A line of ``grammar.<lang>.txt`` is ``parent branch child``; parent
and child are symbols, and the root is on branch 0 of ``<root>``.
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from fairseq.data import Dictionary
from torch import Tensor

from tree_fairseq.errors import CorruptFileError, DictionaryMismatchError, SymbolTreeError
from tree_fairseq.source_code.productions import is_piece
from tree_fairseq.support.files import require_plain_file
from tree_fairseq.trees.notations import Notation
from tree_fairseq.trees.symbols import NULL, UNKNOWN_LABEL, SymbolEncoding, parents_and_branches, unknown_symbol
from tree_fairseq.trees.text import read_lines, tokens
from tree_fairseq.trees.tree import Tree

_SUBWORD_MARKS = re.compile("^\u2581|@@$")  # those of SentencePiece and of subword-nmt


@dataclass(frozen=True)
class SymbolTable:
    """Arities and branches by symbol id; V is the number of symbols."""

    arity: Tensor  # ``[V]`` int64, number of children; -1 for EOS, padding and ``<unk>``
    first_branch: Tensor  # ``[V]`` int64, branch of the first child
    null: int | None  # id of ``<null>``; None without binarisation
    degree: int  # number of branches n of a node: 2 in binary form, the largest arity otherwise
    encoding: SymbolEncoding  # how trees became sequences

    @classmethod
    def from_symbols(cls, symbols: Sequence[str], encoding: SymbolEncoding) -> SymbolTable:
        """Returns the table of a dictionary's symbols, in the order of their ids."""
        arities = [encoding.parts(symbol)[1] for symbol in symbols]
        is_binary = encoding.binarization == "lcrs"
        null = list(symbols).index(NULL) if is_binary and NULL in symbols else None
        degree = 2 if is_binary else max(1, *arities)
        firsts = [encoding.first_branch(arity) for arity in arities]
        return cls(torch.tensor(arities), torch.tensor(firsts), null, degree, encoding)

    def to(self, device: torch.device) -> SymbolTable:
        """Returns the table on another device."""
        return SymbolTable(self.arity.to(device), self.first_branch.to(device), self.null, self.degree, self.encoding)


class TreeDictionary(Dictionary):
    """A dictionary whose sequences of ids are trees, written in ``notation``; its symbols are those fairseq loaded."""

    def __init__(self, dictionary: Dictionary, notation: Notation):
        self.__dict__.update(copy.deepcopy(dictionary.__dict__))
        self.notation = notation

    def tree(self, ids: Iterable[int]) -> Tree:
        """Returns the tree of a sequence of ids, special symbols aside; raises SymbolTreeError if it is not a tree."""
        raise NotImplementedError

    def string(
        self, tensor, bpe_symbol=None, escape_unk=False, extra_symbols_to_ignore=None, unk_string=None, **kwargs
    ) -> str:
        """Returns trees in the notation of the corpus, and other sequences, such as a truncated output, as symbols."""
        if torch.is_tensor(tensor) and tensor.dim() == 2:
            return "\n".join(self.string(row, extra_symbols_to_ignore=extra_symbols_to_ignore) for row in tensor)
        ignored = set(extra_symbols_to_ignore or ())
        ids = [index for index in map(int, tensor) if index not in ignored]
        try:
            return self.notation.write(self.tree(ids))
        except SymbolTreeError:
            return " ".join(self[index] for index in self.kept(ids))

    def text(self, index: int) -> str | None:
        """Returns the text of a leaf or of a piece of a leaf, by its id; None for other symbols."""
        raise NotImplementedError

    def kept(self, ids: Iterable[int]) -> list[int]:
        """Returns the ids of a sequence that are part of a tree: not START, EOS and padding."""
        outside = (self.bos_index, self.pad_index, self.eos_index)
        return [index for index in map(int, ids) if index not in outside]


class SymbolDictionary(TreeDictionary):
    """A dictionary whose symbols carry their arity.

    Its file is an ordinary dictionary of fairseq, so stock architectures read the same folder.
    """

    def __init__(self, dictionary: Dictionary, encoding: SymbolEncoding, notation: Notation):
        super().__init__(dictionary, notation)
        self.encoding = encoding

    def table(self) -> SymbolTable:
        """Returns arities and branches by id."""
        return SymbolTable.from_symbols(self.symbols, self.encoding)

    def index(self, sym: str) -> int:
        """Returns the id of a symbol, or that of the unknown symbol with its arity."""
        if sym in self.indices:
            return self.indices[sym]
        return self.indices.get(unknown_symbol(self.encoding.parts(sym)[1]), self.unk_index)

    def unknown_ids(self) -> list[int]:
        """Returns the ids of ``<unk>`` and of the unknown symbols of all arities."""
        return [self.unk_index, *(self.indices[name] for name in _unknown_symbols(self))]

    def tree(self, ids: Iterable[int]) -> Tree:
        return self.encoding.decode([self[index] for index in self.kept(ids)])

    def text(self, index: int) -> str | None:
        label, arity = self.encoding.parts(self[index])
        # The one branch of a binary tree leads to the next sibling.
        is_leaf = arity == 0 or (self.encoding.binarization == "lcrs" and arity == 1)
        return self.notation.leaf_text(label) if is_leaf and label not in (NULL, UNKNOWN_LABEL) else None

    def pieces(self, index: int) -> int:
        """Returns the number of pieces of a spelled leaf, by its id; 0 for other symbols."""
        label, arity = self.encoding.parts(self[index])
        return arity if arity > 0 and self.notation.leaf_text(label) == "" else 0

    def is_piece(self, index: int) -> bool:
        """Returns whether an id is a piece of a spelled leaf."""
        label, _ = self.encoding.parts(self[index])
        return is_piece(label) and self.notation.leaf_text(label) == label[1:]


def texts_of(dictionary: Dictionary) -> list[str | None]:
    """Returns what each symbol stands for in a text: words without marks of subwords, and texts of leaves of trees.

    Symbols that stand for no text have None.
    """
    if isinstance(dictionary, TreeDictionary):
        texts = [dictionary.text(index) for index in range(len(dictionary))]
    else:
        texts = [_SUBWORD_MARKS.sub("", word) for word in dictionary.symbols]
    return [None if index < dictionary.nspecial else text or None for index, text in enumerate(texts)]


def build_symbol_dictionary(
    counts: Mapping[str, int],
    encoding: SymbolEncoding,
    degree: int,
    *,
    threshold: int,
    nwords: int,
    padding_factor: int,
    all_arities: bool = False,
    spare: Iterable[str] = (),
) -> Dictionary:
    """Returns a dictionary of symbols, and of the words of a joined sequence side, given how often they occur.

    It has all special symbols that trees need, up to the arity ``degree``. With ``all_arities`` it has each of its
    labels with all arities, so that a model can write symbols that training does not show, and also the ``spare``
    symbols.
    """
    dictionary = Dictionary()
    for symbol, count in sorted(counts.items()):
        dictionary.add_symbol(symbol, count)
    dictionary.finalize(threshold=threshold, nwords=nwords, padding_factor=1)
    if all_arities:
        for label in sorted(_labels(dictionary, encoding)):
            for arity in range(degree + 1):
                dictionary.add_symbol(encoding.join(label, arity), 0)
    for symbol in sorted(spare):
        dictionary.add_symbol(symbol, 0)
    if encoding.binarization == "lcrs":
        dictionary.add_symbol(NULL, 0)
    for arity in range(degree + 1):
        dictionary.add_symbol(unknown_symbol(arity), 0)
    dictionary.pad_to_multiple_(padding_factor)
    return dictionary


def _labels(dictionary: Dictionary, encoding: SymbolEncoding) -> set[str]:
    labels = {label for label, arity in map(encoding.parts, dictionary.symbols) if arity >= 0}
    return labels - {NULL, UNKNOWN_LABEL}


def require_symbols(dictionary: Dictionary, encoding: SymbolEncoding, place: str) -> int:
    """Returns the largest arity of the dictionary in the file ``place``.

    Raises DictionaryMismatchError if its symbols were encoded in another way.
    """
    unknown = _unknown_symbols(dictionary)
    if not unknown:
        raise DictionaryMismatchError(
            f"{place} is not a dictionary of tree symbols, it has no {unknown_symbol(0)}: make one with "
            "fairseq-preprocess --source-modality tree or --target-modality tree"
        )
    is_binary = NULL in dictionary
    if is_binary != (encoding.binarization == "lcrs"):
        made_with = "lcrs" if is_binary else "none"
        raise DictionaryMismatchError(
            f"{place} was made with --binarization {made_with}, this is {encoding.binarization}"
        )
    return len(unknown) - 1


def _unknown_symbols(dictionary: Dictionary) -> list[str]:
    """Returns the unknown symbols of arities 0, 1, ... that a dictionary has."""
    names: list[str] = []
    while unknown_symbol(len(names)) in dictionary:
        names.append(unknown_symbol(len(names)))
    return names


ROOT = "<root>"  # the parent of the root in a rule
Rule = tuple[str, int, str]  # parent, branch and child


class TypedGrammar(Protocol):
    """A grammar by types: a node of a type may stand in some fields."""

    def type_of(self, label: str) -> str:
        """Returns the type of a label."""

    def fields_of(self, label: str, arity: int) -> tuple[str, ...]:
        """Returns the field of each child of a node, or () if the grammar has no such node."""

    def allows(self, field: str, type_name: str) -> bool:
        """Returns whether a node of a type may stand in a field."""


@dataclass(frozen=True)
class FieldTable:
    """A grammar for the symbols of a dictionary: which may stand in which field. F is the number of fields."""

    fields: Tensor  # ``[V, n]`` int64, the field of the child on each branch; -1 where there is none
    allowed: Tensor  # ``[F, V]`` bool, the symbols that may stand in each field; the root stands in field 0

    @classmethod
    def of(cls, grammar: TypedGrammar, symbols: Sequence[str], table: SymbolTable) -> FieldTable:
        """Returns the table of a grammar for symbols that were not binarized."""
        types: list[str | None] = [None] * len(symbols)
        fields = torch.full((len(symbols), table.degree), -1)
        numbers = {ROOT: 0}
        for index, arity in enumerate(table.arity.tolist()):
            if arity < 0:
                continue
            label = table.encoding.split(symbols[index])[0]
            names = grammar.fields_of(label, arity)
            if label != UNKNOWN_LABEL and len(names) == arity:
                types[index] = grammar.type_of(label)
                for branch, name in enumerate(names):
                    fields[index, branch] = numbers.setdefault(name, len(numbers))
        by_type: dict[str, list[int]] = {}
        for index, type_name in enumerate(types):
            if type_name is not None:
                by_type.setdefault(type_name, []).append(index)
        allowed = torch.zeros(len(numbers), len(symbols), dtype=torch.bool)
        for name, number in numbers.items():
            for type_name, indices in by_type.items():
                if grammar.allows(name, type_name):
                    allowed[number, indices] = True
        return cls(fields, allowed)

    @classmethod
    def of_rules(cls, rules: Iterable[tuple[int, int, int]], table: SymbolTable) -> FieldTable:
        """Returns the table of the rules of :func:`load_grammar`, with a field for each parent and branch."""
        numbers = {(-1, 0): 0}
        # Rules with a branch that the encoding does not have never apply.
        found = [(numbers.setdefault(rule[:2], len(numbers)), rule[2]) for rule in rules if rule[1] < table.degree]
        numbered, children = torch.tensor(found, dtype=torch.int64).view(-1, 2).unbind(1)
        allowed = torch.zeros(len(numbers), len(table.arity), dtype=torch.bool)
        allowed[numbered, children] = True
        parents, branches = torch.tensor([*numbers]).unbind(1)
        fields = torch.full((len(table.arity) + 1, table.degree), -1)
        fields[parents, branches] = torch.arange(len(numbers))  # the root's parent is the last row
        return cls(fields[:-1], allowed)


def collect_grammar(token_lines: Iterable[Sequence[str]], encoding: SymbolEncoding) -> set[Rule]:
    """Returns the rules of trees, given as lines of symbols; SymbolTreeError names a line that is not a tree."""
    rules: set[Rule] = set()
    arities: dict[str, int] = {}
    for number, symbols in enumerate(token_lines, start=1):
        try:
            for symbol in symbols:
                if symbol not in arities:
                    arities[symbol] = encoding.split(symbol)[1]
            parents, branches = parents_and_branches([arities[symbol] for symbol in symbols], encoding)
        except SymbolTreeError as error:
            raise error.at(line=number) from None
        rules.update(
            (symbols[parent], branch, symbol) if parent >= 0 else (ROOT, 0, symbol)
            for parent, branch, symbol in zip(parents, branches, symbols)
        )
    return rules


def write_grammar(path: str | os.PathLike, rules: Iterable[Rule]) -> None:
    """Writes sorted rules, one a line."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{parent} {branch} {child}\n" for parent, branch, child in sorted(rules))


def load_grammar(path: str | os.PathLike, dictionary: Dictionary) -> list[tuple[int, int, int]]:
    """Reads the rules that :func:`write_grammar` wrote, with the ids of a dictionary; the root has the parent -1.

    Raises CorruptFileError for a line that is not a rule, and DictionaryMismatchError for an unknown symbol.
    """
    require_plain_file(path)
    ids: list[tuple[int, int, int]] = []
    for number, line in enumerate(read_lines(path), start=1):
        fields = tokens(line)
        if len(fields) != 3 or not re.fullmatch("[0-9]{1,9}", fields[1]):
            raise CorruptFileError(f"{path}:{number}: not of the form `parent branch child`; preprocess the data again")
        parent, branch, child = fields
        ids.append((-1 if parent == ROOT else dictionary.index(parent), int(branch), dictionary.index(child)))
        if dictionary.unk() in (ids[-1][0], ids[-1][2]):
            raise DictionaryMismatchError(
                f"{path}:{number}: the dictionary lacks a symbol of this rule; "
                "use the one that the data was encoded with"
            )
    return ids
