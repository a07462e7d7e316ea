"""Grammars in ASDL: which types the children of a node may have, against all ways to give children to fields."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tree_fairseq.errors import NotationError
from tree_fairseq.source_code.asdl import VALUE, AsdlGrammar
from tree_fairseq.source_code.field_types import ROOT

GRAMMAR = """
module Small {  -- a comment
    stmt = Assign(identifier target, expr value) | For(identifier i, expr* range, stmt* body) attributes (int line)
    expr = Add(expr left, expr? right) | Number(int) | Nothing | Dict(expr?* keys)
    argument = (identifier name, expr value)
}
"""


@pytest.fixture(scope="module")
def grammar(tmp_path_factory) -> AsdlGrammar:
    path = tmp_path_factory.mktemp("asdl") / "small.asdl"
    path.write_text(GRAMMAR)
    return AsdlGrammar.load(path)


def test_types_and_fields(grammar):
    assert grammar.types == ("stmt", "expr", "argument")
    assert grammar.type_of("For") == "stmt" and grammar.type_of("x1") == VALUE
    assert grammar.fields_of("argument", 2) == ("identifier", "expr")
    assert grammar.fields_of("x1", 0) == () and grammar.fields_of("Dict", 2) == ("expr", "expr")
    allowed = [(ROOT, "stmt"), ("expr|stmt", "expr"), ("identifier", VALUE)]
    assert all(grammar.allows(field, name) for field, name in allowed)
    assert not grammar.allows(ROOT, "expr") and not grammar.allows("expr", VALUE)


def all_ways(fields: list[tuple[str, str]], arity: int) -> list[list[str]]:
    """The type of each child, for all ways to give so many children to fields in order."""
    ranges = {"": [1], "?": [0, 1], "*": range(arity + 1)}
    counted = itertools.product(*(ranges[many] for _, many in fields))
    ways = ([name for (name, _), count in zip(fields, counts) for _ in range(count)] for counts in counted)
    return [way for way in ways if len(way) == arity]


@settings(max_examples=100, deadline=None)
@given(
    fields=st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from(["", "?", "*"])), max_size=4),
    arity=st.integers(0, 5),
)
def test_children_have_the_types_of_some_way_to_fill_the_fields(tmp_path_factory, fields, arity):
    path = tmp_path_factory.mktemp("asdl") / "one.asdl"
    path.write_text(f"a = A({', '.join(name + many + ' x' for name, many in fields)})")
    ways = all_ways(fields, arity)
    wanted = tuple("|".join(sorted({way[child] for way in ways})) for child in range(arity)) if ways else ()
    assert AsdlGrammar.load(path).fields_of("A", arity) == wanted


@pytest.mark.parametrize(("text", "line"), [("a = B(\nc d", 2), ("a =\n\n$", 3), ("", None), ("a = B(c)\nb d", 2)])
def test_a_file_that_is_not_asdl_is_refused_with_its_line(tmp_path, text, line):
    path = tmp_path / "wrong.asdl"
    path.write_text(text)
    with pytest.raises(NotationError) as caught:
        AsdlGrammar.load(path)
    assert (caught.value.path, caught.value.line) == (str(path), line)
