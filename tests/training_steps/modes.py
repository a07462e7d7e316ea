"""Modes that fail when a host would wait for its device: at a value that is asked for, or where two devices meet."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

META = torch.device("meta")


class Synchronisation(AssertionError):
    """The host would wait for the device, or copy to it, in the middle of a step."""


def _tensors(*values: object) -> Iterator[Tensor]:
    return (value for value in tree_flatten(values)[0] if isinstance(value, Tensor))


class OneDevice(TorchDispatchMode):
    """Fails when a tensor of the host that has elements meets one of the device, here ``meta``, or is copied to it.

    Numbers are no such tensors: kernels take them as arguments. The same is true of the lengths of packed sequences,
    which torch wants on the host.
    """

    packing = frozenset(["_pack_padded_sequence", "_pad_packed_sequence", "_pack_padded_sequence_backward"])

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        found = list(_tensors(args, kwargs, result))
        if any(tensor.device == META for tensor in found) and func.overloadpacket.__name__ not in self.packing:
            strangers = [tuple(tensor.shape) for tensor in found if tensor.device != META and tensor.dim()]
            if strangers:
                raise Synchronisation(f"{func} joins tensors of the device and of the host, {strangers}")
        return result


class NoConstants(TorchFunctionMode):
    """Fails when Python numbers become a tensor of the device: torch copies them from the host."""

    makers = (torch.tensor, torch.as_tensor, torch.asarray, Tensor.new_tensor)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func in self.makers and result.device == META and not isinstance(args[0], Tensor):
            raise Synchronisation(f"{func.__name__} copies {args[0]!r} to the device")
        if func is Tensor.new_tensor and result.device == META:
            raise Synchronisation(f"new_tensor copies {args[1:]!r} to the device")
        return result


class NoQuestions(TorchDispatchMode):
    """Fails at operations whose result depends on values in size or leaves the device, on any device."""

    names = frozenset(
        "_local_scalar_dense nonzero nonzero_numpy argwhere masked_select equal is_nonzero bincount histc "
        "unique_dim unique_consecutive unique_dim_consecutive _unique _unique2".split()
    )

    def __init__(self):
        super().__init__()
        self.known: dict[int, Tensor] = {}  # by identity: Python values, shapes, and all that is computed from them
        self._shapes = _Shapes(self.known)

    def __enter__(self):
        self._shapes.__enter__()
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        self._shapes.__exit__(*error)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name, inputs = func.overloadpacket.__name__, list(_tensors(args, kwargs))
        is_known = name == "lift_fresh" or (bool(inputs) and all(id(tensor) in self.known for tensor in inputs))
        if not is_known:
            self._refuse(func, name, args, kwargs)
        result = func(*args, **kwargs)
        if is_known:
            self.known.update((id(tensor), tensor) for tensor in _tensors(result))
        return result

    def _refuse(self, func, name: str, args: tuple, kwargs: dict) -> None:
        if name in self.names:
            raise Synchronisation(f"{func} asks for values")
        if name in ("index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"):
            if any(index is not None and index.dtype in (torch.bool, torch.uint8) for index in args[1]):
                raise Synchronisation(f"{func} is given a mask: the size of its result depends on values")
        if name == "repeat_interleave" and kwargs.get("output_size") is None and func._overloadname != "self_int":
            raise Synchronisation(f"{func} without output_size asks for values")


class _Shapes(TorchFunctionMode):
    """Notes the tensors that fairseq makes of shapes, which no dispatch mode sees."""

    def __init__(self, known: dict[int, Tensor]):
        super().__init__()
        self.known = known

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func is torch._shape_as_tensor:
            self.known[id(result)] = result
        return result
