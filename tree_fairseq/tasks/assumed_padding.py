"""Padding without a question to the device: a host that asks a GPU waits for it.

fairseq's transformer asks whether a batch has padding, and those of the library transformers whether all is visible,
to leave out a mask that would hide nothing.
"""

from __future__ import annotations

import contextlib

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode


class _Yes:
    """The answer of ``mask.any()``, as far as fairseq uses it."""

    def __bool__(self) -> bool:
        return True

    def type_as(self, other: Tensor) -> Tensor:
        return other.new_ones(())


class _No:
    """The answer of ``mask.all()``, as far as transformers uses it."""

    def __bool__(self) -> bool:
        return False


class PaddingAssumed(TorchFunctionMode):
    """Answers the question whether any element of a mask is true with yes, and whether all are with no.

    A mask that hides nothing gives the same result as none. torch calls the mode once for each function that Python
    calls, which takes about a microsecond.
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in _ANSWERS and len(args) == 1 and not kwargs and args[0].dtype == torch.bool:
            return _ANSWERS[func]
        return func(*args, **(kwargs or {}))


_ANSWERS = {Tensor.any: _Yes(), Tensor.all: _No()}


def padding_assumed(tokens: Tensor) -> contextlib.AbstractContextManager:
    """The mode for batches on a device, and nothing for those on the CPU, which knows its values."""
    return contextlib.nullcontext() if tokens.device.type == "cpu" else PaddingAssumed()
