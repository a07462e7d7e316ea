"""Terms with operators, ``f ( a , b ) , g ( c )``: Prolog and what looks like it."""

from __future__ import annotations

from tree_fairseq.trees.notations.notation import GROUP, Notation
from tree_fairseq.trees.notations.term_grammars import ARGUMENT, WHOLE, Infix, TermGrammar
from tree_fairseq.trees.notations.term_reader import LIST, TAILED_LIST, TermReader
from tree_fairseq.trees.tree import Tree


class TermNotation(Notation):
    """Trees as terms of a grammar.

    Args:
        grammar: names, operators and spacing
    """

    def __init__(self, grammar: TermGrammar):
        self.grammar = grammar
        self._blank = " " if grammar.spaced else ""
        self._comma = f"{self._blank}, "

    def _read(self, line: str) -> Tree:
        return TermReader(line, self.grammar).read()

    def write(self, tree: Tree) -> str:
        parts: list[str] = []
        # What is still to be written: text, or a tree with the priority that it may have without brackets.
        stack: list[str | tuple[Tree, int]] = [(tree, WHOLE)]
        while stack:
            item = stack.pop()
            if isinstance(item, str):
                parts.append(item)
                continue
            node, limit = item
            groups = 0
            while node.label == GROUP and len(node.children) == 1:
                node, groups = node.children[0], groups + 1
            groups += self._priority(node) > limit
            stack += [f"{self._blank})"] * groups
            stack += reversed(self._pieces(node))
            stack += [f"({self._blank}"] * groups
        return "".join(parts)

    def _infix(self, node: Tree) -> Infix | None:
        infix = self.grammar.infixes.get(node.label)
        count = len(node.children)
        return infix if infix and (count == 2 or infix.chained and count > 2) else None

    def _priority(self, node: Tree) -> int:
        if infix := self._infix(node):
            return infix.priority
        prefix = self.grammar.prefix_of(node.label) if len(node.children) == 1 else None
        return prefix.priority if prefix else 0

    def _pieces(self, node: Tree) -> list[str | tuple[Tree, int]]:
        """What a node is written as, its children as trees."""
        grammar, children = self.grammar, node.children
        if infix := self._infix(node):
            operator = ", " if node.label == "," and not grammar.spaced else f" {node.label} "
            limits = [infix.left, *[infix.right] * (len(children) - 1)]
            return _separated(children, limits, operator)
        if len(children) == 1 and (prefix := grammar.prefix_of(node.label)):
            return [grammar.joined(node.label) + " ", (children[0], prefix.priority)]
        if grammar.lists and node.label == TAILED_LIST and len(children) > 1:
            return ["[ ", *self._listed(children[:-1]), " | ", (children[-1], ARGUMENT), " ]"]
        if grammar.lists and node.label == LIST:
            return [f"[{self._blank}", *self._listed(children), f"{self._blank if children else ''}]"]
        name = grammar.text_of(node.label)
        return (
            [f"{name}{self._blank}({self._blank}", *self._listed(children), f"{self._blank})"] if children else [name]
        )

    def _listed(self, trees: tuple[Tree, ...]) -> list[str | tuple[Tree, int]]:
        return _separated(trees, [ARGUMENT] * len(trees), self._comma)


def _separated(trees: tuple[Tree, ...], limits: list[int], separator: str) -> list[str | tuple[Tree, int]]:
    pieces: list[str | tuple[Tree, int]] = []
    for tree, limit in zip(trees, limits, strict=True):
        pieces += [separator, (tree, limit)]
    return pieces[1:]
