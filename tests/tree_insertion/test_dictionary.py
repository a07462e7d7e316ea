"""Labels as words and as dictionaries whose ids are printed as trees; numbered and completed brackets of sequences."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import any_trees, symbol_trees
from tree_fairseq.errors import DictionaryMismatchError, ReservedMarkError, SymbolTreeError
from tree_fairseq.tree_insertion.dictionary import (
    RESERVED,
    InsertionDictionary,
    SequenceDictionary,
    build_insertion_dictionary,
    label_of,
    require_labels,
    tree_of_words,
    words_of,
)
from tree_fairseq.tree_insertion.target import ROOT_LABEL, TargetTree
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Tree

BRACKET = notation_named("bracket")


def parents_of(tree: Tree) -> np.ndarray:
    return np.array(TargetTree.of(tree).parents)


def dictionary_of(*trees: Tree) -> InsertionDictionary:
    counts = {word: 1 for tree in trees for word in words_of(tree)}
    plain = build_insertion_dictionary(counts, len(trees), threshold=-1, nwords=-1, padding_factor=8)
    return InsertionDictionary(plain, BRACKET)


def ids_of(tree: Tree, dictionary: InsertionDictionary) -> np.ndarray:
    return np.array([dictionary.root, *map(dictionary.index, words_of(tree))])


def without_numbers(tree: Tree) -> bool:
    """No label looks numbered, which is refused."""
    return not any("::" in node.label for node in tree.preorder())


@given(any_trees().filter(without_numbers))
def test_words_and_parents_are_the_tree(tree):
    encoded = words_of(tree)
    assert all(word.split() == [word] and "::" in word for word in encoded)
    assert tree_of_words(encoded, (parents_of(tree)[1:] - 1).tolist()) == tree


@given(symbol_trees())
def test_numbers_count_the_nodes_of_a_label_in_preorder(tree):
    labels = [node.label for node in tree.preorder()]
    expected = [f"{label}::{labels[: place + 1].count(label)}" for place, label in enumerate(labels)]
    assert words_of(tree) == expected
    assert len(set(expected)) == len(expected)


@pytest.mark.parametrize("label", [*sorted(RESERVED), "std::3"])
def test_reserved_labels_are_refused(label):
    with pytest.raises(ReservedMarkError, match=label):
        words_of(Tree("f", [Tree(label)]))


@given(symbol_trees(), symbol_trees())
def test_sequences_are_the_trees(tree, other):
    dictionary = dictionary_of(tree, other)
    sequence = dictionary.sequence(ids_of(tree, dictionary), parents_of(tree))
    assert dictionary.tree(sequence) == tree
    ends = [dictionary.pad(), dictionary.eos()]
    assert dictionary.string(torch.tensor([*sequence.tolist(), *ends])) == BRACKET.write(tree)
    assert dictionary.string(torch.stack([sequence, sequence])) == "\n".join(2 * [BRACKET.write(tree)])
    brackets = dictionary.open, dictionary.close
    expected = {dictionary.open: "(", dictionary.close: ")"}
    words = iter(words_of(tree))
    # The brackets' ids stand where the notation has brackets, and labels in preorder between them.
    assert [expected.get(index) or next(words) for index in sequence.tolist()] == [
        dictionary[index] for index in sequence.tolist()
    ]
    assert (
        BRACKET.read(" ".join(label_of(dictionary[i]) if i not in brackets else expected[i] for i in sequence.tolist()))
        == tree
    )


def test_the_root_alone_and_a_root_of_several_children_are_shown():
    dictionary = dictionary_of(Tree("f", [Tree("x")]))
    x = dictionary.index("x::1")
    assert dictionary.string(dictionary.sequence([dictionary.root], [-1])) == ROOT_LABEL
    assert dictionary.string(dictionary.sequence([dictionary.root, x, x], [-1, 0, 0])) == f"( {ROOT_LABEL} x x )"


@pytest.mark.parametrize(
    "text", ["", "(", ")", "( )", "x x", "( f x", "f x )", "( ( f x ) x )", "( f x ) )", "( f ( ) )"]
)
def test_what_is_no_tree_is_shown_word_by_word(text):
    dictionary = dictionary_of(Tree("f", [Tree("x")]))
    ids = {"(": dictionary.open, ")": dictionary.close, "f": dictionary.index("f::1"), "x": dictionary.index("x::1")}
    sequence = [ids[word] for word in text.split()]
    with pytest.raises(SymbolTreeError):
        dictionary.tree(sequence)
    assert dictionary.string(sequence) == text.replace("f", "f::1").replace("x", "x::1")


def test_the_dictionary_has_the_root_first_and_then_what_is_frequent():
    dictionary = build_insertion_dictionary(
        {"a::1": 2, "b::1": 5, "c::1": 1}, 3, threshold=2, nwords=-1, padding_factor=8
    )
    assert dictionary.symbols[dictionary.nspecial : dictionary.nspecial + 3] == [ROOT_LABEL, "b::1", "a::1"]
    assert len(dictionary) == 8 and dictionary.count[dictionary.nspecial] == 3
    labels = InsertionDictionary(dictionary, BRACKET)
    assert [labels[index] for index in labels.label_ids] == ["b::1", "a::1"]
    assert labels.open == 8 and labels.close == 9 and labels.keep == labels.eos()


def test_a_dictionary_of_something_else_is_refused():
    require_labels(dictionary_of(Tree("f")), "here")
    other = Dictionary()
    other.add_symbol("f::1")
    for strange in (Dictionary(), other):
        with pytest.raises(DictionaryMismatchError, match="does not begin with @R@"):
            require_labels(strange, "here")


LABELS = dictionary_of(notation_named("bracket").read("( f ( g a b ) c )"))


def numbered_one_by_one(tokens: list[int], dictionary: SequenceDictionary) -> list[int]:
    counts, result = {dictionary.open: 0, dictionary.close: 0}, []
    for token in tokens:
        if token in counts:
            result.append(token + 2 * min(counts[token], dictionary.numbers - 1))
            counts[token] += 1
        else:
            result.append(token)
    return result


@given(symbol_trees(), st.integers(1, 4))
def test_brackets_are_counted_up_to_the_last_number(tree, numbers):
    labels = dictionary_of(tree)
    dictionary = SequenceDictionary(labels, numbers)
    plain = labels.sequence(ids_of(tree, labels), parents_of(tree))
    numbered = dictionary.numbered(plain)
    assert numbered.tolist() == numbered_one_by_one(plain.tolist(), dictionary)
    assert numbered.max() < len(dictionary) == len(labels) + 2 * numbers
    assert dictionary.plain(numbered).equal(plain)
    found = dictionary.balanced(numbered, torch.full(numbered.shape, -1.0))
    assert found["tokens"].equal(plain) and (found["positional_scores"] == -1).all()
    assert [dictionary[index] in "()" for index in numbered.tolist()] == (plain >= labels.open).tolist()
    assert set(dictionary.label_ids) == {*labels.label_ids, *range(len(labels), len(dictionary))}


@pytest.mark.parametrize(
    "said, completed",
    [
        ("( f a )", "( f a )"),
        ("f a )", "( f a )"),
        ("( f ( g a", "( f ( g a ) )"),
        ("f a", "( f a )"),
        ("( f a ) )", "( ( f a ) )"),
        ("a", "a"),
        ("", "<end>"),
        ("( f a ) <end> b )", "( f a )"),
        ("( f ) ) ( g", "( ( f ) ) ( g )"),
    ],
)
def test_brackets_are_completed(said, completed):
    dictionary = SequenceDictionary(LABELS, 3)
    ids = {"(": dictionary.open, ")": dictionary.close, "<end>": dictionary.eos()}

    def tokens(text):
        return torch.tensor([ids.get(word, LABELS.index(f"{word}::1")) for word in text.split()], dtype=torch.long)

    numbered = dictionary.numbered(tokens(said))
    found = dictionary.balanced(numbered, torch.full(numbered.shape, -1.0))
    assert found["tokens"].equal(tokens(completed))
    assert found["tokens"][found["positional_scores"] < 0].equal(tokens(said.split("<end>")[0]))


def test_nothing_is_a_lone_end_with_its_score():
    dictionary = SequenceDictionary(LABELS, 3)
    end, a = dictionary.eos(), LABELS.index("a::1")
    for tokens in ([end], [end, a], [end, dictionary.close]):
        found = dictionary.balanced(torch.tensor(tokens), torch.full((len(tokens),), -1.5))
        assert found["tokens"].tolist() == [end] and found["positional_scores"].tolist() == [-1.5]
    assert LABELS.string(found["tokens"]) == ""
