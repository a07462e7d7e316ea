"""Padding is moved and masked as fairseq does it, without its questions; autocast is off where it exists."""

from __future__ import annotations

import platform

import pytest
import torch
from fairseq import utils
from hypothesis import given
from hypothesis import strategies as st

from tests.nn.tiny import PAD, build, dictionary, net_input, pairs, stack, stock_flags, tiny_task
from tests.training_steps.modes import NoConstants, OneDevice
from tree_fairseq.nn import tensors
from tree_fairseq.tasks.translation import AutocastTranslationConfig, AutocastTranslationTask


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.booleans(), st.integers(0, 3))
def test_padding_moves_to_the_right(lengths, left_pad, extra):
    sentences = [list(range(4, 4 + length)) for length in lengths]
    tokens = stack(sentences, left_pad, width=max(lengths) + 1 + extra)
    expected = utils.convert_padding_direction(tokens, PAD, left_to_right=True)
    assert tensors.padded_on_the_right(tokens, PAD).equal(expected)
    tokens = tokens.to("meta")
    with OneDevice(), NoConstants():
        assert tensors.padded_on_the_right(tokens, PAD).shape == expected.shape


def test_a_mask_that_hides_nothing_changes_nothing():
    task = tiny_task()
    model = build(task, *stock_flags(), arch="transformer")
    for lengths in ((5, 5, 5), (7, 3, 5)):
        inputs = net_input(pairs(task, *lengths))
        del inputs["source_spans"]
        expected, _ = model(**inputs)
        with tensors.PaddingAssumed():
            found, _ = model(**inputs)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_only_devices_are_not_asked():
    tokens = torch.full((2, 3), PAD)
    with tensors.padding_assumed(tokens):
        assert not tokens.ne(PAD).any()
    with tensors.padding_assumed(tokens.to("meta")):
        assert tokens.ne(PAD).any() and tokens.ne(PAD).any(1).tolist() == [False, False]


def test_products_keep_their_precision():
    numbers = torch.ones(2, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (numbers @ numbers).dtype == torch.bfloat16
        with tensors.without_autocast(numbers):
            assert (numbers @ numbers).dtype == torch.float32


def test_a_device_without_autocast():
    numbers = torch.ones(2, 2, device="meta")
    with tensors.without_autocast(numbers):
        assert (numbers @ numbers).shape == (2, 2)


@pytest.mark.parametrize(
    ("machine", "capability", "is_fast"),
    [
        ("x86_64", "AVX2", False),
        ("AMD64", "DEFAULT", False),
        ("x86_64", "AVX512", True),
        ("x86_64", "AVX512_BF16", True),
        ("aarch64", "DEFAULT", True),
        ("arm64", "SVE256", True),
    ],
)
def test_autocast_warns_of_processors_that_are_slow_in_bfloat16(monkeypatch, caplog, machine, capability, is_fast):
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    assert tensors.has_fast_bfloat16() is is_fast
    for autocast in (True, False):
        caplog.clear()
        AutocastTranslationTask(AutocastTranslationConfig(cpu_autocast=autocast), dictionary("a"), dictionary("b"))
        assert ("no AVX-512" in caplog.text) == (autocast and not is_fast)
