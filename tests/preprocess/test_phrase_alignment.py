"""Constituents are aligned with subtrees as the definition says, which is written out here."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from preprocess.logical_places import node_at, positions
from preprocess.phrase_alignment import (
    MOSTLY,
    Parsed,
    aligned_heads,
    aligned_phrases,
    lone_words,
    said_symbols,
    symbol_classes,
)
from tree_fairseq.trees.bracket import read_tree
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Tree

READER = notation_named("variable-free")
PAIRS = (
    ("(S (NP (DT The) (NN cat)) (VP (VBD ate) (NP (DT a) (NN cake))) (. .))", "eat ( agent = * cat , theme = cake )"),
    ("(S (NP (DT A) (NN dog)) (VP (VBD ate)) (. .))", "eat ( agent = dog )"),
    (
        "(S (NP (NNP Emma)) (VP (VBD saw) (NP (NP (DT the) (NN dog)) (PP (IN in) (NP (DT a) (NN car))))) (. .))",
        "see ( agent = Emma , theme = * dog ( nmod . in = car ) )",
    ),
    (
        "(S (NP (NNP Emma)) (VP (VBD said) (SBAR (IN that) (S (NP (DT a) (NN cat)) (VP (VBD slept))))) (. .))",
        "say ( agent = Emma , ccomp = sleep ( agent = cat ) )",
    ),
    (
        "(S (NP (DT A) (NN cake)) (VP (VBD was) (VP (VBN seen) (PP (IN by) (NP (DT the) (NN dog))))) (. .))",
        "see ( theme = cake , agent = * dog )",
    ),
    (
        "(S (NP (DT A) (NN dog)) (VP (VBD hoped) (SBAR (IN that) (S (NP (NNP Emma)) (VP (VBD said) "
        "(SBAR (IN that) (S (NP (DT the) (NN car)) (VP (VBD ate) (NP (DT a) (NN cake))))))))) (. .))",
        "hope ( agent = dog , ccomp = say ( agent = Emma , ccomp = eat ( agent = * car , theme = cake ) ) )",
    ),
    ("(NP (NNP Paula))", "Paula"),
    ("(NP (NNP Emma))", "Emma"),
    ("(NP (NN shark))", "LAMBDA a . shark ( a )"),
    ("(NP (NN cake))", "LAMBDA a . cake ( a )"),
    ("(S (NP (NNP Emma)) (VP (VBD slept)) (. .))", "sleep ( agent = Emma )"),
    ("(VP (VB crawl))", "LAMBDA a . LAMBDA e . crawl . agent ( e , a )"),
)
NOUNS = ("cat", "dog", "cake", "car")
# Enough sentences to tell the symbols of words apart
MORE = (
    [
        (
            f"(S (NP (DT {first}) (NN {one})) (VP (VBD {verb}) (NP (DT {second}) (NN {other}))) (. .))",
            f"{symbol} ( agent = {mark}{one} , theme = {other_mark}{other} )",
        )
        for first, mark in (("A", ""), ("The", "* "))
        for second, other_mark in (("a", ""), ("the", "* "))
        for one, other in zip(NOUNS, reversed(NOUNS))
        for verb, symbol in (("ate", "eat"), ("saw", "see"), ("liked", "like"))
    ]
    + [
        (
            f"(S (NP (DT {word}) (NN {noun})) (VP (VBD was) (VP (VBN {verb}))) (. .))",
            f"{symbol} ( theme = {mark}{noun} )",
        )
        for word, mark in (("The", "* "), ("A", ""))
        for noun in NOUNS
        for verb, symbol in (("eaten", "eat"), ("seen", "see"))
    ]
    + [
        (f"(S (NP (DT {word}) (NN {noun})) (VP (VBD slept)) (. .))", f"sleep ( agent = {mark}{noun} )")
        for word, mark in (("The", "* "), ("A", ""))
        for noun in NOUNS
    ]
)


TWO_CATS = Parsed(
    read_tree("(S (NP (DT a) (NN cat)) (VP (VBD saw) (NP (NP (DT a) (NN cat)) (PP (IN in) (NP (DT a) (NN car))))))"),
    READER.read("see ( agent = cat , theme = cat ( nmod . in = car ) )"),
)


@pytest.fixture(scope="module")
def pairs():
    return [Parsed(read_tree(parse), READER.read(form)) for parse, form in [*PAIRS, *MORE]]


def named(pair, phrases):
    """What is aligned: label, words and form."""
    return {
        (phrase.label, " ".join(node_at(pair.parse, phrase.constituent).leaves())): READER.write(
            node_at(pair.form, phrase.subtree)
        )
        for phrase in phrases
    }


def test_words_have_the_rarest_symbol_that_always_comes_with_them(pairs):
    symbol_of = said_symbols(pairs)
    expected = {"The": "*", "the": "*", "cat": "cat", "ate": "eat", "seen": "see", "saw": "see", "that": "ccomp="}
    assert expected.items() <= symbol_of.items()
    # A full stop comes with no symbol always, and agent= with no word.
    assert "." not in symbol_of and not {"agent=", "theme="} & {*symbol_of.values()}


def test_noun_phrases_and_clauses_are_aligned(pairs):
    symbol_of = said_symbols(pairs)
    first, car, clause = (named(pairs[index], aligned_phrases(pairs[index], symbol_of)) for index in (0, 2, 3))
    assert first[("NP", "The cat")] == "* cat" and first[("NN", "cat")] == "cat" and ("DT", "The") not in first
    assert car[("NP", "the dog in a car")] == "* dog ( nmod . in = car )" and ("NP", "the dog") not in car
    assert clause[("NP", "a cat")] == "cat"
    assert clause[("SBAR", "that a cat slept")] == READER.write(pairs[3].form.children[1])
    name = {("NP", "Paula"): "Paula", ("NNP", "Paula"): "Paula"}
    assert named(pairs[6], aligned_phrases(pairs[6], symbol_of)) == name


def test_what_is_not_sure_is_left_out(pairs):
    symbol_of = said_symbols(pairs)
    # LAMBDA is said by no word, so a noun alone is no part of another form.
    assert not aligned_phrases(pairs[8], symbol_of)
    # Which of two cats is which cannot be told, but the phrase that only one of them is in can.
    found = named(TWO_CATS, aligned_phrases(TWO_CATS, symbol_of))
    assert ("NP", "a cat in a car") in found and ("NP", "a cat") not in found
    # An utterance that says less than its form is not aligned at all.
    less = Parsed(pairs[1].parse, READER.read("eat ( agent = dog , theme = cake )"))
    assert not aligned_phrases(less, symbol_of)


def test_heads_have_the_tag_and_the_children_of_their_symbol(pairs):
    symbol_of = said_symbols(pairs)

    def frames(pair):
        return {head.word: head.frame for head in aligned_heads(pair, symbol_of)}

    assert frames(pairs[0])["ate"] == ("VBD", "", "agent=", "theme=") and frames(pairs[0])["cake"] == ("NN", "theme=")
    assert frames(pairs[2])["dog"] == ("NN", "*", "nmod.in=")
    assert frames(pairs[3])["slept"] == ("VBD", "ccomp=", "agent=")
    seen = next(pair for pair in pairs if pair.words[2:] == ["was", "seen", "."])
    assert frames(seen)["seen"] == ("VBN", "", "theme=")
    # One cat of two is not the symbol's only one.
    assert {*frames(TWO_CATS)} == {"saw", "in", "car"}
    for pair in pairs:
        for head in aligned_heads(pair, symbol_of):
            assert node_at(pair.parse, head.leaf).label == head.word
            assert node_at(pair.form, head.node).label == symbol_of[head.word]


def test_lone_words_are_of_a_kind_if_their_forms_differ_in_one_name(pairs):
    lone = lone_words(pairs)
    assert {word: name for word, (name, _) in lone.items()} == {
        word: word for word in ("Paula", "Emma", "shark", "cake")
    }
    assert lone["Paula"].kind == lone["Emma"].kind != lone["shark"].kind == lone["cake"].kind
    # The form of another verb makes a kind, whose name is a part of a label.
    more = [*pairs, Parsed(read_tree("(VP (VB walk))"), READER.read("LAMBDA a . LAMBDA e . walk . agent ( e , a )"))]
    assert lone_words(more)["crawl"] == ("crawl", lone_words(more)["walk"].kind)
    theme = [*pairs, Parsed(read_tree("(VP (VB grow))"), READER.read("LAMBDA a . LAMBDA e . grow . theme ( e , a )"))]
    assert not {"crawl", "grow"} & {*lone_words(theme)}


def naive_symbols(pairs):
    """The definition, word by word and symbol by symbol."""
    symbol_of = {}
    for word in {word for pair in pairs for word in pair.words}:
        having = [pair for pair in pairs if word in pair.words]
        shared = [
            symbol
            for symbol in {node.label for pair in having for node in pair.form.preorder()}
            if sum(symbol in labels(pair.form) for pair in having) >= MOSTLY * len(having)
        ]
        if shared:
            symbol_of[word] = min(
                shared,
                key=lambda symbol: (
                    sum(symbol in labels(pair.form) for pair in pairs),
                    -max(n for n in range(len(word) + 1) if symbol.startswith(word[:n])),
                    symbol,
                ),
            )
    return {word: symbol for word, symbol in symbol_of.items() if is_said(symbol, symbol_of, pairs)}


def is_said(symbol, symbol_of, pairs):
    having = [pair for pair in pairs if symbol in labels(pair.form)]
    said = [pair for pair in having if any(symbol_of.get(word) == symbol for word in pair.words)]
    return len(said) >= MOSTLY * len(having)


def labels(form):
    return {node.label for node in form.preorder()}


def naive_phrases(pair, symbol_of):
    """The definition, for every constituent and every subtree."""
    said = {*symbol_of.values()}

    def of_parse(node):
        return Counter(symbol_of[word] for word in node.leaves() if word in symbol_of)

    def of_form(node):
        return Counter(below.label for below in node.preorder() if below.label in said)

    def is_chain(paths):
        return all(a == b[: len(a)] or b == a[: len(b)] for a in paths for b in paths)

    found = set()
    if of_parse(pair.parse) != of_form(pair.form):
        return found
    for path, node in positions(pair.parse):
        symbols = of_parse(node)
        same = [p for p, other in positions(pair.parse) if of_parse(other) == symbols]
        subtrees = [p for p, other in positions(pair.form) if of_form(other) == symbols]
        if node.is_leaf or not symbols or not subtrees or not is_chain(same) or not is_chain(subtrees):
            continue
        if symbols == of_parse(pair.parse) and len(subtrees) > 1:
            continue
        if path == min((p for p in same if node_at(pair.parse, p).label == node.label), key=len):
            lowest = max(subtrees, key=len)
            found.add((node.label, node_at(pair.form, lowest).label, path, lowest))
    return found


def random_tree(generator, labels, words, size):
    if size == 1:
        return Tree(generator.choice(labels), [Tree(generator.choice(words))])
    split = generator.randrange(1, size)
    parts = [random_tree(generator, labels, words, part) for part in (split, size - split)]
    return Tree(generator.choice(labels), parts)


@pytest.mark.parametrize("seed", range(20))
def test_random_pairs_are_aligned_as_defined(seed):
    generator = random.Random(seed)
    words = ["ant", "bee", "cow", "the", "of"]
    pairs = []
    for _ in range(30):
        parse = random_tree(generator, ["NP", "S"], words, generator.randrange(1, 7))
        form = parse.fold(
            lambda node, children: Tree(node.label if node.is_leaf else generator.choice("xyz"), children)
        )
        pairs.append(Parsed(parse, form))
    symbol_of = said_symbols(pairs)
    assert symbol_of == naive_symbols(pairs) and symbol_of
    found = [{*map(tuple, aligned_phrases(pair, symbol_of))} for pair in pairs]
    assert found == [naive_phrases(pair, symbol_of) for pair in pairs] and any(found)


def test_classes_are_what_is_below_the_same_symbols(pairs):
    class_of = symbol_classes(pair.form for pair in pairs)
    assert class_of["*"] == class_of["cake"] == class_of["Emma"] != class_of["ccomp="] == class_of["theme="]
    below = {child.label for pair in pairs for node in pair.form.preorder() for child in node.children}
    assert {*class_of} == below and "hope" not in below
    assert symbol_classes([Tree("a"), Tree("b", [Tree("c")])]) == {"c": "c"}
