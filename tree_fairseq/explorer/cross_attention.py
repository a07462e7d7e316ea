"""Records the attention of decoders to the outputs of encoders, and makes a view of it.

Hooks record the weights, and are there only while the ``with`` block runs: training and generation never compute them.
All weights are means over heads.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Optional

import torch
from torch import nn

from tree_fairseq.drawing.views import CrossAttention, Explained, Views, matrix_record
from tree_fairseq.nn.shared_memory import Memory


@contextlib.contextmanager
def recorded_attention(model: nn.Module) -> Iterator[list[CrossAttention]]:
    """Yields a list, to which a forward pass of the model on one sentence adds the weights of each decoder layer."""
    record: list[CrossAttention] = []

    def ask(module: nn.Module, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        return args, {**kwargs, "need_weights": True, "need_head_weights": True}

    def keep(module: nn.Module, args: tuple, kwargs: dict, output: tuple) -> None:
        given = dict(zip(("query", "key", "value", "key_padding_mask"), args), **kwargs)
        weights = output[1] if output[1].dim() == 3 else output[1][:, 0]  # (H, B, T, S) -> (H, T, S)
        memory = given.get("key_padding_mask")
        structure = memory.structure if isinstance(memory, Memory) else memory
        weights = weights.detach().to(torch.promote_types(weights.dtype, torch.float32))
        record.append(CrossAttention(weights.mean(0), structure))

    with contextlib.ExitStack() as hooks:
        for attention in cross_attentions(model):
            hooks.enter_context(attention.register_forward_pre_hook(ask, with_kwargs=True))
            hooks.enter_context(attention.register_forward_hook(keep, with_kwargs=True))
        yield record


def cross_attentions(model: nn.Module) -> list[nn.Module]:
    """Finds the cross-attention of each decoder layer; only transformers with a decoder have any."""
    layers = getattr(getattr(model, "decoder", None), "layers", [])
    found = [getattr(layer, "encoder_attn", None) for layer in layers]
    return [attention for attention in found if attention is not None]


def cross_attention_view(explained: Explained, methods: Sequence[Views]) -> Optional[dict[str, Any]]:
    """Shows the attention of target tokens to the memory of a sentence, by layer.

    Columns are the source tokens, and what the methods of the system know of the memory beside them. Returns None if
    there is no attention, or if the places of the memory are not known, as of an encoder with a memory of its own.
    """
    if not explained.cross:
        return None
    rows, items = explained.rows, explained.items
    weights = torch.stack([layer.weights for layer in explained.cross]).cpu()[:, : len(rows)]  # [layers, T, S]
    columns = [
        {"kind": "word" if place < len(explained.tokens) else "eos", "label": item, "start": place, "end": place + 1}
        for place, item in enumerate(items)
    ]
    for method in methods:
        more, places = method.columns(explained) or ([], None)
        found = weights if places is None else weights[:, :, places]
        if more and found.size(2) == len(columns) + len(more):
            columns, weights = columns + more, found
            break
    if weights.size(2) != len(columns):
        return None
    return {"rows": list(rows), "columns": columns, "weights": matrix_record(weights)}
