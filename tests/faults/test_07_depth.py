"""Fault 7: trees of depth 900 to 20,000 pass through everything; a limit is an error that says so."""

from __future__ import annotations

import copy
import pickle
import xml.etree.ElementTree as ElementTree

import pytest

from tests.strategies import deep_tree
from tests.trees.inverses import debinarize
from tree_fairseq.drawing.forest import tree_to_svg, tree_to_text
from tree_fairseq.errors import DepthLimitError
from tree_fairseq.trees.bracket import read_forest, read_spans, write_forest
from tree_fairseq.trees.spans import decode, encode, reduce_spans, reduced_depth, unary_chains
from tree_fairseq.trees.subwords import align_pieces, join_words, split_words
from tree_fairseq.trees.tree import Tree, binarize, check_preterminals, collapse_unary, strip_function_tags


@pytest.fixture(params=["900 branching", "20000 branching", "20000 unary"])
def tree(request):
    depth, form = request.param.split()
    return deep_tree(int(depth), form == "branching")


def test_the_tree_itself(tree):
    twin = pickle.loads(pickle.dumps(tree))
    assert twin is not tree and twin == tree and hash(twin) == hash(tree)
    assert copy.deepcopy(tree) == tree
    assert len(list(tree.postorder())) == len(list(tree.preorder()))
    assert repr(tree).count("Tree(") == len(list(tree.preorder()))
    assert tree.map_leaves(tree.leaves()) == tree.map_labels(str)
    assert tree != deep_tree(tree.height() + 1)
    check_preterminals((tree,))


def test_brackets_and_spans(tree):
    line = write_forest((tree,))
    assert read_forest(line) == (tree,)
    encoded = read_spans(line)
    assert encoded == encode((tree,))
    assert decode(encoded) == (tree,)
    assert encoded.spans[:, 2].max() == tree.height() - 1
    kept, top = unary_chains(encoded.spans)
    assert kept.tolist() == reduce_spans(encoded.spans).tolist()
    reduced = encoded.spans[kept]
    depths = reduced_depth(reduced[:, 0], reduced[:, 1]).tolist()
    assert depths == list(range(len(tree.leaves()) - 1))


def test_transforms(tree):
    collapsed = collapse_unary(tree)
    assert collapsed.height() <= tree.height() and collapsed.leaves() == tree.leaves()
    assert debinarize(binarize(tree)) == tree
    assert strip_function_tags(tree) == tree


def test_wide_trees_become_deep_ones_and_wide_again():
    wide = Tree("S", deep_tree(2).children * 10_000)
    binary = binarize(wide)
    assert binary.height() > 10_000
    assert debinarize(binary) == wide


def test_subwords(tree):
    count = len(tree.leaves())
    pieces = [["p", "q"]] * count
    forest = split_words((tree,), pieces)
    assert join_words(forest) == (tree.map_leaves(["pq"] * count),)
    offsets = [(2 * place, 2 * place + 2) for place in range(count)]
    crossing = [(0, 1)] + [(2 * place + 1, 2 * place + 3) for place in range(count - 1)] + [(2 * count - 1, 2 * count)]
    names = [str(number) for number in range(len(crossing))]
    aligned = align_pieces((tree,), offsets, crossing, names)
    assert [leaf for aligned_tree in aligned for leaf in aligned_tree.leaves()] == names


def test_drawings(tree):
    assert ElementTree.fromstring(tree_to_svg((tree,))) is not None
    assert len(tree_to_text((tree,))) < 1_000_000


@pytest.mark.parametrize("read", [read_forest, read_spans])
def test_the_limit_is_an_error_that_says_so(read):
    line = write_forest((deep_tree(20_000),))
    with pytest.raises(DepthLimitError, match="deeper than 500") as caught:
        read(line, path="deep.mrg", line_number=4, depth_limit=500)
    assert str(caught.value).startswith("deep.mrg:4:")
    assert read(line, depth_limit=20_000) == read(line)


def test_brackets_without_end_meet_the_standing_limit():
    with pytest.raises(DepthLimitError):
        read_forest("(S " * 200_000)
