"""The grammar of training data is collected, written and read."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tree_positional.all_trees import Vocabulary
from tree_fairseq.data_bin.grammar import ROOT, collect_grammar, load_grammar, write_grammar
from tree_fairseq.errors import CorruptFileError, DictionaryMismatchError, SymbolTreeError
from tree_fairseq.trees.symbols import NULL, SymbolEncoding
from tree_fairseq.trees.tree import Tree

# ( and ( a b ) c )
TREE = Tree("and", (Tree("a", (Tree("b"),)), Tree("c")))
NARY = {(ROOT, 0, "and^2"), ("and^2", 0, "a^1"), ("and^2", 1, "c^0"), ("a^1", 0, "b^0")}
BINARY = {(ROOT, 0, "and^2"), ("and^2", 0, "a^2"), ("and^2", 1, NULL), ("a^2", 0, "b^0"), ("a^2", 1, "c^0")}


@pytest.mark.parametrize("traversal", ["dfs", "bfs"])
@pytest.mark.parametrize(("binarization", "rules"), [("none", NARY), ("lcrs", BINARY)])
def test_rules_do_not_depend_on_the_traversal(traversal, binarization, rules):
    encoding = SymbolEncoding(traversal, binarization)
    assert collect_grammar([encoding.encode(TREE), encoding.encode(TREE)], encoding) == rules


def test_rules_of_single_symbols_and_of_siblings():
    encoding = SymbolEncoding("dfs", "lcrs")
    assert collect_grammar([["a^0"]], encoding) == {(ROOT, 0, "a^0")}
    symbols = encoding.encode(Tree("f", (Tree("a"), Tree("b"))))
    assert ("a^1", 1, "b^0") in collect_grammar([symbols], encoding)


@pytest.mark.parametrize("line", [[], ["f^1"], ["a^0", "a^0"], ["a"]])
def test_the_message_names_a_line_that_is_not_a_tree(line):
    encoding = SymbolEncoding("dfs", "none")
    with pytest.raises(SymbolTreeError, match="line 2"):
        collect_grammar([["a^0"], line], encoding)


@settings(max_examples=25, deadline=None)
@given(data=st.data(), arities=st.lists(st.integers(0, 2), max_size=3), binarization=st.sampled_from(["lcrs", "none"]))
def test_a_written_grammar_can_be_read(data, arities, binarization, tmp_path_factory):
    vocabulary = Vocabulary.of([0, *arities], "dfs", binarization)
    trees = data.draw(st.lists(st.sampled_from(vocabulary.trees(4)), max_size=3))
    dictionary = vocabulary.dictionary
    rules = collect_grammar([[dictionary[token] for token in tree] for tree in trees], vocabulary.encoding)
    path = tmp_path_factory.mktemp("grammar") / "grammar.lf.txt"
    write_grammar(path, rules)
    read = load_grammar(path, dictionary)
    named = {-1: ROOT, **dict(enumerate(dictionary.symbols))}
    assert {(named[parent], branch, named[child]) for parent, branch, child in read} == rules
    assert len(read) == len(rules)


@pytest.mark.parametrize("line", ["<root> 0", "<root> zero a^0", "<root> -1 a^0", "", "a b c d"])
def test_the_message_names_a_line_that_is_not_a_rule(line, tmp_path):
    path = tmp_path / "grammar.lf.txt"
    path.write_text(f"<root> 0 a^0\n{line}\n")
    with pytest.raises(CorruptFileError, match="grammar.lf.txt:2"):
        load_grammar(path, Vocabulary.of([0], "dfs", "none").dictionary)


def test_the_message_names_a_symbol_that_the_dictionary_lacks(tmp_path):
    path = tmp_path / "grammar.lf.txt"
    write_grammar(path, {(ROOT, 0, "a^0"), ("f^1", 0, "a^0")})
    with pytest.raises(DictionaryMismatchError, match="grammar.lf.txt:2"):
        load_grammar(path, Vocabulary.of([0], "dfs", "none").dictionary)
