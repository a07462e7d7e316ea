"""Degraded parses: re-attached constituents, compared with all trees that moving one constituent can give."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from preprocess.degraded import _copy, _move, _places, reattach
from tests.end_to_end.fixtures import preprocess
from tests.end_to_end.tiny_corpus import make_pairs, write_corpus
from tests.strategies import plain_trees
from tree_fairseq.parsing.parsers import ParserOptions, build_parser
from tree_fairseq.scoring.evalb import Parameters, compare, counts, figures
from tree_fairseq.trees.bracket import read_tree, write_forest
from tree_fairseq.trees.tree import Tree, tree_from_nested


def numbered(tree: Tree) -> Tree:
    """The same tree with words that are all different, so that their order can be seen."""
    return tree.map_leaves([f"w{number}" for number in range(len(tree.leaves()))])


def written(tree: Tree) -> str:
    return write_forest((tree,))


def paths(tree: Tree, here: tuple[int, ...] = ()):
    if tree.children:
        yield here
        for number, child in enumerate(tree.children):
            yield from paths(child, (*here, number))


def at(tree: Tree, path: tuple[int, ...]) -> Tree:
    for number in path:
        tree = tree.children[number]
    return tree


def changed(tree: Tree, path: tuple[int, ...], change) -> Tree:
    if not path:
        return Tree(tree.label, change(list(tree.children)))
    children = list(tree.children)
    children[path[0]] = changed(children[path[0]], path[1:], change)
    return Tree(tree.label, children)


def moves(tree: Tree, path: tuple[int, ...]) -> set[str]:
    """The obvious way: takes a constituent out, puts it everywhere, and keeps the trees with the words in order."""
    *above, place = path
    own, parent = at(tree, path), tuple(above)
    if len(at(tree, parent).children) == 1:
        return set()
    marked = changed(
        tree, parent, lambda children: [*children[:place], Tree("MOVED", own.children), *children[place + 1 :]]
    )
    found = set()
    for target in paths(marked):
        phrase = at(marked, target)
        if target == parent or target[: len(path)] == path or phrase.is_preterminal:
            continue
        for position in range(len(phrase.children) + 1):
            put = lambda children, position=position: [*children[:position], own, *children[position:]]
            both = changed(marked, target, put)
            # The copy that stays behind is the one that is marked.
            result = without_marked(both)
            if result.leaves() == tree.leaves():
                found.add(written(result))
    return found


def without_marked(tree: Tree) -> Tree:
    return Tree(tree.label, [without_marked(child) for child in tree.children if child.label != "MOVED"])


@settings(deadline=None, max_examples=60)
@given(plain_trees(8).map(numbered))
def test_all_places_that_keep_the_words_in_order_are_found(tree):
    assert reattach(tree, 0, random.Random(1)) == tree
    for number, path in enumerate(paths(tree)):
        if not path:
            continue
        found = []
        for place in range(len(_places(_copy(tree)[1][number]))):
            root, nodes = _copy(tree)
            _move(nodes[number], *_places(nodes[number])[place])
            found.append(written(tree_from_nested(root, lambda node: (node.label, node.children))))
        assert len(found) == len(set(found))
        assert set(found) == moves(tree, path)


@settings(deadline=None)
@given(plain_trees(12), st.floats(0, 1), st.integers(0, 9))
def test_words_tags_and_labels_stay(tree, share, seed):
    degraded = reattach(tree, share, random.Random(seed))
    assert degraded.leaves() == tree.leaves()
    assert reattach(tree, share, random.Random(seed)) == degraded
    tags = [[node.label for node in one.preorder() if node.is_preterminal] for one in (tree, degraded)]
    assert tags[0] == tags[1]
    assert sorted(node.label for node in degraded.preorder()) == sorted(node.label for node in tree.preorder())
    assert reattach(tree, 0.0, random.Random(seed)) == tree


def test_examples():
    tree = read_tree("(S (NP (DT the) (NN man)) (VP (V saw) (NP (NN him))))")
    seen = {written(reattach(tree, 0.3, random.Random(seed))) for seed in range(300)}
    assert "(S (VP (NP (DT the) (NN man)) (V saw) (NP (NN him))))" in seen  # the subject under the verb phrase
    assert "(S (DT the) (NP (NN man)) (VP (V saw) (NP (NN him))))" in seen
    assert "(S (NP (DT the) (NN man) (V saw)) (VP (NP (NN him))))" in seen
    flat = read_tree("(FRAG (XX a) (XX b) (XX c))")
    assert reattach(flat, 1.0, random.Random(1)) == flat
    chain = read_tree("(S (A (B (C c))))")
    assert reattach(chain, 1.0, random.Random(1)) == chain


def test_deep_and_wide_trees_need_no_recursion():
    deep = Tree("X", [Tree("w")])
    for _ in range(3_000):
        deep = Tree("X", [Tree("X", [Tree("w")]), deep])
    wide = Tree("S", [Tree("X", [Tree("w")]) for _ in range(3_000)])
    for tree in (deep, wide):
        assert reattach(tree, 0.1, random.Random(1)).leaves() == tree.leaves()


def labelled_f1(name: str) -> float:
    sentences = [read_tree(pair.tree).leaves() for pair in make_pairs(300, 5)]
    gold, found = (
        build_parser(ParserOptions(name=each)).parse(sentences)
        for each in ("right-branching", f"preprocess.degraded:{name}")
    )
    scores = [compare((one,), (other,), Parameters()) for one, other in zip(gold, found)]
    return float(figures(counts(scores).sum(axis=0))["f1"])


def test_agreement_with_the_parser_falls_with_the_share():
    found = [labelled_f1(f"right-branching-{share}") for share in ("0.1", "0.2", "0.4", "0.7", "1")]
    assert found == sorted(found, reverse=True)
    assert 70 < found[0] < 100 and found[-1] < 60


def trees_of(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*") if path.suffix in (".bin", ".idx", ".txt")}


def test_folders_are_the_same_for_any_number_of_processes(tmp_path):
    text = write_corpus(tmp_path / "text", sizes=(300, 16, 16))
    degraded = "preprocess.degraded:right-branching-0.3"
    preprocess(text, tmp_path / "plain", parser="right-branching")
    preprocess(text, tmp_path / "one", parser=degraded)
    preprocess(text, tmp_path / "two", "--workers", "2", parser=degraded)
    plain, one, two = (trees_of(tmp_path / name) for name in ("plain", "one", "two"))
    assert one == two
    differing = {name for name in one if one[name] != plain[name]}
    # The words and their dictionaries are the same.
    assert "train.en-de.en.tree.bin" in differing
    assert not {name for name in differing if ".tree." not in name}
