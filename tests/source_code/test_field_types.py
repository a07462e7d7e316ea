"""Grammars by types of fields: what a parser says of its language, against the abstract grammar of Python."""

from __future__ import annotations

import ast
import contextlib
import re

import pytest

from tests.source_code.programs import real_lines, trees_of
from tree_fairseq.errors import CorruptFileError, NotationError
from tree_fairseq.source_code.field_types import ROOT, FieldTypes, probe, type_of
from tree_fairseq.source_code.python import Python
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Tree


@pytest.fixture(scope="module")
def python_types() -> FieldTypes:
    return probe(Python(), trees_of("python"))


def asdl_types(field: str) -> set[str] | None:
    """The classes of ``ast`` that the docstrings of its classes allow in a field; None for a field without nodes."""
    class_name, name = field.split(".")
    found = re.search(rf"(\w+)[?*]? {name}\b", getattr(ast, class_name).__doc__)
    base = getattr(ast, found[1], None)
    if base is None:
        return None
    return {item.__name__ for item in vars(ast).values() if isinstance(item, type) and issubclass(item, base)}


def accepts(types: FieldTypes, tree: Tree) -> bool:
    return all(types.allows(name, each) for name, found in FieldTypes.of_trees([tree]).types.items() for each in found)


def test_the_parser_allows_what_the_abstract_grammar_allows_and_no_more(python_types):
    literals = dict.fromkeys("str int float complex bytes None True False Ellipsis".split(), "Constant")
    checked = 0
    for field, types in python_types.types.items():
        if not re.fullmatch(r"[A-Z]?\w+\.\w+", field) or not hasattr(ast, field.split(".")[0]):
            continue
        wanted = asdl_types(field)
        if wanted is not None:
            assert {literals.get(name, name) for name in types} - {"Absent"} <= wanted, field
            checked += 1
    assert checked > 30


def test_expressions_go_where_any_expression_goes(python_types):
    for field in ("Call.args", "Assign.value", "If.test"):
        assert {"Name", "Call", "BinOp", "str", "Lambda", "Attribute"} <= python_types.types[field]
    # What the abstract grammar allows and the parser does not.
    assert "Call" not in python_types.types["Assign.targets"]
    assert "Starred" not in python_types.types["If.test"]
    assert 'Name "first' not in python_types.types or '"digits' not in python_types.types['Name "first']


@pytest.mark.parametrize("name", ["sql", "python", "java", "csharp", "javascript"])
def test_a_grammar_accepts_the_trees_that_it_was_made_of(name):
    trees = trees_of(name)
    types = probe(notation_named(name), trees)
    seen = FieldTypes.of_trees(trees)
    assert all(accepts(types, tree) for tree in trees)
    assert all(seen.types[field] <= types.types[field] for field in seen.types)
    assert types.types[ROOT] == {type_of(tree.label) for tree in trees}


@pytest.mark.parametrize(("corpus", "name"), [("text2sql", "sql"), ("hearthstone", "python")])
def test_a_grammar_of_half_of_a_corpus_accepts_the_other_half(corpus, name):
    language = notation_named(name)
    trees = []
    for line in real_lines(corpus):
        with contextlib.suppress(NotationError):
            trees.append(language.read(line))
    types = probe(language, trees[::2])
    assert sum(accepts(types, tree) for tree in trees[1::2]) >= 0.99 * len(trees[1::2])


def test_clauses_stay_in_their_places():
    types = probe(notation_named("sql"), trees_of("sql")).types
    assert "From" not in types["EQ.this"] and "Where" not in types["Select.expressions"]
    assert {"Column", "Literal", "Subquery", "Count"} <= types["EQ.expression"]


def test_the_parser_is_asked_in_programs_with_line_breaks_too():
    trees_of("java")  # skips without tree-sitter
    language = notation_named("tree-sitter:tree_sitter_python")
    types = probe(language, [language.read(line) for line in ("x = 1§y = a + z", "f(a)§g(b)")]).types
    assert types["binary_operator.left"] >= {"identifier", "integer"}


def test_types_are_saved_and_loaded(python_types, tmp_path):
    python_types.save(tmp_path / "types.txt")
    assert FieldTypes.load(tmp_path / "types.txt").types == python_types.types
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(CorruptFileError, match="no types"):
        FieldTypes.load(tmp_path / "empty.txt")
