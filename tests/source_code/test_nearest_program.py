"""The nearest program, against all programs of a small language, and on queries with a schema."""

from __future__ import annotations

import functools
import itertools
import random
from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.source_code.programs import SHARED, real_lines
from tests.source_code.test_scopes import SCHEMA, SQL
from tree_fairseq.source_code.complete_programs import is_program
from tree_fairseq.source_code.field_types import ROOT, FieldTypes
from tree_fairseq.source_code.nearest_program import NearestProgram
from tree_fairseq.source_code.productions import parse_label
from tree_fairseq.source_code.schema import Schema

TYPES = FieldTypes({ROOT: {"S"}, "S.a": {"A", "B"}, "S.b": {"B", "S"}, "A.x": {"B"}, "A.y": {"A", "B"}})
LABELS = ["S a b", "S a", "A x y", "A y", 'B "1', 'B "2']
ANY = SimpleNamespace(accepts=lambda tree: True)
QUERIES = [
    "SELECT name FROM state WHERE area > 3",
    "SELECT c.name, c.people FROM city AS c WHERE c.state = 'x' ORDER BY c.people DESC LIMIT 1",
    "SELECT COUNT(*) FROM city AS c, state AS s WHERE c.state = s.name AND s.capital = c.name",
    "SELECT state FROM city WHERE people = (SELECT MAX(people) FROM city) GROUP BY state",
]


def labels_of(tree):
    return [node.label for node in tree.preorder()]


@functools.cache
def subtrees(field: str, size: int) -> list[tuple[str, ...]]:
    """All subtrees of so many nodes in a field, as labels in preorder."""
    found = []
    for label in LABELS:
        if TYPES.allows(field, label.split(" ")[0]):
            fields = parse_label(label).fields
            for sizes in itertools.product(range(1, size), repeat=len(fields)):
                if sum(sizes) == size - 1:
                    parts = itertools.product(*map(subtrees, fields, sizes))
                    found += [(label, *itertools.chain.from_iterable(part)) for part in parts]
    return found


def distance(first, second) -> int:
    """Levenshtein's distance, as in textbooks."""
    row = list(range(len(second) + 1))
    for number, left in enumerate(first, start=1):
        above, row = row, [number]
        for place, right in enumerate(second, start=1):
            row.append(min(above[place] + 1, row[-1] + 1, above[place - 1] + (left != right)))
    return row[-1]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([*LABELS, "C z", "<unk>"]), max_size=5))
def test_no_program_is_nearer(output):
    found = labels_of(NearestProgram(ANY, TYPES, LABELS, width=1000).find(output))
    programs = list(itertools.chain.from_iterable(subtrees(ROOT, size) for size in range(1, 8)))
    least = min(distance(output, program) for program in programs)
    assert least <= 5 and distance(output, found) == least and tuple(found) in subtrees(ROOT, len(found))


@given(st.sampled_from(list(itertools.chain.from_iterable(subtrees(ROOT, size) for size in range(1, 8)))))
@settings(deadline=None)
def test_a_program_is_its_own_nearest_one(program):
    assert tuple(labels_of(NearestProgram(ANY, TYPES, LABELS).find(program))) == program


def test_the_language_has_the_last_word():
    few = SimpleNamespace(accepts=lambda tree: len(labels_of(tree)) == 4)
    assert len(labels_of(NearestProgram(few, TYPES, LABELS).find(["S a", 'B "1']))) == 4
    nothing = SimpleNamespace(accepts=lambda tree: False)
    assert NearestProgram(nothing, TYPES, LABELS).find(["S a", 'B "1']) is None


def test_a_language_without_finite_programs_has_no_nearest_one():
    assert NearestProgram(ANY, FieldTypes({ROOT: {"S"}, "S.a": {"S"}}), ["S a"]).find(["S a"]) is None


def nearest_query(queries, schema) -> NearestProgram:
    trees = [SQL.read(query) for query in queries]
    counts = Counter(label for tree in trees for label in labels_of(tree))
    return NearestProgram(SQL, FieldTypes.of_trees(trees), [label for label, _ in counts.most_common()], schema)


@pytest.mark.parametrize("schema", [None, SCHEMA])
def test_whatever_is_given_becomes_a_query_that_runs(schema):
    nearest = nearest_query(QUERIES, schema)
    labels = [label for query in QUERIES for label in labels_of(SQL.read(query))]

    @settings(max_examples=30, deadline=None)
    @given(st.lists(st.sampled_from(labels), max_size=12))
    def holds(output):
        found = nearest.find(output)
        assert is_program(found, SQL, schema) and (schema is None or schema.runs(SQL.write(found)))

    holds()


def test_a_name_that_is_not_bound_becomes_one_that_is():
    nearest = nearest_query(QUERIES, SCHEMA)
    wrong = SQL.read("SELECT s.name FROM city AS c WHERE c.state = 'x'")
    assert SQL.write(nearest.find(labels_of(wrong))) == "SELECT c.name FROM city AS c WHERE c.state = 'x'"


def test_real_queries_with_faults_run_again():
    draw = random.Random(1)
    queries = real_lines("text2sql")[:200]
    schema = Schema.load(SHARED / "text2sql" / "geography-db.added-in-2020.sqlite")
    queries = [query for query in queries if schema.runs(query)]
    nearest = nearest_query(queries, schema)
    for query in draw.sample(queries, 6):
        output = labels_of(SQL.read(query))
        output[draw.randrange(len(output))] = draw.choice(output)
        del output[draw.randrange(len(output))]
        assert is_program(nearest.find(output), SQL, schema)
