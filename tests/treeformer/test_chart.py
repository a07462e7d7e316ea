"""The chart: its levels against the paper's triple loop, and what padding, size and precision may not change."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.nn.tiny import kept_storages
from tests.treeformer import direct_chart
from tree_fairseq.treeformer.chart import Chart, ChartConfig
from tree_fairseq.treeformer.levels import ChartCells

WIDTH = 8


def chart_of(height: int, seed: int = 0, width: int = WIDTH, **options) -> Chart:
    torch.manual_seed(seed)
    return Chart(width, ChartConfig(treeformer_height=height, **options))


def padding_of(spans, columns: int) -> torch.Tensor:
    """Sentences from the first to before the second number of each pair."""
    column = torch.arange(columns)
    return torch.stack([(column < first) | (column >= end) for first, end in spans])


@st.composite
def batches(draw):
    columns = draw(st.integers(1, 9))
    starts = draw(st.lists(st.integers(0, columns - 1), min_size=1, max_size=3))
    return [(start, draw(st.integers(start + 1, columns))) for start in starts], columns


kinds = st.sampled_from(["mean", "random"])


def direct(chart: Chart, states: torch.Tensor, spans) -> torch.Tensor:
    """The triple loop, sentence by sentence, in the order of cells."""
    rows = []
    for sentence, (first, end) in enumerate(spans):
        encoded = direct_chart.encode(states[first:end, sentence], chart.composition(), chart.query[0], chart.height)
        rows += [encoded[start, length] for start, length in sorted(encoded, key=lambda cell: cell[::-1])]
    return torch.stack(rows)


def used(encoded: torch.Tensor, cells: ChartCells) -> torch.Tensor:
    """The cells ``[C, D]`` of all sentences, one sentence after the other."""
    return encoded.transpose(0, 1)[~cells.unused]


# The recurrence


@settings(max_examples=40, deadline=None)
@given(batch=batches(), height=st.integers(2, 10), kind=kinds, seed=st.integers(0, 99))
def test_values_and_gradients_equal_the_triple_loop(batch, height, kind, seed):
    spans, columns = batch
    chart = chart_of(height, seed, treeformer_composition_init=kind).double()
    padding = padding_of(spans, columns)
    states = torch.randn(columns, len(spans), WIDTH, dtype=torch.double)
    # What padding holds is not read.
    states.masked_fill_(padding.t().unsqueeze(-1), float("nan")).requires_grad_()
    cells = chart.cells(padding)
    fast = used(chart(states, cells), cells)
    slow = direct(chart, states, spans)
    torch.testing.assert_close(fast, slow, rtol=1e-10, atol=1e-11)
    probe, inputs = torch.randn_like(fast), [states, *chart.parameters()]
    expected = torch.autograd.grad(slow, inputs, probe, allow_unused=True)
    for mine, theirs in zip(torch.autograd.grad(fast, inputs, probe), expected):
        theirs = torch.zeros_like(mine) if theirs is None else theirs
        torch.testing.assert_close(mine, theirs, rtol=1e-8, atol=1e-9)


def test_the_backward_pass_is_that_of_finite_differences():
    chart = chart_of(4, treeformer_composition_init="random").double()
    cells = chart.cells(padding_of([(0, 5), (2, 5)], 5))
    states = torch.randn(5, 2, WIDTH, dtype=torch.double, requires_grad=True)

    def encode(states, weight, query):
        return torch.func.functional_call(chart, {"weight": weight, "query": query}, (states, cells))

    assert torch.autograd.gradcheck(encode, (states, chart.weight, chart.query))


@settings(max_examples=20, deadline=None)
@given(n=st.integers(2, 8), height=st.integers(2, 9), kind=kinds)
def test_weights_of_splits_are_those_of_the_triple_loop(n, height, kind):
    chart = chart_of(height, treeformer_composition_init=kind).double()
    states = torch.randn(n + 1, 1, WIDTH, dtype=torch.double)
    splits = chart.splits(states, chart.cells(padding_of([(1, n + 1)], n + 1)))
    expected = direct_chart.split_weights(states[1:, 0], chart.composition(), chart.query[0], height)
    assert len(splits) == min(height, n + 1) - 1
    for (start, length), shares in expected.items():
        torch.testing.assert_close(splits[length - 2][start + 1, 0], shares)


# Cells


@pytest.mark.parametrize("n, height", [(7, 10), (12, 5), (15, 15), (1, 10), (2, 10), (30, 10)])
def test_the_number_of_cells_is_the_closed_form(n, height):
    cells = ChartCells.build(padding_of([(0, n)], n), height)
    top = min(n, height)
    assert len(cells.start) == len(cells.length) == cells.width == n * top - top * (top - 1) // 2
    assert cells.height == top and not cells.unused.any()


@settings(max_examples=40, deadline=None)
@given(batch=batches(), height=st.integers(2, 10))
def test_cells_are_the_spans_of_tokens(batch, height):
    spans, columns = batch
    cells = ChartCells.build(padding_of(spans, columns), height)
    for sentence, (first, end) in enumerate(spans):
        expected = [(length, start) for length in range(1, height + 1) for start in range(first, end - length + 1)]
        own = cells.places(sentence)
        assert list(zip(cells.length[own].tolist(), cells.start[own].tolist())) == expected
        assert cells.unused[sentence].logical_not().sum() == len(expected)
    for length in range(1, cells.height + 1):
        assert (cells.length[cells.level(length)] == length).all()
    assert cells.level(cells.height).stop == cells.width


def test_attention_to_phrases_is_shared_among_their_tokens():
    cells = ChartCells.build(padding_of([(1, 3), (0, 3)], 3), 2)
    # Three tokens and two phrases of the second sentence, then two tokens and a phrase of the first.
    attention = torch.tensor([[[0.0, 0.0, 0.1, 0.5, 0.4]], [[0.0, 0.25, 0.25, 0.0, 0.5]]])
    spread = cells.spread(attention)
    torch.testing.assert_close(spread, torch.tensor([[[0.25, 0.45, 0.3]], [[0.0, 0.5, 0.5]]]))


# Sizes, precision and options


def test_the_paper_s_chart_is_one_matrix_and_one_query():
    chart = chart_of(10, width=512, treeformer_composition_init="random")
    assert {name: tuple(weight.shape) for name, weight in chart.state_dict().items()} == {
        "weight": (1, 512, 1024),
        "query": (1, 512),
    }
    assert sum(weight.numel() for weight in chart.parameters()) == 524_800


def test_a_step_of_adam_moves_a_composed_vector_by_no_more_than_about_the_rate():
    chart = chart_of(10, width=128)
    before, rate = chart.composition().detach(), 1e-2
    optimizer = torch.optim.Adam(chart.parameters(), lr=rate)
    chart.composition().sum().backward()  # all elements move the same way, which moves vectors most
    optimizer.step()
    moved = torch.linalg.matrix_norm(chart.composition().detach() - before, ord=2)
    assert 0.5 * rate < moved < 1.5 * rate


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_finite_and_close(dtype):
    chart = chart_of(8, width=64)
    cells = chart.cells(padding_of([(0, 12), (4, 12)], 12))
    states = torch.randn(12, 2, 64)
    states[:, 1] *= 300  # their squares are beyond half precision
    rounded = [tensor.to(dtype) for tensor in (states, chart.deviation.detach(), chart.query.detach())]
    chart.deviation.data, chart.query.data = (tensor.float() for tensor in rounded[1:])
    expected = chart(rounded[0].float(), cells)
    inputs = rounded[0].requires_grad_()
    half = chart.to(dtype)
    output = half(inputs, cells)
    assert output.dtype == dtype
    error = (output.float() - expected)[:, 0].norm() / expected[:, 0].norm()
    assert error < (0.03 if dtype == torch.bfloat16 else 0.004)
    (1e-4 * output.float().square().mean()).backward()
    assert torch.isfinite(output).all()
    assert all(torch.isfinite(tensor.grad).all() for tensor in (inputs, *half.parameters()))


def test_the_backward_pass_keeps_little_more_than_the_cells():
    chart = chart_of(10, width=128)
    cells = chart.cells(padding_of([(0, 30)] * 4, 30))
    states = torch.randn(30, 4, 128, requires_grad=True)
    with kept_storages() as kept:
        output = chart(states, cells)
    weights = {weight.untyped_storage().data_ptr() for weight in chart.parameters()}
    assert sum(size for pointer, size in kept.items() if pointer not in weights) < 1.5 * output.nbytes
