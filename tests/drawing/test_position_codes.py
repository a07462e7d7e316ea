"""Codes of positions in trees and the maps between them: what the paper promises of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tree_fairseq.drawing.heat_maps import StackCodes, attention, balanced_tree

UP = None
SETTINGS = settings(max_examples=60, deadline=None)


def steps(branches: int, **sizes) -> st.SearchStrategy[tuple[int, ...]]:
    return st.lists(st.integers(0, branches - 1), **sizes).map(tuple)


def walk(path, moves):
    """Where a walk from a node ends, one step at a time."""
    for move in moves:
        path = path[:-1] if move is UP else (*path, move)
    return path


@SETTINGS
@given(st.data(), st.integers(1, 4), st.integers(1, 6))
def test_code_is_the_stack_of_the_last_steps(data, branches, levels):
    path = data.draw(steps(branches, max_size=2 * levels))
    code = StackCodes(branches, levels).code(path).reshape(levels, branches)
    for level, row in enumerate(code):
        expected = [0] * branches
        if level < len(path):
            expected[path[len(path) - 1 - level]] = 1
        assert row.tolist() == expected


def test_most_recent_step_comes_first():
    stack = StackCodes(2, 3)
    assert stack.code(()).tolist() == [0, 0, 0, 0, 0, 0]
    assert stack.code((1, 0)).tolist() == [1, 0, 0, 1, 0, 0]
    assert stack.code((1, 1, 0, 0)).tolist() == [1, 0, 1, 0, 0, 1]


@SETTINGS
@given(st.data(), st.integers(1, 4), st.integers(1, 6))
def test_up_undoes_any_step_down_until_a_step_is_forgotten(data, branches, levels):
    stack = StackCodes(branches, levels)
    path = data.draw(steps(branches, max_size=levels + 2))
    code = stack.code(path)[None]
    for branch in range(branches):
        lower = stack.apply(stack.down(branch), code)
        np.testing.assert_array_equal(lower[0], stack.code((*path, branch)))
        returned = stack.apply(stack.up() @ stack.down(branch), code)
        np.testing.assert_array_equal(returned, stack.apply(stack.up(), lower))
        assert (returned == code).all() == (len(path) < levels)


@SETTINGS
@given(st.data(), st.integers(1, 3))
def test_a_path_is_one_affine_map_wherever_it_begins(data, branches):
    stack = StackCodes(branches, 12)
    moves = data.draw(st.lists(st.sampled_from((UP, *range(branches))), max_size=5))
    path_map = np.eye(stack.size + 1)
    for move in moves:
        path_map = (stack.up() if move is UP else stack.down(move)) @ path_map
    starts = data.draw(st.lists(steps(branches, min_size=5, max_size=7), min_size=1, max_size=4))
    ends = stack.apply(path_map, np.stack([stack.code(path) for path in starts]))
    np.testing.assert_array_equal(ends, np.stack([stack.code(walk(path, moves)) for path in starts]))
    assert path_map[-1].tolist() == [0] * stack.size + [1]


@SETTINGS
@given(st.data(), st.integers(1, 3), st.floats(-0.95, 0.95).filter(lambda p: abs(p) > 0.05))
def test_decays_keep_paths_affine(data, branches, decay):
    """x * (1, p, p^2, ...) is led from node to node by W A W^-1 (section 3.2)."""
    stack = StackCodes(branches, 5)
    weights = np.append(stack.weights([decay])[0], 1)
    path = data.draw(steps(branches, max_size=4))
    for matrix, end in [(stack.down(0), (*path, 0)), (stack.up(), path[:-1])]:
        weighted = weights[:, None] * matrix / weights
        found = stack.apply(weighted, weights[:-1] * stack.code(path)[None])
        np.testing.assert_allclose(found[0], weights[:-1] * stack.code(end), rtol=1e-9, atol=1e-12)


def test_weights():
    weights = StackCodes(2, 3).weights([0.6, -0.8], width=8)
    np.testing.assert_allclose(weights[0], 1.6 * np.array([1, 1, 0.6, 0.6, 0.36, 0.36]))
    np.testing.assert_allclose(weights[1], 1.2 * np.array([1, 1, -0.8, -0.8, 0.64, 0.64]))


@SETTINGS
@given(st.integers(0, 4), st.integers(1, 3))
def test_balanced_tree_is_numbered_breadth_first(depth, branches):
    nodes = balanced_tree(depth, branches)
    assert nodes == sorted(nodes, key=lambda path: (len(path), path))
    assert len(set(nodes)) == len(nodes) == sum(branches**level for level in range(depth + 1))
    assert {len(path) for path in nodes} == set(range(depth + 1))


def test_nodes_of_the_paper():
    assert balanced_tree(2) == [(), (0,), (1,), (0, 0), (0, 1), (1, 0), (1, 1)]


@pytest.mark.parametrize("scale", [1, 1000])
def test_attention_is_a_softmax(scale):
    random = np.random.default_rng(0)
    queries, keys = scale * random.normal(size=(4, 3)), random.normal(size=(4, 3))
    scores = attention(queries, keys)
    np.testing.assert_allclose(scores.sum(axis=1), 1)
    for query, row in zip(queries, scores, strict=True):
        products = [float(query @ key) for key in keys]
        assert np.argmax(row) == np.argmax(products)
        expected = [1 / sum(np.exp(min(other - product, 700)) for other in products) for product in products]
        np.testing.assert_allclose(row, expected, rtol=1e-9, atol=1e-200)
