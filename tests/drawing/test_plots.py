"""Charts with a linear axis upwards; those with a logarithmic one are tested with the benchmarks that draw them."""

from __future__ import annotations

import xml.etree.ElementTree

import pytest

from tree_fairseq.drawing.plots import Line, Plot, even_steps, plots_to_svg

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
