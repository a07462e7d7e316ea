"""The picture of attended phrases."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from tree_fairseq.drawing.phrase_map import AttendedPhrase, phrase_map_to_svg
from tree_fairseq.python_versions import zip_equal

SOURCE, TARGET = ["the", "old", "<man>", "</s>"], ["der", "Mann"]
ATTENDED = [[AttendedPhrase(0, 2, 0.6), AttendedPhrase(3, 4, 0.1)], [AttendedPhrase(0, 3, 0.9)]]


def elements(svg: str, name: str) -> list:
    root = ElementTree.fromstring(svg)
    return [element for element in root.iter() if element.get("class") == name]


def test_a_bar_lies_under_the_tokens_of_its_phrase():
    svg = phrase_map_to_svg(SOURCE, TARGET, ATTENDED, title="a & b")
    middles = [float(element.get("x")) for element in elements(svg, "phrase-source")]
    bars = elements(svg, "phrase-bar")
    for bar, (start, end) in zip_equal(bars, [(0, 2), (3, 4), (0, 3)]):
        left, right = float(bar.get("x")), float(bar.get("x")) + float(bar.get("width"))
        assert [start <= place < end for place in range(4)] == [left < middle < right for middle in middles]
    assert [float(bar.get("fill-opacity")) for bar in bars] == [0.6, 0.1, 0.9]
    rows = [float(element.get("y")) for element in elements(svg, "phrase-target")]
    assert float(bars[0].get("y")) < float(bars[1].get("y")) < rows[1] and float(bars[2].get("y")) > rows[0]
    assert [element.text for element in elements(svg, "phrase-source")] == SOURCE
    assert bars[2][0].text == "Mann: the old <man>, 0.900"


def test_a_translation_of_no_token():
    assert not elements(phrase_map_to_svg(["</s>"], [], []), "phrase-bar")
