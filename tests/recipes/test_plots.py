"""Plots of lines."""

from __future__ import annotations

import sys

import pytest

from examples.lib.figure_files import figure_bytes, figure_to_svg, new_figure, write_figure
from examples.lib.plots import Line, Plot, draw_plots
from tests.drawing.pictures import size_of, texts_of
from tree_fairseq.errors import MissingLibraryError

LINES = [Line("a & b", [(10, 0.7), (200, 31)]), Line("c", [(10, 2), (200, 2)], is_dashed=True)]


def test_a_plot_names_axes_units_and_lines():
    shown = texts_of(figure_to_svg(draw_plots([Plot("Encoder", "tokens", "milliseconds", LINES)])))
    assert {"Encoder", "tokens", "milliseconds", "a & b", "c", "10", "200", "1"} <= set(shown)


def test_every_point_is_drawn_and_a_name_has_one_colour_and_one_entry():
    figure = draw_plots([Plot("one", "n", "ms", LINES), Plot("two", "n", "ms", LINES[::-1])])
    drawn = [line for axes in figure.axes for line in axes.get_lines()]
    assert [list(zip(*line.get_data())) for line in drawn] == [line.points for line in (*LINES, *LINES[::-1])]
    assert drawn[0].get_color() == drawn[3].get_color() != drawn[1].get_color() == drawn[2].get_color()
    assert [line.get_linestyle() for line in drawn] == ["-", "--", "--", "-"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a & b", "c"]
    for axes in figure.axes:
        (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
        assert left < 10 and right > 200 and 0 < low < 0.7 and high > 31


def test_the_vertical_axis_is_logarithmic_or_linear():
    points = [Line("x", [(1, 1.0), (2, 10.0), (3, 100.0)])]
    (axes,) = draw_plots([Plot("", "", "", points)]).axes
    assert axes.get_yscale() == "log" and {1, 10, 100} <= {round(tick, 6) for tick in axes.get_yticks()}
    negative = Line("difference", [(1, -2.0), (2, 0.0), (3, 2.0)])
    (axes,) = draw_plots([Plot("", "", "", [negative], logarithmic=False)]).axes
    assert axes.get_yscale() == "linear" and axes.get_ylim()[0] < -2
    # One value alone has room above and below.
    (axes,) = draw_plots([Plot("", "", "", [Line("x", [(1, 5.0)])])]).axes
    assert axes.get_ylim()[0] < 5 < axes.get_ylim()[1]


@pytest.mark.parametrize("names", [["Tree-Transformer, validation", "transformer, training"] * 2, ["x" * 90] * 9])
def test_the_legend_stays_inside(names):
    figure = draw_plots([Plot("", "", "", [Line(f"{k} {name}", [(1, k + 1)]) for k, name in enumerate(names)])])
    figure.draw_without_rendering()
    inside, box = figure.bbox, figure.legends[0].get_window_extent()
    assert inside.x0 <= box.x0 and box.x1 <= inside.x1 and inside.y0 <= box.y0


def test_files_are_the_same_each_time_and_named_by_their_form(tmp_path):
    figures = [draw_plots([Plot("one", "n", "ms", LINES)]) for _ in range(2)]
    assert figure_bytes(figures[0], "svg") == figure_bytes(figures[1], "svg")
    assert write_figure(figures[0], tmp_path / "a.b") == [tmp_path / "a.b.svg", tmp_path / "a.b.png"]
    assert write_figure(figures[0], tmp_path / "c.png") == [tmp_path / "c.png"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.b.png", "a.b.svg", "c.png"]
    assert size_of(figure_bytes(new_figure(900, 1), "png")) == (2000, 100)


def test_text_in_other_scripts_is_kept():
    assert "日本語" in texts_of(figure_to_svg(draw_plots([Plot("日本語", "n", "ms", LINES)])))


def test_without_matplotlib_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingLibraryError, match=r"needs matplotlib.*tree-fairseq\[figures\]"):
        figure_to_svg(draw_plots([Plot("one", "n", "ms", LINES)]))
