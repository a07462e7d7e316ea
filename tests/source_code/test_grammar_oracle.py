"""Python by another parser: the grammar that comes with lark.

Every program that the language reads or writes is one of that grammar.
"""

from __future__ import annotations

import re

import lark
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lark.indenter import PythonIndenter

from tests.source_code.programs import real_lines, trees_of
from tests.source_code.test_languages import expressions
from tree_fairseq.errors import InputError
from tree_fairseq.source_code.language import LINE_BREAK
from tree_fairseq.source_code.python import OPENER, Python

TOKENS = st.sampled_from("x y 1 's' ( ) [ ] { } , : = == + - * . if else for in lambda not return def class f".split())


@pytest.fixture(scope="module")
def oracle():
    options = {"parser": "lalr", "postlex": PythonIndenter(), "start": "file_input", "maybe_placeholders": False}
    parser = lark.Lark.open_from_package("lark", "python.lark", ["grammars"], **options)
    return lambda program: parser.parse(program.replace(LINE_BREAK, "\n") + "\n")


def is_whole(tree) -> bool:
    return not tree.label.startswith(OPENER)


def test_programs_are_those_of_the_other_grammar(oracle):
    for tree in filter(is_whole, trees_of("python")):
        oracle(Python().write(tree))


@pytest.mark.parametrize(("corpus", "every"), [("hearthstone", 29), ("django", 173)])
def test_real_programs_are_those_of_the_other_grammar(oracle, corpus, every):
    language, read = Python(), 0
    for line in real_lines(corpus)[::every]:
        tree = language.read(line)
        if is_whole(tree) and not re.search(r"\b(print|exec) ", line):
            oracle(language.write(tree))
            read += 1
    assert read > 10


@given(expressions())
def test_any_expression_is_one_of_the_other_grammar(oracle, text):
    oracle(Python().write(Python().read(text)))


@given(st.lists(TOKENS, min_size=1, max_size=6).map(" ".join))
def test_a_whole_program_that_the_language_reads_is_one_of_the_other_grammar(oracle, text):
    try:
        tree = Python().read(text)
    except InputError:
        return
    if is_whole(tree):
        oracle(text)
