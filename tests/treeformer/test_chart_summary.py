"""The mean of a chart's top row, against the paper's triple loop over the words of each sentence."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.treeformer import direct_chart
from tree_fairseq.treeformer.chart import ChartConfig, ChartSummary

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


def test_sums_keep_the_type_of_the_states():
    summary = summary_of(3).to(torch.bfloat16)
    states = torch.randn(6, 1, WIDTH, dtype=torch.bfloat16)
    found = summary(states, torch.zeros(1, 6, dtype=torch.bool))
    assert found.dtype == torch.bfloat16 and found.isfinite().all()
