"""Tensors of any model: attention, padding on one side, no autocast, and no questions about padding to a device.

A host that asks a GPU for a value waits for it.
"""

from __future__ import annotations

import contextlib
import math
import platform
from collections.abc import Sequence
from typing import Any

import torch
from fairseq.modules import FairseqDropout
from torch import Tensor
from torch.overrides import TorchFunctionMode


def has_fast_bfloat16() -> bool:
    """Whether the CPU multiplies matrices in bfloat16 by instructions of its own; False for x86 without AVX-512."""
    is_x86 = platform.machine().lower() in ("x86_64", "amd64")
    return not is_x86 or torch.backends.cpu.get_cpu_capability().startswith("AVX512")


def without_autocast(tensor: Tensor) -> contextlib.AbstractContextManager:
    """Turns autocast off on the tensor's device; some devices, such as meta, do not have it."""
    device = tensor.device.type
    return (
        torch.autocast(device, enabled=False) if torch.amp.is_autocast_available(device) else contextlib.nullcontext()
    )


def dropout_of_weights(module: FairseqDropout) -> float:
    """The share of attention weights that a kernel drops: in training, and in generation with ``--retain-dropout``."""
    return module.p if module.training or module.apply_during_inference else 0.0


def attention_options(cfg) -> dict[str, Any]:
    """Keywords of every attention of a transformer, from its configuration."""
    noise = cfg.quant_noise
    return {"dropout": cfg.attention_dropout, "q_noise": noise.pq, "qn_block_size": noise.pq_block_size}


def mean_log_probs(logits: Sequence[Tensor]) -> Tensor:
    """Logarithms of the mean probabilities of several models, in single precision at least, given logits ``[R, V]``."""
    scores = [values.to(torch.promote_types(values.dtype, torch.float32)).log_softmax(dim=-1) for values in logits]
    return scores[0] if len(scores) == 1 else torch.stack(scores).logsumexp(dim=0) - math.log(len(scores))


def split_heads(states: Tensor, heads: int) -> Tensor:
    """``[N, B, D]`` to ``[B, H, N, D / H]``."""
    return states.unflatten(2, (heads, -1)).permute(1, 2, 0, 3)  # N x B x H x D/H -> B x H x N x D/H


def join_heads(states: Tensor) -> Tensor:
    """``[B, H, N, D / H]`` to ``[N, B, D]``."""
    return states.permute(2, 0, 1, 3).flatten(2)  # B x H x N x D/H -> N x B x H x D/H -> N x B x D


def first_tokens(is_token: Tensor) -> Tensor:
    """The column of the first true element of each row, ``[B, 1]`` int64, of ``[B, N]`` bool; 0 if all are false."""
    return is_token.int().argmax(1, keepdim=True)


def padded_on_the_right(tokens: Tensor, pad: int) -> Tensor:
    """Moves the padding of ``[B, N]`` tokens, all of it on the left or all on the right, to the right.

    fairseq's ``convert_padding_direction`` does the same; it asks for values and copies columns from the CPU.

    Examples:
        >>> padded_on_the_right(torch.tensor([[1, 1, 7, 8], [5, 6, 7, 8]]), pad=1).tolist()
        [[7, 8, 1, 1], [5, 6, 7, 8]]
    """
    columns = torch.arange(tokens.size(1), device=tokens.device)
    return tokens.gather(1, (columns + first_tokens(tokens.ne(pad))) % max(tokens.size(1), 1))


class _Yes:
    """The answer of ``mask.any()``, as far as fairseq uses it."""

    def __bool__(self) -> bool:
        return True

    def type_as(self, other: Tensor) -> Tensor:
        return other.new_ones(())


class PaddingAssumed(TorchFunctionMode):
    """Answers the question whether any element of a mask is true with yes, and whether all are with no.

    fairseq's transformer asks whether a batch has padding, and those of the library transformers ask whether all is
    visible, to leave out a mask that would hide nothing. Such a mask gives the same result as none. torch calls the
    mode once for each function that Python calls, which takes about a microsecond.
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in _ANSWERS and len(args) == 1 and not kwargs and args[0].dtype == torch.bool:
            return _ANSWERS[func]
        return func(*args, **(kwargs or {}))


_ANSWERS = {Tensor.any: _Yes(), Tensor.all: False}


def padding_assumed(tokens: Tensor) -> contextlib.AbstractContextManager:
    """The mode for batches on a device, and nothing for those on the CPU, which knows its values."""
    return contextlib.nullcontext() if tokens.device.type == "cpu" else PaddingAssumed()
