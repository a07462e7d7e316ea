"""Views of a Tree-Transformer: the attention of nodes to their subtrees, and nodes as columns of cross-attention.

All weights are means over heads. The weights of nodes are recorded by hooks while the explorer reads a sentence;
training and generation never compute them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Optional

import torch
from torch import Tensor

from tree_fairseq.drawing.views import Explained, Views, matrix_record, register_views
from tree_fairseq.tree_transformer.model import TreeSelfAttention


class NodeAttention(NamedTuple):
    """The attention of the nodes of R trees in one encoder layer."""

    weights: Tensor  # R x M x S, the mean over heads
    heads: int
    num_leaves: int  # N of the S items, which come before the nodes


class TreeNodes:
    """The nodes that a model reads, as spans of a sentence's tokens.

    ``trees`` come from :func:`tree_fairseq.nn.tree_batch.collate_trees`; ``offsets`` are the places of the first tokens
    of R trees in the sentence.
    """

    def __init__(self, trees: dict[str, Tensor], labels, offsets: Sequence[int] = (0,)):
        self.records: list[dict[str, Any]] = []
        self.rows: list[tuple[int, int]] = []  # the row and the place in it of each node
        columns = [trees[name].tolist() for name in ("label", "start", "end", "depth")]
        for row, (offset, *values) in enumerate(zip(offsets, *columns)):
            path: list[int] = []  # the node and those above it
            for place, (label, start, end, depth) in enumerate(zip(*values)):
                if end <= start:
                    continue
                del path[depth:]
                parent = path[-1] if path else -1
                path.append(len(self.records))
                span = {"start": start + offset, "end": end + offset}
                self.records.append({"label": labels[label], **span, "parent": parent})
                self.rows.append((row, place))

    def __len__(self) -> int:
        return len(self.records)


@contextlib.contextmanager
def recorded_nodes(model: torch.nn.Module) -> Iterator[list[NodeAttention]]:
    """Yields a list that a forward pass of the model fills with the attention of each encoder layer."""
    record: list[NodeAttention] = []

    def keep(module: TreeSelfAttention, args: tuple, kwargs: dict) -> None:
        given = dict(zip(("query", "key", "value", "key_padding_mask"), args), **kwargs)
        # Documents keep the structure of their rows beside more.
        structure = getattr(given["key_padding_mask"], "rows", given["key_padding_mask"])
        states = given["query"][: structure.padding.size(1)]
        weights = module.weights_of_nodes(states, structure)  # R x H x M x S
        weights = weights.to(torch.promote_types(weights.dtype, torch.float32))
        record.append(NodeAttention(weights.mean(1), module.num_heads, structure.num_leaves))

    with contextlib.ExitStack() as hooks:
        for module in model.modules():
            if isinstance(module, TreeSelfAttention):
                hooks.enter_context(module.register_forward_pre_hook(keep, with_kwargs=True))
        yield record


def accumulation_view(
    layers: Sequence[NodeAttention], nodes: TreeNodes, tokens: int, offsets: Sequence[int] = (0,)
) -> Optional[dict[str, Any]]:
    """The attention of each node over the tokens and nodes of its subtree, by layer; None without nodes.

    ``tokens`` is the number of tokens without EOS, ``offsets`` as in :class:`TreeNodes`.
    """
    if not layers or not len(nodes):
        return None
    weights = layers[0].weights.new_zeros(len(layers), len(nodes), tokens + len(nodes), device="cpu")
    row, place = torch.tensor(nodes.rows).unbind(1)
    for layer, attention in enumerate(layers):
        found = attention.weights.cpu()
        for own, offset in enumerate(offsets):
            queries = (row == own).nonzero().squeeze(1)
            if len(queries):
                read = found[own, place[queries]]  # its nodes x S
                width = min(attention.num_leaves, tokens - offset)
                weights[layer, queries, offset : offset + width] = read[:, :width]
                weights[layer, queries[:, None], tokens + queries] = read[:, attention.num_leaves + place[queries]]
    return {"nodes": nodes.records, "layers": len(layers), "heads": layers[0].heads, "weights": matrix_record(weights)}


@register_views
class TreeTransformerViews(Views):
    """The view of accumulation, of translation and classification alike."""

    method = "tree_transformer"
    record: list[NodeAttention] = []

    @classmethod
    def fits(cls, task: Any, models: Sequence[torch.nn.Module], generator: Any) -> bool:
        return any(isinstance(module, TreeSelfAttention) for module in models[0].modules())

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        with recorded_nodes(self.models[0]) as self.record:
            yield

    def columns(self, explained: Explained) -> Optional[tuple[list[dict[str, Any]], None]]:
        nodes, _ = self._nodes(explained.inputs)
        spans = [{name: node[name] for name in ("label", "start", "end")} for node in nodes.records]
        return [{"kind": "node", **span} for span in spans], None

    def views(self, explained: Explained) -> dict[str, Any]:
        nodes, offsets = self._nodes(explained.inputs)
        # Where leaves attend beyond their sentence, several sentences share a row.
        if len(offsets) > 1 and getattr(self.models[0].encoder, "join_leaves", False):
            return {}
        return {"accumulation": accumulation_view(self.record, nodes, len(explained.tokens), offsets)}

    def _nodes(self, inputs: dict[str, Any]) -> tuple[TreeNodes, list[int]]:
        if "source_spans" in inputs:
            return TreeNodes(inputs["source_spans"], self.task.source_side.labels), [0]
        trees = inputs["sentence_trees"]
        lengths = trees["tokens"].ne(self.task.source_dictionary.pad()).sum(1)
        offsets = (lengths.cumsum(0) - lengths).tolist()
        return TreeNodes(trees, self.task.label_dictionary, offsets), offsets
