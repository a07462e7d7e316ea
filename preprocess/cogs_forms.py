"""COGS's logical forms without variables (Qiu et al. 2022), and back.

    * girl ( x _ 1 ) ; eat . agent ( x _ 2 , x _ 1 ) AND eat . theme ( x _ 2 , x _ 4 ) AND cake ( x _ 4 )
    eat ( agent = * girl , theme = cake )

A variable of the original form of Kim and Linzen (2020) is the position of its word. The way back finds the positions
in the sentence: nouns and verbs come there in the order of the tree, the nouns after *a* or *the*. Forms without such
variables (names, and those with ``LAMBDA``) are the same in both.

    python -m preprocess.cogs_forms --run RUN --sentences TEXT/test.nl --set test --output RUN/original

writes the output of ``fairseq-generate`` for a test set again, with original forms, for the scorer. An output that is
not the form of its sentence becomes ``?``.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, Optional

from preprocess.command import run_command
from preprocess.corpora import CorpusError, raw_lines, read_lines, write_lines
from tree_fairseq.errors import SymbolTreeError
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Tree

NOTATION = "variable-free"
NOT_A_FORM = "?"
DEFINITE = "*"
MODIFIER = "nmod."
_VARIABLE = r"x _ (\d+)"
_THING = re.compile(rf"(\* )?(\S+) \( {_VARIABLE} \)")
_RELATION = re.compile(rf"(\S+) \. (.+) \( {_VARIABLE} , (?:{_VARIABLE}|(\S+)) \)")
_FUNCTION_WORDS = frozenset(". a an the that was to by in on beside".split())
_DETERMINERS = frozenset("a an the".split())


def has_variables(form: str) -> bool:
    """Whether a form has variables that are positions of words."""
    return " x _ " in f" {form}"


def without_variables(form: str) -> str:
    """Converts an original form to a variable-free one; another form stays as it is."""
    if not has_variables(form):
        return form
    names: dict[int, str] = {}
    definite, arguments = set(), set()
    relations: dict[int, list[tuple[str, int | str]]] = {}
    for part in re.split(r" ; | AND ", form):
        if thing := _THING.fullmatch(part):
            names[int(thing[3])] = thing[2]
            if thing[1]:
                definite.add(int(thing[3]))
        elif relation := _RELATION.fullmatch(part):
            name, role, head, word, proper = relation.groups()
            names[int(head)] = name
            arguments |= {int(word)} if word else set()
            relations.setdefault(int(head), []).append((role.replace(" ", ""), int(word) if word else proper))
        else:
            raise CorpusError(f"not a part of a logical form of COGS: {part!r}")
    roots = [word for word in names if word not in arguments]
    if len(roots) != 1 or arguments - {*names}:
        raise CorpusError(f"not the form of one sentence, which has one root: {form!r}")
    trees: dict[int, Tree] = {}
    stack = roots
    while stack:
        word = stack[-1]
        below = [argument for _, argument in relations.get(word, []) if isinstance(argument, int)]
        if missing := [argument for argument in below if argument not in trees]:
            if len(stack) > len(names):
                raise CorpusError(f"the relations of a form run in circles: {form!r}")
            stack.append(missing[0])
            continue
        stack.pop()
        children = [
            Tree(f"{role}=", [trees[argument] if isinstance(argument, int) else Tree(argument)])
            for role, argument in relations.get(word, [])
        ]
        tree = Tree(names[word], children)
        trees[word] = Tree(DEFINITE, [tree]) if word in definite else tree
    return notation_named(NOTATION).write(trees[word])


def with_variables(form: str, sentence: str) -> str:
    """Converts a variable-free form to the original form of its sentence; the inverse of `without_variables`."""
    tree = notation_named(NOTATION).read(form)
    if tree.label.startswith("LAMBDA ") or tree.is_leaf:
        return form
    definite: list[str] = []
    parts: dict[int, list[str]] = {}
    nouns, verbs = _words(sentence)
    for node, position, arguments in list(_aligned(tree, nouns, verbs)):
        name, is_definite = _unmarked(node)
        if is_definite:
            definite.append(f"* {name.label} ( x _ {position} ) ;")
        parts[position] = [] if is_definite or _is_verb(name) else [f"{name.label} ( x _ {position} )"]
        for child, argument in zip(name.children, arguments):
            role = child.label[: -len("=")].replace(".", " . ")
            parts[position].append(f"{name.label} . {role} ( x _ {position} , {argument} )")
    written = " AND ".join(part for position in sorted(parts) for part in parts[position])
    return " ".join([*definite, written]).strip()


def _words(sentence: str) -> tuple[dict[int, str], list[int]]:
    """The common nouns of a sentence by position, and the positions of its verbs."""
    words = sentence.split()
    nouns = {n: word.lower() for n, word in enumerate(words) if n and words[n - 1].lower() in _DETERMINERS}
    others = (n for n, word in enumerate(words) if n not in nouns and word.lower() not in _FUNCTION_WORDS)
    return nouns, [n for n in others if not words[n][:1].isupper()]


def _unmarked(node: Tree) -> tuple[Tree, bool]:
    """A node without the mark of a definite noun, and whether it had one."""
    return (node.children[0], True) if node.label == DEFINITE and len(node.children) == 1 else (node, False)


def _is_verb(node: Tree) -> bool:
    return any(not child.label.startswith(MODIFIER) for child in node.children)


class _Step(NamedTuple):
    """An argument that is to be aligned: ``role = node``."""

    role: Tree
    above: list[str]  # arguments of the node above, which get this one
    controller: Optional[tuple[Tree, list[str]]]  # the verb above an xcomp, whose agent both verbs have


def _aligned(tree: Tree, nouns: Mapping[int, str], verbs: Iterable[int]) -> Iterator[tuple[Tree, int, list[str]]]:
    """Yields the nodes of words in preorder, with their positions, and the variables or names of their arguments.

    The arguments of a node are complete when all nodes have been yielded.
    """
    last, next_verb = -1, iter(verbs)
    parents: dict[int, tuple[Tree, list[str]]] = {}  # by the identity of an argument
    stack = [_Step(Tree("=", [tree]), [], None)]
    while stack:
        role, above, controller = stack.pop()
        if not role.label.endswith("=") or len(role.children) != 1:
            raise CorpusError(f"not an argument: {role.label!r}")
        if role.label == "agent=" and controller is not None:
            above.append(_shared_agent(role.children[0], *controller))
            continue
        name, _ = _unmarked(role.children[0])
        if name.is_leaf and name.label[:1].isupper():
            above.append(name.label)
            continue
        if _is_verb(name):
            position = next(next_verb, None)
        else:
            position = next((n for n, word in nouns.items() if n > last and word == name.label), None)
            last = last if position is None else position
        if position is None:
            raise CorpusError(f"the sentence has no {name.label!r} there")
        above.append(f"x _ {position}")
        arguments: list[str] = []
        yield role.children[0], position, arguments
        stack += [
            _Step(child, arguments, parents.get(id(role)) if role.label == "xcomp=" else None)
            for child in reversed(name.children)
        ]
        parents.update((id(child), (name, arguments)) for child in name.children)
    if next(next_verb, None) is not None:
        raise CorpusError("the sentence has more verbs than the form")


def _shared_agent(agent: Tree, verb: Tree, arguments: list[str]) -> str:
    """The argument of a verb that is the agent of its xcomp, too; the sentence has its noun once."""
    for child, argument in zip(verb.children, arguments):
        if child.label == "agent=" and child.children[0] == agent:
            return argument
    raise CorpusError("a verb and its xcomp have different agents")


def restore(outputs: Iterable[str], sentences: list[str]) -> Iterator[str]:
    """Yields the lines of ``fairseq-generate`` with original forms as hypotheses."""
    for line in outputs:
        kind, (identifier, *values) = line[:2], line[2:].split("\t")
        if kind in ("H-", "D-") and len(values) == 2:
            if not identifier.isdecimal() or int(identifier) >= len(sentences):
                raise CorpusError(f"there is no sentence {identifier}; there are {len(sentences)}")
            try:
                values[1] = with_variables(values[1], sentences[int(identifier)])
            except (CorpusError, SymbolTreeError):
                values[1] = NOT_A_FORM
            line = kind + "\t".join((identifier, *values))
        yield line


def main(arguments: list[str] | None = None) -> int:
    """Command line of this module; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m preprocess.cogs_forms", description=__doc__.splitlines()[0])
    parser.add_argument("--run", type=Path, required=True, help="folder of generate-SET.txt")
    parser.add_argument("--set", required=True, help="name of the test set")
    parser.add_argument("--sentences", type=Path, required=True, help="file of the sentences of the test set")
    parser.add_argument("--output", type=Path, required=True, help="folder for generate-SET.txt with original forms")
    args = parser.parse_args(arguments)

    def run() -> None:
        source = args.run / f"generate-{args.set}.txt"
        write_lines(args.output / source.name, restore(raw_lines(source), list(read_lines(args.sentences))))

    return run_command("cogs_forms", run)


if __name__ == "__main__":
    raise SystemExit(main())
