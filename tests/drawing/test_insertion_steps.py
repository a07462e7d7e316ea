"""Pictures of insertion steps: their texts, and that nothing in them overlaps."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings

from tests.strategies import symbol_trees
from tree_fairseq.drawing.insertion_steps import InsertionStep, trace_to_svg, trace_to_text
from tree_fairseq.tree_insertion.target import TargetTree

NAMESPACE = "{http://www.w3.org/2000/svg}"


def step(labels: str, parents: list[int], new: str = "") -> InsertionStep:
    names = labels.split()
    return InsertionStep(names, parents, [name in new.split() for name in names])


STEPS = [
    step("@R@ and", [-1, 0], new="and"),
    step("@R@ count and all some", [-1, 0, 1, 2, 2], new="count all some"),
    step("@R@ count and all some in", [-1, 0, 1, 2, 2, 4], new="in"),
    step("@R@ count and all some in", [-1, 0, 1, 2, 2, 4]),
]


def test_steps_as_text():
    assert trace_to_text(STEPS) == "\n".join(
        [
            "step 1: 1 inserted", "@R@ +and", "",
            "step 2: 3 inserted", "@R@ +count and", "├── +all", "└── +some", "",
            "step 3: 1 inserted", "@R@ count and", "├── all", "└── some +in", "",
            "step 4: nothing changes", "@R@ count and", "├── all", "└── some in",
        ]
    )  # fmt: skip


def test_steps_as_a_picture():
    root = ElementTree.fromstring(trace_to_svg(STEPS, "show <lakes> & rivers"))
    texts = {
        style: [node.text for node in root.iter(f"{NAMESPACE}text") if style in node.get("class")]
        for style in ("title", "heading", "node")
    }
    assert texts["title"] == ["show <lakes> & rivers"]
    assert texts["heading"] == [f"step {count}: {step.summary}" for count, step in enumerate(STEPS, 1)]
    assert texts["node"] == [label for step in STEPS for label in step.labels]
    boxes = [box.get("class").split()[-1] for box in root.iter(f"{NAMESPACE}rect") if box.get("class")]
    assert boxes == ["step-new"] * 5


@given(symbol_trees(("f", "next_to:t", "a label of some length", "x"), max_leaves=20))
@settings(max_examples=60)
def test_nothing_overlaps_and_all_is_inside(tree):
    target = TargetTree.of(tree)
    drawn = InsertionStep(target.labels, target.parents, [True] * len(target))
    root = ElementTree.fromstring(trace_to_svg([drawn, drawn]))
    _, _, width, height = map(float, root.get("viewBox").split())
    boxes = [
        [float(box.get(name)) for name in ("x", "y", "width", "height")]
        for box in root.iter(f"{NAMESPACE}rect")
        if box.get("class")
    ]
    assert len(boxes) == 2 * len(target)
    for place, (x, y, wide, high) in enumerate(boxes):
        assert 0 <= x and x + wide <= width and 0 <= y and y + high <= height
        for other_x, other_y, other_wide, other_high in boxes[:place]:
            assert x >= other_x + other_wide or other_x >= x + wide or y >= other_y + other_high or other_y >= y + high
    edges = "".join(path.get("d") for path in root.iter(f"{NAMESPACE}path"))
    lines = [tuple(map(float, line)) for line in re.findall(r"M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)", edges)]
    assert len(lines) == 2 * (len(target) - 1)
    middles = [(x + wide / 2, y + high / 2) for x, y, wide, high in boxes]
    wanted = [(parent, node) for node, parent in enumerate(target.parents) if parent >= 0]
    for (from_x, from_y, to_x, to_y), (parent, node) in zip(lines, wanted):
        assert abs(from_x - middles[parent][0]) < 0.2 and abs(to_x - middles[node][0]) < 0.2
        assert middles[parent][1] < from_y < to_y < middles[node][1]


@pytest.mark.parametrize(("count", "hidden"), [(12, None), (13, "not shown: step 7"), (30, "not shown: steps 7 to 24")])
def test_a_long_trace_is_cut_in_its_middle(count, hidden):
    steps = [InsertionStep([f"s{k}"], [-1], [True]) for k in range(1, count + 1)]
    root = ElementTree.fromstring(trace_to_svg(steps))
    texts = ["".join(found.itertext()) for found in root.iter("{http://www.w3.org/2000/svg}text")]
    assert sum(text.startswith("step ") for text in texts) == 12 and {"s1", "s6", f"s{count}"} <= set(texts)
    assert [text for text in texts if text.startswith("not shown")] == ([hidden] if hidden else [])
    assert max(float(root.get("width")), float(root.get("height"))) <= 2000
