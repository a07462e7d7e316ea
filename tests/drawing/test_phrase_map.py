"""The picture of attended phrases."""

from __future__ import annotations

import pytest

from tests.drawing.pictures import pixels, texts_of
from tree_fairseq.drawing.figure_files import figure_to_svg
from tree_fairseq.drawing.phrase_map import AttendedPhrase, draw_phrase_map

SOURCE, TARGET = ["the", "old", "<man>", "</s>"], ["der", "Mann"]
ATTENDED = [[AttendedPhrase(0, 2, 0.6), AttendedPhrase(3, 4, 0.1)], [AttendedPhrase(0, 3, 0.9)]]


def bars(axes):
    """The bars from left to right edge, top to bottom, with their lightness."""
    return [
        (bar.get_x(), bar.get_x() + bar.get_width(), bar.get_y(), sum(bar.get_facecolor()[:3])) for bar in axes.patches
    ]


def test_a_bar_lies_under_the_tokens_of_its_phrase():
    axes, scale = draw_phrase_map(SOURCE, TARGET, ATTENDED).axes
    middles = list(axes.get_xticks())
    for (left, right, _, _), (start, end) in zip(bars(axes), [(0, 2), (3, 4), (0, 3)]):
        assert [start <= place < end for place in range(4)] == [left < middle < right for middle in middles]
    assert len(bars(axes)) == 3 and scale.get_ylabel() == "share of the token's attention"
    (_, _, first, dark), (_, _, second, light), (_, _, third, darkest) = bars(axes)
    assert darkest < dark < light
    rows = axes.get_yticks()
    assert first < second < rows[1] and third > rows[0] and axes.get_ylim()[0] > axes.get_ylim()[1]


def test_every_token_axis_and_title_is_named():
    shown = texts_of(figure_to_svg(draw_phrase_map(SOURCE, TARGET, ATTENDED, title="a & $b$")))
    assert {*SOURCE, *TARGET, "source tokens", "target tokens", "share of the token's attention", "a & $b$"} <= set(
        shown
    )


def test_faint_attention_is_visible():
    """The scale goes up to the greatest weight: a model that is hardly trained gives no blank picture."""
    axes, _ = draw_phrase_map(SOURCE, TARGET, [[AttendedPhrase(0, 2, 0.002)], []]).axes
    assert bars(axes)[0][3] < 1


@pytest.mark.parametrize("sizes", [(200, 200), (1, 300), (40, 3)])
def test_long_sentences_are_cut_with_a_note(sizes):
    source, target = ([f"{side}{k}" for k in range(size)] for side, size in zip("st", sizes))
    attended = [[AttendedPhrase(k % sizes[0], k % sizes[0] + 1, 0.5)] * 4 for k in range(sizes[1])]
    figure = draw_phrase_map(source, target, attended)
    assert max(pixels(figure)) <= 1600
    shown = texts_of(figure_to_svg(figure))
    expected = [min(size, 40) for size in sizes]
    assert [sum(text[:1] == side and text[1:].isdecimal() for text in shown) for side in "st"] == expected
    hidden = [f"{size - 40} more {name} tokens" for size, name in zip(sizes, ("source", "target")) if size > 40]
    assert (f"not shown: {' and '.join(hidden)}" in shown) == bool(hidden)


def test_a_translation_of_no_token():
    assert not bars(draw_phrase_map(["</s>"], [], []).axes[0])
