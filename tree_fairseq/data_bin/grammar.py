"""Grammars: which symbols may stand under which, as the training data has them, or by types of fields.

A line of ``grammar.<lang>.txt`` is ``parent branch child``; parent and child are symbols, and the root is on branch 0
of ``<root>``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Union

import torch
from fairseq.data import Dictionary
from torch import Tensor

from tree_fairseq.data_bin.symbol_dictionary import SymbolTable
from tree_fairseq.errors import CorruptFileError, DictionaryMismatchError, SymbolTreeError
from tree_fairseq.source_code.asdl import AsdlGrammar
from tree_fairseq.source_code.field_types import ROOT, FieldTypes
from tree_fairseq.support.files import require_plain_file
from tree_fairseq.trees.symbols import UNKNOWN_LABEL, SymbolEncoding, parents_and_branches
from tree_fairseq.trees.text import read_lines, tokens

Rule = tuple[str, int, str]  # parent, branch and child; ROOT is the parent of the root
TypedGrammar = Union[AsdlGrammar, FieldTypes]  # a grammar by types: a node of a type may stand in some fields


@dataclass(frozen=True)
class FieldTable:
    """A grammar for the symbols of a dictionary: which may stand in which field. F is the number of fields."""

    fields: Tensor  # ``[V, n]`` int64, the field of the child on each branch; -1 where there is none
    allowed: Tensor  # ``[F, V]`` bool, the symbols that may stand in each field; the root stands in field 0

    @classmethod
    def of(cls, grammar: TypedGrammar, symbols: Sequence[str], table: SymbolTable) -> FieldTable:
        """Returns the table of a grammar for symbols that were not binarized."""
        by_type: dict[str, list[int]] = {}
        fields = torch.full((len(symbols), table.degree), -1)
        numbers = {ROOT: 0}
        for index, arity in enumerate(table.arity.tolist()):
            if arity < 0:
                continue
            label = table.encoding.split(symbols[index])[0]
            names = grammar.fields_of(label, arity)
            if label != UNKNOWN_LABEL and len(names) == arity:
                by_type.setdefault(grammar.type_of(label), []).append(index)
                for branch, name in enumerate(names):
                    fields[index, branch] = numbers.setdefault(name, len(numbers))
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
