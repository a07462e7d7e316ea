"""Autocast is off where it exists, and is not asked for elsewhere."""

from __future__ import annotations

import torch

from tree_fairseq.nn.precision import as_given


def test_products_keep_their_precision():
    numbers = torch.ones(2, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (numbers @ numbers).dtype == torch.bfloat16
        with as_given(numbers):
            assert (numbers @ numbers).dtype == torch.float32


def test_a_device_without_autocast():
    numbers = torch.ones(2, 2, device="meta")
    with as_given(numbers):
        assert (numbers @ numbers).shape == (2, 2)
