"""The data flow of a program: from which names and literals each name gets its value, as CodeBLEU compares it.

Ren et al. (2020) take the data-flow graph of GraphCodeBERT (Guo et al. 2021). A program is walked in the order in which
it runs. Loops are walked twice, so a value may come from the round before. After a condition, a name may have the value
of either branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tree_fairseq.source_code.tree_sitter import preorder

_LITERALS = frozenset(["string_literal", "string", "character_literal"])  # one token each, with their quotation marks
_COMES, _COMPUTED = "comesFrom", "computedFrom"
_NESTED = 6  # loops within each other that are walked twice; those inside are walked once

Edge = tuple[str, str, tuple[str, ...]]
"""A name, how it gets its value, and the names from which it does, in the order of the program."""


class Syntax(NamedTuple):
    """The types of nodes of tree-sitter that matter; pairs of fields are a name or target, and its value."""

    declarations: dict[str, tuple[str, str]] = {}
    assignments: dict[str, tuple[str, str]] = {}
    updates: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ("if_statement",)
    alternatives: tuple[str, ...] = ("else", "if_statement")
    counted_loops: tuple[str, ...] = ("for_statement",)
    starts: tuple[str, ...] = ()  # of counted loops: nodes that are not walked again
    each_loops: dict[str, tuple[str, str]] = {}
    loops: tuple[str, ...] = ("while_statement",)
    first: tuple[str, ...] = ()  # nodes that run before their older siblings
    lists: tuple[str, ...] = ()  # of targets and of values, as in `a, b = b, a`


SYNTAX = {
    "java": Syntax(
        declarations={"variable_declarator": ("name", "value")},
        assignments={"assignment_expression": ("left", "right")},
        updates=("update_expression",),
        starts=("local_variable_declaration",),
        each_loops={"enhanced_for_statement": ("name", "value")},
    ),
    "csharp": Syntax(
        declarations={"variable_declarator": ("", "")},
        assignments={"assignment_expression": ("left", "right")},
        updates=("postfix_unary_expression", "prefix_unary_expression"),
        starts=("variable_declaration",),
        each_loops={"foreach_statement": ("left", "right")},
    ),
    "javascript": Syntax(
        declarations={"variable_declarator": ("name", "value")},
        assignments={
            "assignment_expression": ("left", "right"),
            "augmented_assignment_expression": ("left", "right"),
            "assignment_pattern": ("left", "right"),
        },
        updates=("update_expression",),
        alternatives=("else_clause",),
        starts=("variable_declaration", "lexical_declaration"),
        each_loops={"for_in_statement": ("left", "right")},
    ),
    "python": Syntax(
        declarations={"default_parameter": ("name", "value")},
        assignments={
            "assignment": ("left", "right"),
            "augmented_assignment": ("left", "right"),
            "for_in_clause": ("left", "right"),
        },
        alternatives=("elif_clause", "else_clause"),
        counted_loops=(),
        each_loops={"for_statement": ("left", "right")},
        first=("for_in_clause",),
        lists=("pattern_list", "expression_list"),
    ),
}
"""The languages whose data flow is known."""

States = dict[str, list[int]]  # the places where each name may have got its value


def data_flow(root: Any, language: str) -> list[Edge]:
    """The edges of a program as they are compared: names are numbered in the order in which edges have them."""
    numbers: dict[str, str] = {}
    edges = []
    for name, relation, sources in named_edges(root, language):
        for each in (*sources, name):
            numbers.setdefault(each, f"var_{len(numbers)}")
        edges.append((numbers[name], relation, tuple(numbers[each] for each in sources)))
    return edges


def named_edges(root: Any, language: str) -> list[Edge]:
    """The edges of a program that tree-sitter parsed; one that is nested too deeply has none."""
    walk = _Walk(SYNTAX[language])
    for place, token in enumerate(_tokens(root)):
        walk.tokens[token.byte_range] = place, token.text.decode("utf-8", "replace")
    try:
        walk.run(root, {})
    except RecursionError:
        return []
    return walk.merged()


class _Found(NamedTuple):
    place: int
    name: str
    relation: str
    sources: tuple[str, ...]
    places: tuple[int, ...]


@dataclass
class _Walk:
    syntax: Syntax
    tokens: dict[tuple[int, int], tuple[int, str]] = field(default_factory=dict)  # place and text by position
    found: list[_Found] = field(default_factory=list)
    depth: int = 0  # of loops

    def merged(self) -> list[Edge]:
        """The edges by place, one for each place, without names that no value depends on."""
        used = {place for edge in self.found for place in edge.places}
        used |= {edge.place for edge in self.found if edge.places}
        edges: dict[int, _Found] = {}
        for edge in sorted(self.found, key=lambda edge: edge.place):
            if edge.place in edges:
                earlier = edges[edge.place]
                edge = earlier._replace(sources=tuple(dict.fromkeys(earlier.sources + edge.sources)))
            if edge.place in used:
                edges[edge.place] = edge
        return [(edge.name, edge.relation, edge.sources) for edge in edges.values()]

    def run(self, node: Any, states: States) -> States:
        syntax, kind = self.syntax, node.type
        if _is_token(node):
            return self._use(node, states)
        if kind in syntax.declarations:
            name, value = syntax.declarations[kind]
            return self._declare(_field(node, name, False), _field(node, value, True), states)
        if kind in syntax.assignments:
            return self._assign(*map(node.child_by_field_name, syntax.assignments[kind]), states)
        if kind in syntax.updates and any(child.type in ("++", "--") for child in node.children):
            return self._link(self._variables(node), self._variables(node), _COMPUTED, states)
        if kind in syntax.conditions:
            return self._choose(node.children, states)
        if kind in syntax.each_loops:
            return self._each(node, *map(node.child_by_field_name, syntax.each_loops[kind]), states)
        if kind in syntax.counted_loops:
            after = [child.type in syntax.starts for child in node.children]
            again = node.children[after.index(True) + 1 :] if True in after else []
            return self._loop([node.children, again], states)
        if kind in syntax.loops:
            return self._loop([node.children, node.children], states)
        return self._loop([sorted(node.children, key=lambda child: child.type not in syntax.first)], states)

    def _loop(self, rounds: list[Sequence[Any]], states: States) -> States:
        is_loop = len(rounds) > 1
        self.depth += is_loop
        for children in rounds[:1] if self.depth > _NESTED else rounds:
            for child in children:
                states = self.run(child, states)
        self.depth -= is_loop
        return states

    def _use(self, node: Any, states: States) -> States:
        place, text = self.tokens[node.byte_range]
        if node.type == text:
            return states
        if text in states:
            self.found.append(_Found(place, text, _COMES, (text,), tuple(states[text])))
            return states
        self.found.append(_Found(place, text, _COMES, (), ()))
        return {**states, text: [place]} if node.type == "identifier" else states

    def _declare(self, name: Any, value: Any, states: States) -> States:
        if value is None:
            for place, text in self._variables(name):
                self.found.append(_Found(place, text, _COMES, (), ()))
                states = {**states, text: [place]}
            return states
        return self._link(self._variables(name), self._variables(value), _COMES, self.run(value, states))

    def _assign(self, left: Any, right: Any, states: States) -> States:
        if left is None or right is None:
            return states
        pairs = self._pairs(left, right)
        for _, value in pairs:
            states = self.run(value, states)
        for target, value in pairs:
            states = self._link(self._variables(target), self._variables(value), _COMPUTED, states)
        return states

    def _pairs(self, left: Any, right: Any) -> list[tuple[Any, Any]]:
        """Targets and values, one by one if there are as many of both."""
        if (left.type, right.type) == self.syntax.lists:
            targets, values = ([child for child in side.children if child.type != ","] for side in (left, right))
            if len(targets) == len(values):
                return list(zip(targets, values))
        return [(left, right)]

    def _link(self, targets: list, sources: list, relation: str, states: States) -> States:
        names, places = tuple(text for _, text in sources), tuple(place for place, _ in sources)
        for place, text in targets:
            if self.syntax.lists and relation == _COMPUTED:
                self.found.append(_Found(place, text, relation, names, places))
            else:
                self.found += [_Found(place, text, relation, (source,), (start,)) for start, source in sources]
            states = {**states, text: [place]}
        return states

    def _choose(self, children: Sequence[Any], states: States) -> States:
        """Walks the branches of a condition, each from the states before it, and joins their states."""
        main, ends, has_else = states, list[States](), False
        for child in children:
            has_else |= "else" in child.type
            if ends or child.type in self.syntax.alternatives:
                ends.append(self.run(child, states))
            else:
                main = self.run(child, main)
        joined: dict[str, set[int]] = {}
        for end in [*ends, main, *([] if has_else else [states])]:
            for name, places in end.items():
                joined.setdefault(name, set()).update(places)
        return {name: sorted(places) for name, places in joined.items()}

    def _each(self, node: Any, name: Any, value: Any, states: States) -> States:
        body = node.child_by_field_name("body")
        self.depth += 1
        for _ in range(1 if self.depth > _NESTED else 2):
            states = self._assign(name, value, states)
            states = states if body is None else self.run(body, states)
        self.depth -= 1
        return states

    def _variables(self, node: Any) -> list[tuple[int, str]]:
        """Place and text of each name and literal below a node."""
        tokens = [] if node is None else _tokens(node)
        placed = [(token.type, self.tokens[token.byte_range]) for token in tokens]
        return [(place, text) for kind, (place, text) in placed if kind != text]


def _is_token(node: Any) -> bool:
    return (node.child_count == 0 or node.type in _LITERALS) and node.type != "comment"


def _tokens(node: Any) -> list[Any]:
    return [each for each in preorder(node, _is_token) if _is_token(each)]


def _field(node: Any, name: str, is_value: bool) -> Any:
    """A field of a declaration. Where fields have no names, it is the first child, or the last after an equals sign."""
    if name:
        return node.child_by_field_name(name)
    has_value = any(child.type == "=" for child in node.children)
    return node.children[-1 if is_value else 0] if has_value or not is_value else None
