"""Views of attention: the nodes of a Tree-Transformer over their subtrees, and decoders over words, nodes and phrases.

All weights are means over heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import torch
from torch import Tensor

from tree_fairseq.explorer.attention_records import CrossAttention, NodeAttention
from tree_fairseq.explorer.document import matrix_record
from tree_fairseq.treeformer.cells import ChartCells

PHRASES_SHOWN = 40
"""Phrases of a chart that a view of cross-attention has: those with most attention in all layers."""


class TreeNodes:
    """The nodes that a model reads, as spans of a sentence's tokens.

    Args:
        trees: ``label``, ``start``, ``end`` and ``depth`` ``[R, M]`` int64 of R trees, as
            :func:`tree_fairseq.nn.tree_batch.collate_trees` makes them
        labels: the dictionary of labels
        offsets: the place of each tree's first token in the sentence, ``R`` integers
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


def cross_attention_view(
    layers: Sequence[CrossAttention], rows: Sequence[str], items: Sequence[str], nodes: Optional[TreeNodes]
) -> Optional[dict[str, Any]]:
    """The attention of target tokens to the memory of a sentence, by layer.

    Args:
        layers: of the decoder
        rows: target tokens
        items: all source tokens, with EOS if the model reads one
        nodes: of the source's trees, None if it has none

    Returns:
        the view, or None if the places of the memory are not known: of an encoder with a memory of its own
    """
    if not layers:
        return None
    weights = torch.stack([layer.weights for layer in layers]).cpu()[:, : len(rows)]  # layers x T x S
    columns = [
        {"kind": "eos" if item == "</s>" and place == len(items) - 1 else "word", "label": item}
        | {"start": place, "end": place + 1}
        for place, item in enumerate(items)
    ]
    if isinstance(cells := layers[0].structure, ChartCells):
        columns, places = _columns_of_cells(cells, columns, weights)
        weights = weights[:, :, places]
    elif nodes is not None and weights.size(2) == len(items) + len(nodes):
        columns += [
            {"kind": "node", "label": node["label"], "start": node["start"], "end": node["end"]}
            for node in nodes.records
        ]
    if weights.size(2) != len(columns):
        return None
    return {"rows": list(rows), "columns": columns, "weights": matrix_record(weights)}


def _columns_of_cells(cells: ChartCells, tokens: list[dict], weights: Tensor) -> tuple[list[dict], Tensor]:
    """Columns of all tokens and of the phrases with most attention, and their places among the cells."""
    start, length, used = cells.start.cpu(), cells.length.cpu(), cells.places(0).cpu()
    words, phrases = used[length[used] == 1], used[length[used] > 1]
    most = weights.sum((0, 1))[phrases].topk(min(PHRASES_SHOWN, len(phrases))).indices.sort().values
    places = torch.cat([words, phrases[most]])
    columns = list(tokens)
    for place in places[len(words) :].tolist():
        first, last = int(start[place]), int(start[place] + length[place])
        label = " ".join(token["label"] for token in tokens[first:last])
        columns.append({"kind": "phrase", "label": label, "start": first, "end": last})
    return columns, places
