"""The grammar of a language by types of fields: which types of nodes may stand in which field.

Libraries rarely say what their fields hold, but their parsers know. A type is legal in a field if training has it
there, or if the parser reads back a small program in which a node of that type was put into the field.
"""

from __future__ import annotations

import functools
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tree_fairseq.errors import CorruptFileError, NotationError, did_you_mean
from tree_fairseq.source_code.language import Language
from tree_fairseq.source_code.productions import QUOTE, REST, is_piece, parse_label, split_leaf
from tree_fairseq.source_code.spelling import CHARACTERS
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.text import escape_label, read_lines, unescape_label
from tree_fairseq.trees.tree import Tree, tree_from_preorder

_EXAMPLES = 2  # productions of each type that are tried
_NEXT = f" {QUOTE}next"  # ends the name of the field of the second and further pieces of a leaf
ROOT = "<root>"  # the field of a whole program


def type_of(label: str) -> str:
    """The type of a node: that of its production; pieces of leaves have one for each class of characters."""
    if not is_piece(label):
        return parse_label(label).type if label != REST else REST
    text = label[1:]
    if re.fullmatch(r"[^\W\d]\w*", text):
        return f"{QUOTE}letters"
    return f"{QUOTE}digits" if re.fullmatch(r"\d+", text) else f"{QUOTE}{text[:1]}"


def fields_of(label: str, arity: int) -> tuple[str, ...]:
    """The fields of the children of a node; the pieces of a leaf have those of its type, the first one its own."""
    if label == REST:
        return (QUOTE + _NEXT,) * arity
    head, text = split_leaf(label)
    if text is not None:
        name = parse_label(label).links[-1].type if head else QUOTE
        return (f"{name} {QUOTE}first", *[name + _NEXT] * (arity - 1))[:arity]
    return parse_label(label).fields


@dataclass
class FieldTypes:
    """The types that may stand in each field; the root's field is ROOT."""

    types: dict[str, set[str]] = field(default_factory=dict)

    @classmethod
    def of_trees(cls, trees: Iterable[Tree]) -> FieldTypes:
        """The types that trees have in their fields."""
        found = cls()
        for tree in trees:
            found.types.setdefault(ROOT, set()).add(type_of(tree.label))
            for node in tree.preorder():
                for name, child in zip(fields_of(node.label, len(node.children)), node.children):
                    found.types.setdefault(name, set()).add(type_of(child.label))
        return found

    type_of = staticmethod(type_of)
    fields_of = staticmethod(fields_of)

    def allows(self, name: str, type_name: str) -> bool:
        """Whether a node of a type may stand in a field; the field of a rest has the name of its type."""
        return name == type_name or type_name in self.types.get(name, ())

    def beginning_with(self, roots: Sequence[str]) -> FieldTypes:
        """The same fields for programs whose root has one of these types. Raises NotationError for an unknown type."""
        known = set().union(*self.types.values())
        for name in roots:
            if name not in known:
                nearest = did_you_mean(name, known)
                raise NotationError(f"--grammar: no program of the data has a node of type {name!r}", hint=nearest)
        return FieldTypes({**self.types, ROOT: set(roots)})

    def save(self, path: str | os.PathLike) -> None:
        """Writes a field and its types to each line."""
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            for name, types in sorted(self.types.items()):
                file.write(" ".join(map(escape_label, (name, *sorted(types)))) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike) -> FieldTypes:
        """Reads the file that :meth:`save` wrote; raises CorruptFileError for an empty one."""
        lines = [[unescape_label(word) for word in line.split(" ")] for line in read_lines(path)]
        if not lines:
            raise CorruptFileError(f"{path}: no types of fields; preprocess the data again")
        return cls({name: set(types) for name, *types in lines})


def probe(language: Language, trees: Iterable[Tree], run: Callable[..., Iterable[Any]] = map) -> FieldTypes:
    """The types of all fields that occur in trees, as the parser of their language has them.

    ``run`` maps a function over tasks, such as that of a pool of processes, which need the name of the language.
    """
    trees = list(trees)
    found = FieldTypes.of_trees(trees)
    places, subtrees = _smallest(trees)
    for character in CHARACTERS:
        subtrees.setdefault(type_of(QUOTE + character), [Tree(QUOTE + character)])
    classes = {type_name for type_name in subtrees if type_name.startswith(QUOTE)}
    types = subtrees.keys() - classes - {REST}
    tasks = []
    for name, (tree, place) in sorted(places.items()):
        wanted = sorted((classes if f" {QUOTE}" in name else types) - found.types[name])
        tasks.append((name, tree, place, {type_name: subtrees[type_name] for type_name in wanted}))
    for name, allowed in run(functools.partial(_read_back, language.name), tasks):
        found.types[name] |= {*allowed, *([REST] if name.endswith(_NEXT) else [])}
    found.types[QUOTE + _NEXT] = {*classes, REST}
    return found


def _read_back(name: str, task: tuple[str, Tree, int, dict[str, list[Tree]]]) -> tuple[str, list[str]]:
    """The name of a field, and the types with a subtree that the parser reads back at a place in a program."""
    language = notation_named(name)
    assert isinstance(language, Language)
    field_name, tree, place, subtrees = task

    def is_legal(examples: list[Tree]) -> bool:
        return any(_is_read_back(language, _with_subtree(tree, place, each)) for each in examples)

    return field_name, [type_name for type_name, examples in subtrees.items() if is_legal(examples)]


def _smallest(trees: Iterable[Tree]) -> tuple[dict[str, tuple[Tree, int]], dict[str, list[Tree]]]:
    """Small programs of each field, with the place of a child, and small subtrees of each type."""
    places, found, counts = dict[str, tuple[Tree, int]](), dict[str, list[Tree]](), Counter[str]()
    smallest: dict[str, tuple[int, Tree]] = {}
    for size, tree in sorted(((_size(tree), tree) for tree in trees), key=lambda pair: pair[0]):
        for name, child, place in _fields_and_places(tree):
            places.setdefault(name, (tree, place))
            counts[child.label] += 1
            known = smallest.get(child.label)
            if known is None or (known[0] > 2 and _size(child) < known[0]):
                smallest[child.label] = _size(child), child
    for label, _ in counts.most_common():
        examples = found.setdefault(type_of(label), [])
        if len(examples) < _EXAMPLES:
            examples.append(smallest[label][1])
    return places, found


def _size(tree: Tree) -> int:
    return sum(1 for _ in tree.preorder())


def _fields_and_places(tree: Tree) -> Iterator[tuple[str, Tree, int]]:
    """The field, the node and the place in preorder of every node below the root."""
    waiting: list[str] = [ROOT]
    for place, node in enumerate(tree.preorder()):
        name = waiting.pop()
        if place:
            yield name, node, place
        waiting += reversed(fields_of(node.label, len(node.children)))


def _with_subtree(tree: Tree, place: int, subtree: Tree) -> Tree:
    """The tree with another subtree at a place in preorder."""
    nodes = list(tree.preorder())
    changed = [*nodes[:place], *subtree.preorder(), *nodes[place + _size(nodes[place]) :]]
    return tree_from_preorder([node.label for node in changed], [len(node.children) for node in changed])


def _is_read_back(language: Language, tree: Tree) -> bool:
    whole = language.whole(tree)
    try:
        return language.is_tree_of(language.unparse(whole), whole)
    except Exception:
        return False
