"""Subword subtrees: nothing is lost, and alignment by offset agrees with a slow search of common ancestors."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import forests, plain_trees, trees
from tree_fairseq.errors import MixedChildrenError, OutsideTreeError, PieceAlignmentError
from tree_fairseq.trees import subwords
from tree_fairseq.trees.bracket import read_forest, write_forest
from tree_fairseq.trees.tree import Tree, forest_leaves

SENTENCE = read_forest("(S (NP (DT the) (NN man)) (VP (VBZ sleeps)))")
OFFSETS = [(0, 3), (4, 7), (8, 14)]


def cut(word, places):
    borders = [0, *sorted({place % len(word) for place in places} - {0}), len(word)]
    return [word[start:end] for start, end in zip(borders, borders[1:])]


@st.composite
def split_forests(draw):
    forest = draw(forests(plain_trees()))
    return forest, [cut(word, draw(st.lists(st.integers(0, 5), max_size=3))) for word in forest_leaves(forest)]


@given(split_forests())
@settings(deadline=None)
def test_split_words_is_undone_by_join_words(case):
    forest, pieces = case
    split = subwords.split_words(forest, pieces)
    assert forest_leaves(split) == [piece for word in pieces for piece in word]
    assert subwords.join_words(split) == forest


def test_split_by_example():
    split = subwords.split_words(SENTENCE, [["the"], ["m@@", "an"], ["sleeps"]])
    assert write_forest(split) == "(S (NP (DT the) (NN (NN_sub m@@) (NN_sub an))) (VP (VBZ sleeps)))"
    assert subwords.join_words(split, subwords.bpe_word) == SENTENCE


def test_join_makes_a_word_of_all_its_pieces():
    split = subwords.split_words(SENTENCE, [["▁the"], ["▁m", "an"], ["▁sleeps"]])
    assert subwords.join_words(split, subwords.sentencepiece_word) == SENTENCE
    (joined,) = subwords.join_words(split, "+".join)
    assert joined.leaves() == ["▁the", "▁m+an", "▁sleeps"]


@pytest.mark.parametrize("pieces", [[], [["the"], ["man"]], [["the"], [], ["sleeps"]], [["a"]] * 4])
def test_pieces_that_do_not_fit_are_refused(pieces):
    with pytest.raises(PieceAlignmentError):
        subwords.split_words(SENTENCE, pieces)


def test_misplaced_words_are_refused():
    for forest, error in (((Tree("a"),), OutsideTreeError), ((Tree("X", [Tree("a"), Tree("b")]),), MixedChildrenError)):
        with pytest.raises(error):
            subwords.split_words(forest, [["a"]])
        with pytest.raises(error):
            subwords.join_words(forest)
        with pytest.raises(error):
            subwords.align_pieces(forest, [], [], [])


@given(st.lists(st.sampled_from(["a", "b@@", "@@", "c", "@@d", "日@@"])))
@settings(deadline=None)
def test_bpe_words_are_fairseqs(tokens):
    words, pieces = subwords.join_bpe(tokens)
    assert [piece for word in pieces for piece in word] == tokens
    assert len(words) == len(pieces) and all(words)
    if tokens and not tokens[-1].endswith("@@"):
        # The same as the result of --remove-bpe.
        assert " ".join(words) == (" ".join(tokens) + " ").replace("@@ ", "").rstrip()


def test_bpe_by_example():
    assert subwords.join_bpe(["the", "m@@", "a@@", "n"]) == (["the", "man"], [["the"], ["m@@", "a@@", "n"]])
    assert subwords.join_bpe(["m@@", "a@@"]) == (["ma"], [["m@@", "a@@"]])
    assert subwords.join_bpe(["@@"]) == (["@@"], [["@@"]])
    assert subwords.join_bpe(["m￭", "an"], joiner="￭") == (["man"], [["m￭", "an"]])
    assert subwords.join_bpe([]) == ([], [])


@given(st.lists(st.sampled_from(["▁the", "▁", "man", "▁m", "日", "<0xE2>", "<0x82>", "<0xAC>", "▁▁x"])))
@settings(deadline=None)
def test_sentencepiece_words_cover_all_pieces(tokens):
    words, pieces = subwords.join_sentencepiece(tokens)
    assert [piece for word in pieces for piece in word] == tokens
    assert len(words) == len(pieces) and all(words)
    assert all(len(word.split()) == 1 for word in words)


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (["▁the", "▁m", "an"], ["the", "man"]),
        (["the", "▁m", "an"], ["the", "man"]),
        (["▁", "日本", "▁x"], ["日本", "x"]),
        (["▁a", "▁"], ["a"]),
        (["▁"], ["▁"]),
        (["▁", "▁a"], ["a"]),
        (["▁5", "<0xE2>", "<0x82>", "<0xAC>"], ["5€"]),
        (["▁<0xE2>", "▁b"], ["<0xE2>", "b"]),
        (["▁a", "<0xC2>", "<0xA0>"], ["a<0xC2><0xA0>"]),
        ([], []),
    ],
)
def test_sentencepiece_by_example(tokens, words):
    assert subwords.join_sentencepiece(tokens)[0] == words


def test_a_piece_over_two_tokens_joins_their_lowest_common_ancestor():
    aligned = subwords.align_pieces(
        SENTENCE, OFFSETS, [(0, 2), (2, 5), (5, 7), (7, 14)], ["th", "e▁m", "an", "▁sleeps"]
    )
    assert write_forest(aligned) == "(S (NP (DT th) (NP_sub e▁m) (NN an)) (VP (VBZ ▁sleeps)))"
    aligned = subwords.align_pieces(SENTENCE, OFFSETS, [(0, 5), (5, 9), (9, 14)], ["the▁m", "an▁s", "leeps"])
    assert write_forest(aligned) == "(S (NP the▁m) (S_sub an▁s) (VP (VBZ leeps)))"


def test_a_piece_over_two_trees_goes_to_the_first():
    forest = read_forest("(S (UH Hi) (. !)) (S (NN you) (. .))")
    offsets = [(0, 2), (2, 3), (3, 6), (6, 7)]
    aligned = subwords.align_pieces(forest, offsets, [(0, 2), (2, 5), (5, 7)], ["▁Hi", "!yo", "u."])
    assert write_forest(aligned) == "(S (UH ▁Hi) (. !yo)) (S u.)"
    assert write_forest(subwords.align_pieces(forest, offsets, [(0, 7)], ["▁Hi!you."])) == "(S ▁Hi!you.)"


def test_alignment_of_nothing():
    assert subwords.align_pieces((), [], [], []) == ()
    assert subwords.align_pieces(SENTENCE, OFFSETS, [], []) == ()
    with pytest.raises(PieceAlignmentError, match="without words"):
        subwords.align_pieces((), [], [(0, 1)], ["a"])


@st.composite
def aligned_cases(draw):
    """A forest, tokens that may touch or coincide, and pieces that cut the text without regard to them."""
    forest = draw(forests(trees(), min_trees=1))
    offsets, place = [], 0
    for word in forest_leaves(forest):
        if offsets and draw(st.integers(0, 7)) == 0:
            offsets.append(offsets[-1])
            continue
        place += draw(st.integers(0, 1))
        offsets.append((place, place + len(word)))
        place += len(word)
    places = draw(st.lists(st.integers(0, place), max_size=8))
    borders = [0, *sorted(places), place]
    piece_offsets = list(zip(borders, borders[1:]))
    return forest, offsets, piece_offsets, [f"p{number}" for number in range(len(piece_offsets))]


def slow_alignment(forest, token_offsets, piece_offsets, pieces):
    """Every piece looks at every token; common ancestors are common beginnings of paths from the root."""
    paths = []
    for number, tree in enumerate(forest):
        stack = [(tree, (number,))]
        while stack:
            node, path = stack.pop()
            if node.is_preterminal:
                paths.append(path)
            else:
                stack.extend((child, (*path, place)) for place, child in reversed(list(enumerate(node.children))))
    held = {}
    for number, (start, end) in enumerate(piece_offsets):
        tokens = [index for index, (left, right) in enumerate(token_offsets) if left < end and start < right]
        if not tokens:
            tokens = [next((index for index, (_, right) in enumerate(token_offsets) if right > start), len(paths) - 1)]
        tokens = [index for index in tokens if paths[index][0] == paths[tokens[0]][0]]
        common = paths[tokens[0]]
        while any(paths[index][: len(common)] != common for index in tokens):
            common = common[:-1]
        held.setdefault(common, []).append(number)

    def build(node, path):
        """The subtree and its pieces' numbers; children and joined pieces are put in order by those."""
        own = held.get(path, [])
        if node.is_preterminal:
            if len(own) == 1:
                return Tree(node.label, [Tree(pieces[own[0]])]), own
            return Tree(node.label, [piece_tree(node, number) for number in own]), own
        items = [build(child, (*path, place)) for place, child in enumerate(node.children)]
        items = [(subtree, numbers) for subtree, numbers in items if numbers]
        items += [(piece_tree(node, number), [number]) for number in own]
        items.sort(key=lambda item: item[1])
        numbers = [number for _, part in items for number in part]
        if len(items) == 1 and own:
            return Tree(node.label, [Tree(pieces[own[0]])]), numbers
        return Tree(node.label, [subtree for subtree, _ in items]), numbers

    def piece_tree(node, number):
        return Tree(node.label + subwords.SUBWORD_SUFFIX, [Tree(pieces[number])])

    built = [build(tree, (number,)) for number, tree in enumerate(forest)]
    return tuple(tree for tree, numbers in built if numbers)


@given(aligned_cases())
@settings(deadline=None, max_examples=150)
def test_alignment_agrees_with_the_slow_search(case):
    aligned = subwords.align_pieces(*case)
    assert forest_leaves(aligned) == case[3]
    assert aligned == slow_alignment(*case)


@given(aligned_cases(), st.data())
@settings(deadline=None)
def test_every_piece_is_covered_whatever_the_offsets(case, data):
    forest, token_offsets, _, pieces = case
    anywhere = st.tuples(st.integers(0, 20), st.integers(0, 20))
    piece_offsets = [data.draw(anywhere) for _ in pieces]
    assert forest_leaves(subwords.align_pieces(forest, token_offsets, piece_offsets, pieces)) == pieces


@given(split_forests())
@settings(deadline=None)
def test_alignment_of_cut_words_is_splitting_words(case):
    forest, pieces = case
    token_offsets, piece_offsets, place = [], [], 0
    for word in pieces:
        token_offsets.append((place, place + sum(map(len, word))))
        for piece in word:
            piece_offsets.append((place, place + len(piece)))
            place += len(piece)
        place += 1
    flat = [piece for word in pieces for piece in word]
    assert subwords.align_pieces(forest, token_offsets, piece_offsets, flat) == subwords.split_words(forest, pieces)
