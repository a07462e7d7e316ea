"""The codes of positions, the steps between them, and the heat maps of the paper."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.heat_maps import balanced_tree, code_of, draw_heat_map, figures, main
from tests.drawing.pictures import pixels
from tree_fairseq.support.python_versions import zip_equal

NODES = balanced_tree(3)
SETTINGS = settings(max_examples=60)


def steps(**sizes) -> st.SearchStrategy[tuple[int, ...]]:
    return st.lists(st.integers(0, 1), **sizes).map(tuple)


def one_hot(branch: int) -> list[int]:
    return [int(branch == 0), int(branch == 1)]


def maps(depth, **options):
    return {heat_map.name: heat_map.scores for heat_map in figures(depth, **options)}


def nearest(scores):
    """For each query the keys with the greatest score, as paths; several if they tie."""
    return [{NODES[key] for key in np.flatnonzero(np.isclose(row, row.max()))} for row in scores]


def test_figure_2_is_the_softmax_of_the_steps_that_two_nodes_share():
    scores = maps(3)["figure2"]
    for query, row in zip_equal(NODES, scores):
        shared = [sum(a == b for a, b in zip(reversed(query), reversed(key))) for key in NODES]
        expected = np.exp(shared)
        np.testing.assert_allclose(row, expected / expected.sum())


def test_likeness_that_the_paper_quotes():
    """Node 5, (Root, D2, D1): 0.44 to itself, 0.16 to 6 and 3. The definition also counts 1, (Root, D1)."""
    row = maps(2)["figure2"][5]
    total = 3 + 3 * math.e + math.e**2
    np.testing.assert_allclose(row, np.array([1, math.e, 1, math.e, 1, math.e**2, math.e]) / total)
    assert (round(row[5], 2), round(row[6], 2), round(row[3], 2)) == (0.40, 0.15, 0.15)
    without = total - math.e + 1
    assert (round(math.e**2 / without, 2), round(math.e / without, 2)) == (0.44, 0.16)


def test_figure_3_points_to_relatives():
    """The nearest keys are the relatives, and the nodes with the same last steps above or below them."""
    found = maps(3)
    last = [index for index, path in enumerate(NODES) if len(path) == 3]
    siblings, cousins = nearest(found["figure3_siblings"]), nearest(found["figure3_cousins"])
    parents, aunts = nearest(found["figure3_parent"]), nearest(found["figure3_aunts"])
    for index in last:
        path = NODES[index]
        assert siblings[index] == {(*path[:2], 0), (*path[:2], 1)}
        assert cousins[index] == {(path[0], a, b) for a in (0, 1) for b in (0, 1)}
        assert {node for node in parents[index] if len(node) == 2} == {path[:2]}
        assert {node for node in aunts[index] if len(node) == 2} == {(path[0], 0), (path[0], 1)}


def test_figure_4_tells_levels_apart():
    found = maps(2, decays=(0.9, 0.7))
    for decay in (0.9, 0.7):
        row = found[f"figure4_p{decay}"][5]
        np.testing.assert_allclose(np.log(row / row[0]), [0, 1, 0, 1, 0, 1 + decay**2, decay**2], atol=1e-12)
    # Sisters, which share the older step, come to be less like than nodes that share the last one.
    assert found["figure2"][5, 6] == found["figure2"][5, 3]
    assert found["figure4_p0.9"][5, 6] < found["figure4_p0.9"][5, 3]


@pytest.mark.parametrize("depth", [0, 2, 5])
def test_a_picture_has_every_score_and_fits_a_page(depth):
    for heat_map in figures(depth):
        figure = draw_heat_map(heat_map)
        axes, scale = figure.axes
        (image,) = axes.get_images()
        np.testing.assert_array_equal(image.get_array(), heat_map.scores)
        assert image.get_clim() == (0, heat_map.scores.max()) and image.get_cmap().name == "hot"
        # Queries run down and keys run to the right.
        assert axes.get_ylim()[0] > axes.get_ylim()[1] and axes.get_xlim()[0] < axes.get_xlim()[1]
        assert scale.get_ylabel() == "attention (softmax over the keys)"
        assert max(pixels(figure)) < 1000


def test_command_writes_the_figures(tmp_path, capsys):
    folder = tmp_path / "new" / "maps"
    main(["--output", str(folder)])
    relatives = [f"figure3_{name}" for name in ("parent", "siblings", "aunts", "cousins")]
    names = ["figure2", *relatives, "figure4_p0.9", "figure4_p0.7"]
    files = [f"{name}.{form}" for name in names for form in ("svg", "png")]
    assert capsys.readouterr().out.splitlines() == [str(folder / name) for name in files]
    assert sorted(path.name for path in folder.iterdir()) == sorted(files)
    for path in folder.glob("*.svg"):
        ElementTree.parse(path)


@SETTINGS
@given(st.data(), st.integers(1, 6))
def test_code_is_the_stack_of_the_last_steps(data, levels):
    path = data.draw(steps(max_size=2 * levels))
    for level, row in enumerate(code_of(path, levels)):
        assert row.tolist() == (one_hot(path[len(path) - 1 - level]) if level < len(path) else [0, 0])
