"""The bidirectional LSTM over padded texts, against torch's over packed sequences."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tree_fairseq.classification import sequence_classifiers
from tree_fairseq.classification.sequence_classifiers import last_states
from tree_fairseq.support.python_versions import zip_equal


def packed_last_states(lstm: nn.LSTM, texts: Tensor, lengths: Tensor) -> Tensor:
    """The same by torch's packed sequences."""
    packed = nn.utils.rnn.pack_padded_sequence(texts, lengths, enforce_sorted=False)
    last = lstm(packed)[1][0].view(lstm.num_layers, 2, len(lengths), lstm.hidden_size)
    return torch.cat([last[-1, 0], last[-1, 1]], dim=1)


@settings(max_examples=25, deadline=None)
@given(lengths=st.lists(st.integers(1, 7), min_size=1, max_size=4), layers=st.integers(1, 3), extra=st.integers(0, 2))
def test_it_is_the_packed_one(lengths, layers, extra):
    lstm = nn.LSTM(3, 4, num_layers=layers, bidirectional=True).double()
    texts = torch.randn(max(lengths) + extra, len(lengths), 3, dtype=torch.float64, requires_grad=True)
    lengths, outputs = torch.tensor(lengths), []
    for states in (last_states, packed_last_states):
        found = states(lstm, texts, lengths)
        weights = torch.linspace(-1, 1, found.numel(), dtype=torch.float64).view_as(found)
        outputs.append((found, *torch.autograd.grad((found * weights).sum(), [texts, *lstm.parameters()])))
    for one, other in zip_equal(*outputs):
        torch.testing.assert_close(one, other)


def test_dropout_is_between_layers_and_in_training_alone():
    torch.manual_seed(0)
    lstm, texts, lengths = (
        nn.LSTM(3, 4, num_layers=2, dropout=0.5, bidirectional=True),
        torch.randn(5, 2, 3),
        torch.tensor([5, 3]),
    )
    assert not torch.equal(last_states(lstm, texts, lengths), last_states(lstm, texts, lengths))
    lstm.eval()
    torch.testing.assert_close(last_states(lstm, texts, lengths), packed_last_states(lstm, texts, lengths))


def test_autocast_leaves_single_precision_where_the_processor_has_no_lstm_in_bfloat16(monkeypatch):
    monkeypatch.setattr(sequence_classifiers, "has_fast_bfloat16", lambda: False)
    lstm, texts, lengths = nn.LSTM(3, 4, num_layers=2, bidirectional=True), torch.randn(5, 2, 3), torch.tensor([5, 3])
    with torch.autocast("cpu", torch.bfloat16):
        found = last_states(lstm, texts, lengths)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, last_states(lstm, texts, lengths))


class _Written(TorchDispatchMode):
    """How many numbers all operations make."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.count += sum(leaf.numel() for leaf in tree_leaves(result) if isinstance(leaf, Tensor))
        return result


def work(states: Callable, longest: int) -> int:
    """Counts the bytes that the forward and backward pass of two texts of different lengths write."""
    lstm = nn.LSTM(2, 2, bidirectional=True)
    with _Written() as written:
        states(
            lstm, torch.randn(longest, 2, 2, requires_grad=True), torch.tensor([longest, longest // 2])
        ).sum().backward()
    return written.count


def test_the_work_grows_with_the_length_and_not_with_its_square():
    one, two, four = (work(last_states, longest) for longest in (50, 100, 200))
    assert four - two == pytest.approx(2 * (two - one), rel=0.01)
    # Why this module exists: six times the work on torch 2.13, three times on torch 2.5.
    assert work(packed_last_states, 200) > 2 * four
