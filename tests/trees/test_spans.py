"""Span arrays against recursive definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from tests.strategies import any_trees, forests, plain_trees, trees
from tree_fairseq.errors import MixedChildrenError, OutsideTreeError
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.trees.bracket import read_forest
from tree_fairseq.trees.spans import decode, encode, reduce_spans, reduced_depth, unary_chains
from tree_fairseq.trees.tree import forest_leaves


def recursive_rows(tree, start, depth):
    """(label, start, end, depth) of all nodes except words."""
    if not tree.children:
        return [], start + 1
    rows, end = [], start
    for child in tree.children:
        below, end = recursive_rows(child, end, depth + 1)
        rows += below
    return [(tree.label, start, end, depth), *rows], end


def all_rows(forest):
    rows, end = [], 0
    for tree in forest:
        below, end = recursive_rows(tree, end, 0)
        rows += below
    return rows


@given(forests())
@settings(deadline=None)
def test_encode_is_preorder_with_half_open_spans(forest):
    encoded = encode(forest)
    assert [(label, *row) for label, row in zip_equal(encoded.labels, encoded.spans.tolist())] == all_rows(forest)
    assert encoded.leaves == forest_leaves(forest)
    assert encoded.spans.dtype == np.int32 and encoded.spans.shape == (len(encoded.labels), 3)


@given(forests())
@settings(deadline=None)
def test_decode_is_the_inverse(forest):
    assert decode(encode(forest)) == forest


@given(any_trees())
@settings(deadline=None)
def test_encode_refuses_misplaced_words(tree):
    leaf_parents = [node for node in tree.preorder() if any(not child.children for child in node.children)]
    if tree.children and all(len(node.children) == 1 for node in leaf_parents):
        assert decode(encode((tree,))) == (tree,)
    else:
        with pytest.raises((MixedChildrenError, OutsideTreeError)):
            encode((tree,))


def slow_reduction(rows):
    """Per kept node: its row, the top of its chain, its depth among the kept, by comparing every pair of rows."""
    spans = [row[1:3] for row in rows]
    kept = [index for index, span in enumerate(spans) if span[1] - span[0] >= 2 and span not in spans[index + 1 :]]
    tops = [spans.index(spans[index]) for index in kept]
    depths = [
        sum(spans[other][0] <= spans[index][0] and spans[index][1] <= spans[other][1] for other in kept) - 1
        for index in kept
    ]
    return kept, tops, depths


@given(forests(plain_trees(max_words=20)) | forests(trees()))
@settings(deadline=None)
def test_reduction_keeps_branching_nodes_only(forest):
    spans = encode(forest).spans
    kept, tops, depths = slow_reduction(all_rows(forest))
    assert reduce_spans(spans).tolist() == kept
    assert [part.tolist() for part in unary_chains(spans)] == [kept, tops]
    reduced = spans[reduce_spans(spans)]
    depth = reduced_depth(reduced[:, 0], reduced[:, 1])
    assert depth.tolist() == depths
    assert depth.dtype == np.int32 and reduce_spans(spans).dtype == np.int64


@given(forests(plain_trees(max_words=20)))
@settings(deadline=None)
def test_reduced_depth_of_the_full_forest_is_its_depth(forest):
    spans = encode(forest).spans
    assert reduced_depth(spans[:, 0], spans[:, 1]).tolist() == spans[:, 2].tolist()


def test_a_worked_example():
    encoded = encode(read_forest("(ROOT (S (NP (DT the) (NN man)) (VP (VBZ sleeps)))) (UH yes)"))
    assert encoded.leaves == ["the", "man", "sleeps", "yes"]
    assert encoded.labels == ["ROOT", "S", "NP", "DT", "NN", "VP", "VBZ", "UH"]
    assert encoded.spans.tolist() == [
        [0, 3, 0],
        [0, 3, 1],
        [0, 2, 2],
        [0, 1, 3],
        [1, 2, 3],
        [2, 3, 2],
        [2, 3, 3],
        [3, 4, 0],
    ]
    assert reduce_spans(encoded.spans).tolist() == [1, 2]
    assert unary_chains(encoded.spans)[1].tolist() == [0, 2]


@pytest.mark.parametrize("line", ["", " ", "\t  ", "\n", "\r\n"])
def test_a_blank_line_is_an_empty_forest(line):
    assert read_forest(line) == ()
