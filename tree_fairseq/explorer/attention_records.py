"""Records the attention weights of a forward pass, of encoders over trees and of decoders over what encoders leave.

The weights are recorded by hooks, which are there only while the ``with`` block runs: training and generation never
compute them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tree_fairseq.nn.shared_memory import Memory, ProjectedMemory, SharedMemoryAttention, split_heads
from tree_fairseq.tree_transformer.attention import TreeSelfAttention


class NodeAttention(NamedTuple):
    """The attention of the nodes of R trees in one encoder layer."""

    weights: Tensor  # R x M x S, the mean over heads
    heads: int
    num_leaves: int  # N of the S items, which come before the nodes


class CrossAttention(NamedTuple):
    """The attention of one decoder layer to the memory of one sentence."""

    weights: Tensor  # T x S, the mean over heads
    structure: Any  # of the memory: a TreeStructure, ChartCells, or padding; None if it is not known


@dataclass
class AttentionRecord:
    """The weights of all layers, in their order."""

    nodes: list[NodeAttention] = field(default_factory=list)
    cross: list[CrossAttention] = field(default_factory=list)


@contextlib.contextmanager
def recorded_attention(model: nn.Module) -> Iterator[AttentionRecord]:
    """Yields a record that a forward pass of the model, on a batch of one sentence, fills."""
    record = AttentionRecord()
    handles = []

    def keep_nodes(module: TreeSelfAttention, args: tuple, kwargs: dict) -> None:
        given = dict(zip(("query", "key", "value", "key_padding_mask"), args), **kwargs)
        # Documents keep the structure of their rows beside more.
        structure = getattr(given["key_padding_mask"], "rows", given["key_padding_mask"])
        states = given["query"][: structure.padding.size(1)]
        weights = module.weights_of_nodes(states, structure)
        record.nodes.append(NodeAttention(_wide(weights).mean(1), module.num_heads, structure.num_leaves))

    def ask(module: nn.Module, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        return args, {**kwargs, "need_weights": True, "need_head_weights": True}

    def keep_cross(module: nn.Module, args: tuple, kwargs: dict, output: tuple) -> None:
        given = dict(zip(("query", "key", "value", "key_padding_mask"), args), **kwargs)
        if isinstance(given["key"], ProjectedMemory):
            weights = _weights_over(module, given["query"], given["key"])[:, 0]  # H x T x S
        else:
            weights = output[1] if output[1].dim() == 3 else output[1][:, 0]
        memory = given.get("key_padding_mask")
        structure = memory.structure if isinstance(memory, Memory) else memory
        record.cross.append(CrossAttention(_wide(weights.detach()).mean(0), structure))

    for module in model.modules():
        if isinstance(module, TreeSelfAttention):
            handles.append(module.register_forward_pre_hook(keep_nodes, with_kwargs=True))
    for attention in cross_attentions(model):
        handles.append(attention.register_forward_pre_hook(ask, with_kwargs=True))
        handles.append(attention.register_forward_hook(keep_cross, with_kwargs=True))
    try:
        yield record
    finally:
        for handle in handles:
            handle.remove()


def cross_attentions(model: nn.Module) -> list[nn.Module]:
    """The cross-attention of each decoder layer; empty if the model is not a transformer with a decoder."""
    layers = getattr(getattr(model, "decoder", None), "layers", [])
    found = [getattr(layer, "encoder_attn", None) for layer in layers]
    return [attention for attention in found if attention is not None]


@torch.no_grad()
def _weights_over(attention: SharedMemoryAttention, query: Tensor, memory: ProjectedMemory) -> Tensor:
    """Weights ``[H, B, T, S]`` of queries ``[T, B, D]`` over a memory that was projected beforehand."""
    logits = split_heads(attention.q_proj(query), attention.num_heads) @ memory.keys.mT / attention.head_dim**0.5
    if memory.bias is not None:
        logits = logits + memory.bias.unsqueeze(2)
    return logits.masked_fill(memory.padding[:, None, None], float("-inf")).softmax(-1).transpose(0, 1)


def _wide(weights: Tensor) -> Tensor:
    """The weights in single precision at least."""
    return weights.to(torch.promote_types(weights.dtype, torch.float32))
