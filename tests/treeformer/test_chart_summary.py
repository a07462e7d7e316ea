"""The mean of a chart's top row, against the paper's triple loop over the words of each sentence."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.treeformer import direct_chart
from tree_fairseq.treeformer.chart import ChartConfig, ChartSummary, words_first

WIDTH = 8


def summary_of(height: int, seed: int = 0) -> ChartSummary:
    torch.manual_seed(seed)
    return ChartSummary(WIDTH, ChartConfig(treeformer_height=height)).double()


def direct(summary: ChartSummary, states: torch.Tensor, outside: torch.Tensor) -> torch.Tensor:
    """Sentence by sentence."""
    chart, rows = summary.chart, []
    for sentence, is_outside in enumerate(outside.tolist()):
        words = [states[column, sentence] for column, is_cut in enumerate(is_outside) if not is_cut]
        top = []
        if words:
            encoded = direct_chart.encode(torch.stack(words), chart.composition(), chart.query[0], chart.height)
            highest = min(chart.height, len(words))
            top = [vector for (_, length), vector in encoded.items() if length == highest]
        rows.append(torch.stack(top).mean(0) if top else states.new_zeros(WIDTH))
    return torch.stack(rows)


@settings(max_examples=40, deadline=None)
@given(
    outside=st.integers(1, 9).flatmap(
        lambda n: st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=1, max_size=3)
    ),
    height=st.integers(2, 6), seed=st.integers(0, 99),
)  # fmt: skip
def test_values_and_gradients_equal_the_triple_loop(outside, height, seed):
    outside = torch.tensor(outside)
    summary = summary_of(height, seed)
    states = torch.randn(outside.size(1), len(outside), WIDTH, dtype=torch.float64, requires_grad=True)
    ours, theirs = summary(states, outside), direct(summary, states, outside)
    torch.testing.assert_close(ours, theirs)
    if outside.all():
        return
    weights = torch.randn_like(ours)
    # The query of a chart that is one token high has no gradient.
    inputs = (states, *summary.parameters())
    gradients = [
        torch.autograd.grad((weights * value).sum(), inputs, allow_unused=True, materialize_grads=True)
        for value in (ours, theirs)
    ]
    for one, other in zip(*gradients):
        torch.testing.assert_close(one, other)


def test_words_move_to_the_first_columns_in_their_order():
    states = torch.arange(10.0).view(5, 2, 1)
    outside = torch.tensor([[1, 0, 1, 0, 1], [1, 0, 0, 0, 1]]).bool()
    closed, padding = words_first(states, outside)
    assert closed[:2, 0, 0].tolist() == [2, 6] and closed[:3, 1, 0].tolist() == [3, 5, 7]
    assert padding.tolist() == [[False] * 2 + [True] * 3, [False] * 3 + [True] * 2]


def test_columns_without_words_are_never_read():
    outside = torch.tensor([[1, 0, 0, 1, 0, 1, 1], [1, 0, 0, 0, 0, 1, 1]]).bool()
    summary = summary_of(3)
    states = torch.randn(7, 2, WIDTH, dtype=torch.float64)
    expected = summary(states, outside)
    changed = states.masked_fill(outside.t().unsqueeze(2), 1e6)
    torch.testing.assert_close(summary(changed, outside), expected)


def test_sums_keep_the_type_of_the_states():
    summary = summary_of(3).to(torch.bfloat16)
    states = torch.randn(6, 1, WIDTH, dtype=torch.bfloat16)
    found = summary(states, torch.zeros(1, 6, dtype=torch.bool))
    assert found.dtype == torch.bfloat16 and found.isfinite().all()
