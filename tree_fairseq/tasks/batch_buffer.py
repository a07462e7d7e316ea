"""Batches whose tensors leave a loading process, and reach pinned memory, in one buffer.

torch makes a shared file for each tensor that a loading process hands over, and the training process opens each. A
batch with trees has about twenty tensors, and this takes several times as long as it takes to copy them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor


class _Place(NamedTuple):
    """Stands for a tensor: its place in the buffer."""

    number: int


class _Layout(NamedTuple):
    """A batch with places for tensors, and the type and shape of each tensor in the order of the buffer."""

    batch: dict
    kinds: list[tuple[torch.dtype, torch.Size]]


class BufferedBatch(dict):
    """A batch, as a dict; the tensors in it, and in its dicts, lists and tuples, are pickled and pinned as one.

    Other objects are pickled as they are, and not pinned. A tensor that is there twice is copied once.
    """

    def __reduce__(self) -> tuple:
        return _put_together, _in_one_buffer(self)

    def pin_memory(self) -> BufferedBatch:
        """Returns the batch in pinned memory. torch's loader calls this."""
        return _put_together(*_in_one_buffer(self, pin_memory=True))


def _in_one_buffer(batch: Mapping, **memory: bool) -> tuple[Tensor, _Layout]:
    """Returns the bytes of the tensors, and their layout."""
    found = {id(tensor): tensor for tensor in _tensors(dict(batch))}
    # Tensors of wider numbers come first, so each begins at a multiple of the width of its numbers.
    ordered = sorted(found.values(), key=lambda tensor: -tensor.element_size())
    places = {id(tensor): _Place(number) for number, tensor in enumerate(ordered)}
    layout = _Layout(_with_places(dict(batch), places), [(tensor.dtype, tensor.shape) for tensor in ordered])
    buffer = torch.empty(sum(_sizes(layout)), dtype=torch.uint8, **memory)
    for view, tensor in zip(_views(buffer, layout), ordered):
        view.copy_(tensor)
    return buffer, layout


def _put_together(buffer: Tensor, layout: _Layout) -> BufferedBatch:
    """Returns the batch, whose tensors are views of the buffer."""
    return BufferedBatch(_with_tensors(layout.batch, _views(buffer, layout)))


def _sizes(layout: _Layout) -> list[int]:
    """Returns the number of bytes of each tensor."""
    return [shape.numel() * dtype.itemsize for dtype, shape in layout.kinds]


def _views(buffer: Tensor, layout: _Layout) -> list[Tensor]:
    parts = buffer.split(_sizes(layout)) if layout.kinds else ()
    return [part.view(dtype).view(shape) for part, (dtype, shape) in zip(parts, layout.kinds)]


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif type(value) in (dict, list, tuple):
        for part in value.values() if type(value) is dict else value:
            yield from _tensors(part)


def _with_places(value: Any, places: Mapping[int, _Place]) -> Any:
    if isinstance(value, Tensor):
        return places[id(value)]
    if type(value) is dict:
        return {name: _with_places(part, places) for name, part in value.items()}
    return type(value)(_with_places(part, places) for part in value) if type(value) in (list, tuple) else value


def _with_tensors(value: Any, views: Sequence[Tensor]) -> Any:
    if type(value) is _Place:
        return views[value.number]
    if type(value) is dict:
        return {name: _with_tensors(part, views) for name, part in value.items()}
    return type(value)(_with_tensors(part, views) for part in value) if type(value) in (list, tuple) else value
