"""Work on a device: what it computes fast, no autocast, and padding on one side."""

from __future__ import annotations

import contextlib
import platform

import torch
from torch import Tensor


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
