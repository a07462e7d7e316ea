"""Numbers of brackets, and sequences that are completed to have as many closing as opening ones."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import symbol_trees
from tests.tree_insertion.test_labels import dictionary_of, ids_of, parents_of
from tree_fairseq.tree_insertion.dictionary import SequenceDictionary
from tree_fairseq.trees.notations import notation_named

LABELS = dictionary_of(notation_named("bracket").read("( f ( g a b ) c )"))


def numbered_one_by_one(tokens: list[int], dictionary: SequenceDictionary) -> list[int]:
    """The same, counting."""
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
    completed, was_said = dictionary.balanced(numbered)
    assert completed.equal(plain) and was_said.all()
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
        ("", ""),
        ("( f a ) <end> b )", "( f a )"),
        ("( f ) ) ( g", "( ( f ) ) ( g )"),
    ],
)
def test_brackets_are_completed(said, completed):
    dictionary = SequenceDictionary(LABELS, 3)
    ids = {"(": dictionary.open, ")": dictionary.close, "<end>": dictionary.eos()}

    def tokens(text):
        return torch.tensor([ids.get(word, LABELS.index(f"{word}::1")) for word in text.split()], dtype=torch.long)

    found, was_said = dictionary.balanced(dictionary.numbered(tokens(said)))
    assert found.equal(tokens(completed))
    assert found[was_said].equal(tokens(said.split("<end>")[0]))
