"""The grammar of the training data: which symbols occur under which.

A line of ``grammar.<lang>.txt`` is ``parent branch child``; parent and child are symbols, and the root is
on branch 0 of ``<root>``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from fairseq.data import Dictionary
from torch import Tensor

from tree_fairseq.errors import CorruptFileError, DictionaryMismatchError, SymbolTreeError
from tree_fairseq.trees.symbols import SymbolEncoding, parents_and_branches
from tree_fairseq.trees.text import read_lines, tokens

ROOT = "<root>"
"""The parent of the root in a rule."""

Rule = tuple[str, int, str]
"""Parent, branch and child."""


@dataclass(frozen=True)
class Grammar:
    """The rules of a grammar by symbol id; R is their number.

    Attributes:
        parents: ``[R]`` int64, -1 for the root's
        branches: ``[R]`` int64, 0 for the root's
        children: ``[R]`` int64
    """

    parents: Tensor
    branches: Tensor
    children: Tensor


def collect_grammar(token_lines: Iterable[Sequence[str]], encoding: SymbolEncoding) -> set[Rule]:
    """Returns the rules that trees, given as lines of symbols, were built with.

    Raises:
        SymbolTreeError: a line is not a tree; the error names the line
    """
    rules: set[Rule] = set()
    shapes: dict[str, tuple[int, int]] = {}
    for number, symbols in enumerate(token_lines, start=1):
        try:
            for symbol in symbols:
                if symbol not in shapes:
                    arity = encoding.split(symbol)[1]
                    shapes[symbol] = arity, encoding.first_branch(arity)
            arities, firsts = zip(*(shapes[symbol] for symbol in symbols)) if symbols else ((), ())
            parents, branches = parents_and_branches(arities, firsts, encoding.traversal)
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


def load_grammar(path: str | os.PathLike, dictionary: Dictionary) -> Grammar:
    """Reads the rules that :func:`write_grammar` wrote, with the ids of a dictionary.

    Raises:
        CorruptFileError: a line is not a rule
        DictionaryMismatchError: a symbol is not in the dictionary
    """
    ids: list[tuple[int, int, int]] = []
    for number, line in enumerate(read_lines(path), start=1):
        fields = tokens(line)
        if len(fields) != 3 or not (fields[1].isascii() and fields[1].isdecimal()):
            raise CorruptFileError(f"{path}:{number}: not of the form `parent branch child`; preprocess the data again")
        parent, branch, child = fields
        ids.append((-1 if parent == ROOT else dictionary.index(parent), int(branch), dictionary.index(child)))
        if dictionary.unk() in (ids[-1][0], ids[-1][2]):
            raise DictionaryMismatchError(
                f"{path}:{number}: the dictionary lacks a symbol of this rule; "
                "use the one that the data was encoded with"
            )
    parents, branches, children = torch.tensor(ids, dtype=torch.int64).view(-1, 3).unbind(1)
    return Grammar(parents, branches, children)
