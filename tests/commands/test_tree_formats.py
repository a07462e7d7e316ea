"""The forms of trees that the command `parse` writes."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import deep_tree, forests
from tree_fairseq.commands.tree_formats import TreeFormat
from tree_fairseq.errors import InputError
from tree_fairseq.trees import Tree, read_forest
from tree_fairseq.trees.tree import binarize, forest_leaves

FOREST = read_forest("(S (NP (DT the) (JJ old) (NN man)) (VP (VBZ sleeps))) (NP (NN boat))")


def written(forest, **options) -> str:
    return "".join(TreeFormat(**options).write([("text", forest)]))


def test_brackets():
    assert written(FOREST) == "(S (NP (DT the) (JJ old) (NN man)) (VP (VBZ sleeps))) (NP (NN boat))\n"
    assert written(FOREST, binarized=True).startswith("(S (NP (DT the) (@NP (JJ old) (NN man))) (VP")


def test_spans_count_the_tokens_of_the_line():
    assert written(FOREST, spans=True) == (
        "(S[0:4] (NP[0:3] (DT[0:1] the) (JJ[1:2] old) (NN[2:3] man)) (VP[3:4] (VBZ[3:4] sleeps))) "
        "(NP[4:5] (NN[4:5] boat))\n"
    )
    assert "S[0:4]\n├── NP[0:3]\n" in written(FOREST, name="pretty", spans=True)


def test_drawings_have_a_blank_line_between_them():
    drawn = "".join(TreeFormat("pretty").write([("a", FOREST[1:]), ("b", FOREST[1:])]))
    assert drawn == "NP NN boat\n\nNP NN boat\n"


@settings(deadline=None, max_examples=50)
@given(forests(), st.booleans())
def test_json_has_the_trees_and_every_span(forest, binarized):
    values = json.loads(written(forest, name="json", spans=True, binarized=binarized))
    expected = tuple(map(binarize, forest)) if binarized else forest
    assert tuple(map(Tree.from_dict, values["trees"])) == expected
    leaves = values["leaves"]
    assert leaves == forest_leaves(forest) and values["text"] == "text"
    stack = list(zip(values["trees"], expected))
    while stack:
        node, tree = stack.pop()
        assert leaves[node["start"] : node["end"]] == tree.leaves()
        stack += zip(node.get("children", ()), tree.children)
    plain = json.loads(written(forest, name="json", binarized=binarized))
    assert tuple(map(Tree.from_dict, plain["trees"])) == expected and "start" not in str(plain["trees"])[:30]


def test_a_picture_has_all_lines_and_a_limit():
    lines = [("one", FOREST), ("two", FOREST)]
    (picture,) = TreeFormat("svg", spans=True).write(lines)
    texts = [text.text for text in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("S[0:4]") == 2 and texts.count("boat") == 2
    with pytest.raises(InputError, match="more than 20 lines for one picture"):
        list(TreeFormat("svg").write(lines * 11))


def test_json_cannot_nest_every_tree():
    deep = (deep_tree(100_000),)
    with pytest.raises(InputError, match="too deep for JSON.*brackets"):
        written(deep, name="json")
    assert written(deep).count("(") == 200_000 - 1
