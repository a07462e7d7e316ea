"""Tree positions: the sum of rows against the paper's construction, and the algebra that the paper promises."""

from __future__ import annotations

import logging
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tree_positional import direct_positions
from tests.tree_positional.symbol_batches import columns_of, places
from tree_fairseq.errors import InputError
from tree_fairseq.tree_positional.positions import TreePositions, TreePositionsConfig, branch_paths


def config(levels=32, width=2048, **options) -> TreePositionsConfig:
    return TreePositionsConfig(tree_levels=levels, tree_position_dim=width, **options)


def positions_of(n, k, copies, width, seed=0, parameter_free=False) -> TreePositions:
    torch.manual_seed(seed)
    module = TreePositions(n, width, config(k, n * k * copies, parameter_free_tree_positions=parameter_free)).double()
    if module.projection is not None:
        torch.nn.init.normal_(module.projection.bias)
    return module


@st.composite
def batches(draw, branches: int):
    """Trees in columns of any order, between padding."""
    trees = draw(st.lists(places(branches), min_size=1, max_size=3))
    width = max(map(len, trees)) + draw(st.integers(0, 3))
    orders = [draw(st.permutations(range(width)))[: len(tree)] for tree in trees]
    return trees, orders, width


# Paths


@settings(max_examples=60, deadline=None)
@given(data=st.data(), branches=st.integers(1, 4), levels=st.integers(1, 9))
def test_paths_are_those_of_climbing(data, branches, levels):
    trees, orders, width = data.draw(batches(branches))
    tree, is_node = columns_of(trees, orders, width)
    paths = branch_paths(**tree, levels=levels)
    assert paths.dtype == torch.int16
    climbed = [[direct_positions.path(places, node) for node in range(len(places))] for places in trees]
    deepest = max(len(steps) for steps_of_tree in climbed for steps in steps_of_tree)
    assert paths.size(2) == min(max(deepest, 1), levels)
    for row, order in enumerate(orders):
        for steps, column in zip(climbed[row], order):
            kept = steps[: paths.size(2)]
            assert paths[row, column].tolist() == kept + [-1] * (paths.size(2) - len(kept))
    assert (paths[~is_node] == -1).all()


# The encoding


@pytest.mark.parametrize("parameter_free", [False, True])
@pytest.mark.parametrize("projected", [True, False])
@settings(max_examples=30, deadline=None)
@given(data=st.data(), n=st.integers(1, 4), k=st.integers(1, 4), copies=st.integers(1, 3), seed=st.integers(0, 99))
def test_values_and_gradients_equal_the_direct_construction(parameter_free, projected, data, n, k, copies, seed):
    copies = 1 if parameter_free else copies
    width = n * k * copies + 3 * projected
    module = positions_of(n, k, copies, width, seed, parameter_free)
    assert (module.projection is not None) == projected
    trees, orders, num_columns = data.draw(batches(n))
    tree, is_node = columns_of(trees, orders, num_columns)
    fast = module.encode(branch_paths(**tree, levels=k))

    decays = None if parameter_free else module.raw_decays.tanh()
    slow = torch.zeros(*is_node.shape, n * k * copies, dtype=torch.double)
    for row, (places_of_tree, order) in enumerate(zip(trees, orders)):
        slow[row, list(order)] = direct_positions.encode(places_of_tree, n, k, decays, width)
    slow = module.projection(slow) if projected else slow
    torch.testing.assert_close(fast, slow, rtol=1e-10, atol=1e-12)

    parameters = list(module.parameters())
    if parameters:
        probe = torch.randn_like(fast)
        # Where nothing is below the root, the direct construction touches no decay.
        expected = torch.autograd.grad(slow, parameters, probe, allow_unused=True)
        for mine, theirs in zip(torch.autograd.grad(fast, parameters, probe), expected):
            torch.testing.assert_close(
                mine, torch.zeros_like(mine) if theirs is None else theirs, rtol=1e-9, atol=1e-11
            )


@settings(max_examples=30, deadline=None)
@given(data=st.data(), n=st.integers(1, 4), copies=st.integers(1, 3), seed=st.integers(0, 99))
def test_paths_between_nodes_are_affine_maps_of_their_encodings(data, n, copies, seed):
    """U D_i = I, and what leads from one node to another depends on the path between them alone."""
    k = 9  # no tree is deeper
    width = n * k * copies
    module = positions_of(n, k, copies, width, seed)
    tree = data.draw(places(n))
    columns, _ = columns_of([tree], [list(range(len(tree)))], len(tree))
    encodings = module.encode(branch_paths(**columns, levels=k))[0].detach()
    decays = module.raw_decays.detach().tanh()
    downwards = torch.zeros(width, width, dtype=torch.double)  # pushes, less the new step
    for entry in range(n * copies, width):
        downwards[entry, entry - n * copies] = decays[entry % copies]
    upwards = torch.zeros_like(downwards)  # U
    for entry in range(width - n * copies):
        upwards[entry, entry + n * copies] = 1 / decays[entry % copies]
    weights = module.level_weights(1).detach()[0]

    def step(branch):
        return torch.cat([weights if place == branch else torch.zeros_like(weights) for place in range(n * k)])

    up = (upwards, torch.zeros(width, dtype=torch.double))
    down = [(downwards, step(branch)) for branch in range(n)]
    for node, place in enumerate(tree):
        if place is not None:
            torch.testing.assert_close(upwards @ encodings[node], encodings[place[0]])  # U D_i x = x
            torch.testing.assert_close(down[place[1]][0] @ encodings[place[0]] + down[place[1]][1], encodings[node])
    for start in range(len(tree)):
        for end in range(len(tree)):
            to_start, to_end = direct_positions.path(tree, start)[::-1], direct_positions.path(tree, end)[::-1]
            differing = (level for level, (one, other) in enumerate(zip(to_start, to_end)) if one != other)
            shared = next(differing, min(len(to_start), len(to_end)))
            here = encodings[start]
            for matrix, offset in [up] * (len(to_start) - shared) + [down[branch] for branch in to_end[shared:]]:
                here = matrix @ here + offset
            torch.testing.assert_close(here, encodings[end], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("raw", [0.0, 1e-30, -20.0, 20.0, 60.0])
def test_extreme_decays_have_finite_values_and_gradients(raw):
    module = TreePositions(2, 8, config(64, 256))
    torch.nn.init.constant_(module.raw_decays, raw)
    output = module.encode(torch.randint(0, 2, (3, 5, 64)))
    output.sum().backward()
    assert torch.isfinite(output).all()
    assert all(torch.isfinite(parameter.grad).all() for parameter in module.parameters())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("width", [8, 256])
def test_half_precision_rounds_inputs_and_output_alone(dtype, width):
    """Sums of many rows, and high powers of decays, are those of single precision."""
    module = TreePositions(2, width, config(32, 256, tree_decay_init="uniform")).to(dtype)
    paths = torch.randint(0, 2, (2, 5, 32))
    rounded = module.encode(paths)
    assert rounded.dtype == dtype and module.table(32).dtype == torch.float32
    assert torch.equal(rounded, module.float().encode(paths).to(dtype))


# Sizes and options


@pytest.mark.parametrize("init, low, high", [("paper", -math.sqrt(3 / 32), math.sqrt(3 / 32)), ("uniform", 0.7, 0.999)])
def test_initial_decays(init, low, high):
    torch.manual_seed(0)
    raw = torch.cat([TreePositions(2, 256, config(tree_decay_init=init)).raw_decays for _ in range(20)])
    assert raw.shape == (640,) and (raw >= low).all() and (raw <= high).all()
    assert raw.min() < low + 0.05 and raw.max() > high - 0.05


def test_positions_of_the_paper_s_size():
    module = TreePositions(2, 256, config())
    assert {name: tuple(weight.shape) for name, weight in module.state_dict().items()} == {
        "raw_decays": (32,),
        "projection.weight": (256, 2048),
        "projection.bias": (256,),
    }
    assert TreePositions(2, 2048, config()).projection is None


def test_width_beyond_a_multiple_of_n_and_k_is_unused():
    module = TreePositions(5, 256, config())
    assert module.copies == 12 and module.projection.in_features == 1920


def test_positions_without_room_for_a_path_are_refused():
    with pytest.raises(InputError, match="at least --tree-position-dim 256"):
        TreePositions(8, 16, config(32, 255))


def test_weights_that_a_checkpoint_lacks_are_completed_and_named(caplog):
    module = TreePositions(2, 8, config(4, 16))
    state = {"encoder.embed_positions.weight": torch.zeros(3, 8), "encoder.other": torch.zeros(1)}
    with caplog.at_level(logging.INFO, logger="tree_fairseq"):
        module.upgrade_state_dict_named(state, "encoder.embed_positions")
    new = [f"encoder.embed_positions.{name}" for name in module.state_dict()]
    assert set(state) == {"encoder.other", *new}
    assert all(name in caplog.text for name in new)
    state.pop(new[0])
    module.upgrade_state_dict_named(state, "encoder.embed_positions")
    assert new[0] not in state, "a torn checkpoint is left for fairseq to refuse"
