"""Plots: their ticks, and the places and colours of their points."""

from __future__ import annotations

import xml.etree.ElementTree

import pytest

from tree_fairseq.drawing.plots import Line, Plot, decades, even_steps, plots_to_svg

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (34.2, 35.4, [34.2, 34.4, 34.6, 34.8, 35, 35.2, 35.4]),
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (-3, 400, [-100, 0, 100, 200, 300, 400]),
        (5, 5, [5, 6]),
        (0, 0, [0, 1]),
    ],
)
def test_even_steps(low, high, ticks):
    found = even_steps(low, high)
    assert found[0] <= low and found[-1] >= high
    if low < high:
        assert found == pytest.approx(ticks)


def test_equal_differences_are_equal_distances():
    plot = Plot("BLEU by height", "h", "BLEU", [Line("model", [(2, 30.0), (5, 31.0), (10, 32.0)])], logarithmic=False)
    circles = xml.etree.ElementTree.fromstring(plots_to_svg([plot])).findall(f".//{SVG}circle")
    heights = [float(circle.get("cy")) for circle in circles]
    assert heights[0] > heights[1] > heights[2]
    assert heights[0] - heights[1] == pytest.approx(heights[1] - heights[2], abs=0.01)


def test_negative_values_can_be_drawn():
    line = Line("difference", [(1, -2.0), (2, 0.0), (3, 2.0)])
    assert "polyline" in plots_to_svg([Plot("", "", "", [line], logarithmic=False)])


def test_plots_have_every_point_inside_and_the_same_colour_for_a_name():
    lines = [Line("a & b", [(10, 0.7), (200, 31)]), Line("c", [(10, 2), (200, 2)])]
    root = xml.etree.ElementTree.fromstring(
        plots_to_svg([Plot("one", "n", "ms", lines), Plot("two", "n", "ms", lines[::-1])])
    )
    fields = [shape for shape in root.iter(f"{SVG}rect") if shape.get("class") == "plot-frame"]
    circles = list(root.iter(f"{SVG}circle"))
    assert len(fields) == 2 and len(circles) == 8
    for index, circle in enumerate(circles):
        field = fields[index // 4]
        for place, begin, size in (("cx", "x", "width"), ("cy", "y", "height")):
            assert (
                float(field.get(begin)) <= float(circle.get(place)) <= float(field.get(begin)) + float(field.get(size))
            )
    colours = {}
    for circle in circles:
        colours.setdefault(circle.find(f"{SVG}title").text.split(",")[0], set()).add(circle.get("fill"))
    assert list(colours) == ["a & b", "c"] and len(set.union(*colours.values())) == 2
    # Of one line, the point of the greater value is higher.
    assert float(circles[1].get("cy")) < float(circles[0].get("cy"))


@pytest.mark.parametrize(
    "low, high, ticks", [(0.7, 31, [0.5, 1, 2, 5, 10, 20, 50]), (2, 2, [2, 5]), (10, 100, [10, 20, 50, 100])]
)
def test_decades_enclose_the_values(low, high, ticks):
    assert decades(low, high) == pytest.approx(ticks)
