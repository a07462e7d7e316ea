"""Constituents of utterances and the subtrees of logical forms that say the same, found in pairs of both.

A *symbol of a word* is the rarest symbol that is in (nearly) every form whose utterance has the word: *ate* and
``eat``, *the* and ``*``, *that* and ``ccomp=``. A symbol counts as said if (nearly) every form that has it comes with
one of its words. Function words without a symbol (*a*, *was*), and symbols without a word (``theme=``), count for
nothing. A constituent and a subtree are aligned if their words and nodes have the same said symbols, as often.

A *lone word* is an utterance of one word. Lone words whose forms differ in one name are of one kind, as *cake*,
``LAMBDA a . cake ( a )``, and *shark*, ``LAMBDA a . shark ( a )``.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from os.path import commonprefix
from typing import NamedTuple, Optional

from preprocess.logical_places import Path, node_at, positions
from tree_fairseq.trees.tree import Tree

MOSTLY = 0.95
"""Share of the pairs with a word that have its symbol, and of the pairs with a symbol that have one of its words."""

Symbols = tuple[str, ...]
"""Said symbols in alphabetical order, each as often as it occurs."""

Frame = tuple[str, ...]
"""The tag of a word, the label above its symbol, and those below: ``("VBD", "ccomp=", "agent=", "theme=")``. The label
above a root is empty."""

FormWithGap = tuple[tuple[int, ...], tuple[Optional[str], ...]]
"""A form without a name: the numbers of children in preorder, and the parts of labels, None in place of the name."""


class Parsed(NamedTuple):
    """The parse of an utterance, whose leaves are its words, and its logical form."""

    parse: Tree
    form: Tree

    @property
    def words(self) -> list[str]:
        """The words of the utterance."""
        return self.parse.leaves()


class Phrase(NamedTuple):
    """A constituent and its subtree: the labels and the paths of both."""

    label: str
    symbol: str
    constituent: Path
    subtree: Path


class Head(NamedTuple):
    """A word and the node that says the same: the word, the paths of both, and the frame."""

    word: str
    leaf: Path
    node: Path
    frame: Frame


class LoneWord(NamedTuple):
    """The name of a word that is an utterance, and its form without the name, which is its kind."""

    name: str
    kind: FormWithGap


def said_symbols(pairs: Iterable[Parsed]) -> dict[str, str]:
    """Returns the symbol of each word that has one; see the module."""
    with_word: Counter[str] = Counter()
    with_symbol: Counter[str] = Counter()
    together: dict[str, Counter[str]] = defaultdict(Counter)
    sets = [({*pair.words}, {node.label for node in pair.form.preorder()}) for pair in pairs]
    for words, symbols in sets:
        with_word.update(words)
        with_symbol.update(symbols)
        for word in words:
            together[word].update(symbols)
    symbol_of: dict[str, str] = {}
    for word, counts in together.items():
        always = [symbol for symbol, count in counts.items() if count >= MOSTLY * with_word[word]]
        if always:
            # A word that occurs once has several symbols as rare as it, of which its own may begin as it does.
            symbol_of[word] = min(
                always, key=lambda symbol: (with_symbol[symbol], -len(commonprefix((symbol, word))), symbol)
            )
    said: Counter[str] = Counter()
    for words, symbols in sets:
        said.update(symbols & {symbol_of[word] for word in words if word in symbol_of})
    return {word: symbol for word, symbol in symbol_of.items() if said[symbol] >= MOSTLY * with_symbol[symbol]}


def aligned_phrases(pair: Parsed, symbol_of: Mapping[str, str]) -> list[Phrase]:
    """Returns the constituents that are aligned with a subtree, tags above words included.

    The utterance and the form as wholes have to say the same. What is said at two places that are not one below the
    other is left out, since it cannot be told which constituent is which subtree. Of subtrees that say the same, the
    lowest is aligned; of constituents of the same label that do, the highest.

    Args:
        symbol_of: the result of `said_symbols`
    """
    said = {*symbol_of.values()}
    constituents = _by_symbols(pair.parse, lambda node: symbol_of.get(node.label) if node.is_leaf else None)
    subtrees = _by_symbols(pair.form, lambda node: node.label if node.label in said else None)
    found: list[Phrase] = []
    whole = _whole(constituents)
    if whole != _whole(subtrees):
        return found
    for symbols, nodes in constituents.items():
        others = subtrees.get(symbols)
        if not symbols or not others or not (_is_chain(nodes) and _is_chain(others)):
            continue
        if symbols == whole and len(others) > 1:
            continue  # What is above the lowest subtree, such as LAMBDA, belongs to the whole utterance alone.
        highest: dict[str, Path] = {}
        for path, node in nodes:
            if node.children:
                highest.setdefault(node.label, path)
        subtree, node = others[-1]
        found += [Phrase(label, node.label, path, subtree) for label, path in highest.items()]
    return found


def aligned_heads(pair: Parsed, symbol_of: Mapping[str, str]) -> list[Head]:
    """Returns the words that have a symbol, where both the utterance and the form have the symbol once."""
    leaves = {path: node.label for path, node in positions(pair.parse) if node.is_leaf and node.label in symbol_of}
    words = Counter(symbol_of[word] for word in leaves.values())
    nodes: dict[str, list[tuple[Path, Tree]]] = defaultdict(list)
    for path, node in positions(pair.form):
        nodes[node.label].append((path, node))
    found = []
    for leaf, word in leaves.items():
        same = nodes[symbol_of[word]]
        if words[symbol_of[word]] == len(same) == 1:
            [(path, node)] = same
            tag = node_at(pair.parse, leaf[:-1]).label
            above = node_at(pair.form, path[:-1]).label if path else ""
            found.append(Head(word, leaf, path, (tag, above, *(child.label for child in node.children))))
    return found


def lone_words(pairs: Iterable[Parsed]) -> dict[str, LoneWord]:
    """Returns the lone words that are of one kind with others.

    The name of a word is the part of its form without which most other forms of lone words are the same.
    """
    forms = {pair.words[0]: pair.form for pair in pairs if len(pair.words) == 1}
    found = {word: [LoneWord(name, kind) for name, kind in _gaps(form)] for word, form in forms.items()}
    sizes = Counter(lone.kind for choices in found.values() for lone in choices)
    most = {word: max(choices, key=lambda lone: sizes[lone.kind]) for word, choices in found.items()}
    return {word: lone for word, lone in most.items() if sizes[lone.kind] > 1}


def symbol_classes(forms: Iterable[Tree]) -> dict[str, str]:
    """Returns a class, which is one of its symbols, for each symbol that a form has below another one.

    Two symbols are of a class if there are forms with both below the same symbol, and classes with a common symbol are
    one class. So ``*``, ``cake`` and ``Emma`` are of one class, since all are below ``theme=``; ``ccomp=``, which is
    below verbs, is of another one.
    """
    link: dict[str, str] = {}  # each symbol to one of its class, in the end to the same one

    def end(symbol: str) -> str:
        while link.setdefault(symbol, symbol) != symbol:
            link[symbol] = symbol = link[link[symbol]]
        return symbol

    first: dict[str, str] = {}  # a symbol that is below another
    for node in chain.from_iterable(form.preorder() for form in forms):
        for child in node.children:
            link[end(child.label)] = end(first.setdefault(node.label, child.label))
    return {symbol: end(symbol) for symbol in list(link)}


def _gaps(form: Tree) -> list[tuple[str, FormWithGap]]:
    """Returns the names in the labels of a form, each with the form without it."""
    nodes = list(form.preorder())
    children = tuple(len(node.children) for node in nodes)
    parts = [part for node in nodes for part in re.split(r"(\W+)", node.label)]
    names = sorted({part for part in parts if re.fullmatch(r"\w+", part)})
    return [(name, (children, tuple(None if part == name else part for part in parts))) for name in names]


def _by_symbols(tree: Tree, symbol: Callable[[Tree], Optional[str]]) -> dict[Symbols, list[tuple[Path, Tree]]]:
    """Returns the nodes in preorder, grouped by the symbols that they and all below them say."""
    nodes = list(positions(tree))
    said: dict[Path, Symbols] = {}
    for path, node in reversed(nodes):
        below = [said[(*path, index)] for index in range(len(node.children))]
        own = symbol(node)
        said[path] = tuple(sorted([*chain.from_iterable(below), *([] if own is None else [own])]))
    grouped: dict[Symbols, list[tuple[Path, Tree]]] = defaultdict(list)
    for path, node in nodes:
        grouped[said[path]].append((path, node))
    return grouped


def _whole(grouped: Mapping[Symbols, Sequence[tuple[Path, Tree]]]) -> Symbols:
    """Returns the group of the root."""
    return next(symbols for symbols, nodes in grouped.items() if nodes[0][0] == ())


def _is_chain(nodes: Sequence[tuple[Path, Tree]]) -> bool:
    """Whether each node is below the one before it."""
    return all(below[: len(above)] == above for (above, _), (below, _) in zip(nodes, nodes[1:]))
