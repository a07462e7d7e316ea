"""Drawings: every node appears in its place, whatever characters the words contain."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given, settings

from tests.strategies import deep_tree, forests, plain_trees
from tree_fairseq.drawing.tree_pictures import tree_to_svg
from tree_fairseq.trees.bracket import read_forest
from tree_fairseq.trees.tree import Tree, forest_leaves, tree_to_text

SVG = "{http://www.w3.org/2000/svg}"
SENTENCE = read_forest("(S (NP (DT the) (NN (NN_sub river@@) (NN_sub boat))) (VP (VBZ leaks)) (. .))")


def texts(svg, style):
    """The texts of a class with their places, from left to right."""
    found = [
        element for element in ElementTree.fromstring(svg).iter(SVG + "text") if f"tree-{style}" in element.get("class")
    ]
    return sorted((float(element.get("x")), float(element.get("y")), element.text) for element in found)


@given(forests())
@settings(deadline=None, max_examples=60)
def test_any_forest_gives_valid_xml(forest):
    root = ElementTree.fromstring(tree_to_svg(forest, title="a < b & \x00"))
    assert root.tag == SVG + "svg"
    assert root.find(SVG + "title").text == "a < b & \ufffd"


@given(forests(plain_trees(max_words=20), max_trees=1))
@settings(deadline=None, max_examples=60)
def test_words_stand_in_order_at_the_bottom(forest):
    svg = tree_to_svg(forest)
    words = texts(svg, "word")
    assert [text for _, _, text in words] == forest_leaves(forest)
    bottom = {y for _, y, _ in words}
    assert len(bottom) == min(len(forest), 1)
    assert all(y < min(bottom) for style in ("phrase", "tag") for _, y, _ in texts(svg, style))
    labels = sorted(node.label for tree in forest for node in tree.preorder() if node.children)
    assert sorted(text for style in ("phrase", "tag") for _, _, text in texts(svg, style)) == labels


@given(forests(plain_trees(max_words=20), min_trees=1))
@settings(deadline=None, max_examples=60)
def test_nothing_leaves_the_picture_and_no_words_touch(forest):
    svg = tree_to_svg(forest)
    root = ElementTree.fromstring(svg)
    width, height = float(root.get("width")), float(root.get("height"))
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"
    rows = {}
    for style in ("phrase", "tag", "word"):
        for x, y, _ in texts(svg, style):
            assert 0 < x < width and 0 < y < height
    for x, y, text in texts(svg, "word"):
        rows.setdefault(y, []).append((x, len(text)))
    for row in rows.values():
        for (left, left_length), (right, right_length) in zip(row, row[1:]):
            assert right - left > 2.5 * (left_length + right_length)


def test_a_long_label_over_a_narrow_first_child_stays_inside():
    label = "L" * 18
    svg = tree_to_svg(read_forest(f"({label} (A a) (B (C c) (D {'w' * 15})))"))
    (x,) = (x for x, _, text in texts(svg, "phrase") if text == label)
    assert x > 18 * 5  # five pixels are half a capital


def test_pieces_hang_under_the_tag_of_their_word():
    svg = tree_to_svg(SENTENCE)
    assert [text for _, _, text in texts(svg, "piece")] == ["river@@", "boat"]
    assert [text for _, _, text in texts(svg, "tag")] == ["DT", "NN", "VBZ", "."]
    assert "NN_sub" not in svg
    bar = ElementTree.fromstring(svg).findall(f"{SVG}path[@class='tree-edge tree-piece-edge']")
    assert len(bar) == 1


def test_every_constituent_is_joined_to_its_parent():
    path = ElementTree.fromstring(tree_to_svg(SENTENCE)).find(f"{SVG}path[@class='tree-edge']")
    assert path.get("d").count("M") == 6


def test_long_lines_are_laid_out_in_rows():
    tree = read_forest("(S " + " ".join(f"(NN word{number})" for number in range(12)) + ")")
    baselines = {y for _, y, _ in texts(tree_to_svg(tree * 4), "word")}
    assert len(baselines) > 1
    assert float(ElementTree.fromstring(tree_to_svg(tree * 4)).get("width")) < 1700


def test_an_empty_forest_gives_an_empty_picture():
    assert ElementTree.fromstring(tree_to_svg(())).findall(SVG + "text") == []
    assert tree_to_text(()) == ""


def test_words_of_programs_are_drawn_without_tags():
    assert all(f">{word}<" in tree_to_svg((Tree("f", [Tree("x"), Tree("g", [Tree("y")])]),)) for word in "fxgy")


def test_text_by_example():
    assert tree_to_text(SENTENCE) == (
        "S\n├── NP\n│   ├── DT the\n│   └── NN\n│       ├── NN_sub river@@\n│       └── NN_sub boat\n"
        "├── VP VBZ leaks\n└── . ."
    )
    assert tree_to_text(read_forest("(S (A a) (B b)) (C c)")) == "S\n├── A a\n└── B b\nC c"


@given(forests())
@settings(deadline=None, max_examples=60)
def test_text_has_one_row_a_branch_and_no_control_characters(forest):
    drawing = tree_to_text(forest)
    rows = drawing.split("\n") if drawing else []
    chain_ends = [node for tree in forest for node in tree.preorder() if len(node.children) != 1]
    assert len(rows) == len(chain_ends)
    assert "\x00" not in drawing and "\x1b" not in drawing


def test_text_is_cut_below_the_given_depth():
    drawing = tree_to_text((deep_tree(5),), max_depth=2)
    assert drawing.split("\n") == ["X", "├── DT a", "└── X", "    ├── DT a", "    └── X … a a end"]


def test_the_picture_is_the_same_every_time():
    assert tree_to_svg(SENTENCE, "x") == tree_to_svg(SENTENCE, "x")


@pytest.mark.parametrize("tree", [deep_tree(300), Tree("S", [Tree("NN", [Tree("word")])] * 400)], ids=["deep", "wide"])
def test_a_large_picture_is_scaled_to_2000_pixels(tree):
    root = ElementTree.fromstring(tree_to_svg((tree,)))
    width, height = float(root.get("width")), float(root.get("height"))
    assert max(width, height) == 2000
    _, _, whole_width, whole_height = map(float, root.get("viewBox").split())
    assert max(whole_width, whole_height) > 2000 and abs(width / height - whole_width / whole_height) < 0.01 * width
