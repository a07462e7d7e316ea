"""Computing in the precision of the tensors themselves."""

from __future__ import annotations

import contextlib

import torch
from torch import Tensor


def as_given(tensor: Tensor) -> contextlib.AbstractContextManager:
    """A context without autocast on the tensor's device, also where there is none, as on the meta device."""
    device = tensor.device.type
    if not torch.amp.is_autocast_available(device):
        return contextlib.nullcontext()
    return torch.autocast(device, enabled=False)
