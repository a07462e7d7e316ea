"""Views of a Treeformer: its chart, split points and induced tree, and phrases as columns of cross-attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import torch
from torch import Tensor

from tree_fairseq.drawing.views import Explained, Views, matrix_record, register_views, tree_record
from tree_fairseq.treeformer.induction import sentence_splits
from tree_fairseq.treeformer.levels import ChartCells
from tree_fairseq.treeformer.model import TreeformerEncoder

PHRASES_SHOWN = 40  # phrases of a chart that a view of cross-attention has: those with most attention in all layers

_DIGITS = 3  # of the weights of split points


@register_views
class TreeformerViews(Views):
    """The view of the chart; the weights of split points are means over an ensemble."""

    method = "treeformer"

    @classmethod
    def fits(cls, task: Any, models: Sequence[torch.nn.Module], generator: Any) -> bool:
        return all(isinstance(getattr(model, "encoder", None), TreeformerEncoder) for model in models)

    def columns(self, explained: Explained) -> Optional[tuple[list[dict[str, Any]], Tensor]]:
        """Returns columns of the phrases with most attention, and the places of words and phrases among the cells."""
        cells = explained.cross[0].structure if explained.cross else None
        if not isinstance(cells, ChartCells):
            return None
        start, length, used = cells.start.cpu(), cells.length.cpu(), cells.places(0).cpu()
        words, phrases = used[length[used] == 1], used[length[used] > 1]
        weights = sum(layer.weights.cpu()[: len(explained.rows)].sum(0) for layer in explained.cross)  # S
        most = weights[phrases].topk(min(PHRASES_SHOWN, len(phrases))).indices.sort().values
        columns = []
        for place in phrases[most].tolist():
            first, last = int(start[place]), int(start[place] + length[place])
            label = " ".join(explained.items[first:last])
            columns.append({"kind": "phrase", "label": label, "start": first, "end": last})
        return columns, torch.cat([words, phrases[most]])

    @torch.no_grad()
    def views(self, explained: Explained) -> dict[str, Any]:
        if not explained.tokens:
            return {}
        encoders = [model.encoder for model in self.models]
        source, pad = explained.inputs["src_tokens"], encoders[0].dictionary.pad()
        [splits] = sentence_splits(encoders, source, pad)
        cells = encoders[0].chart.cells(source.eq(pad))
        used = cells.places(0)
        start, length = cells.start[used], cells.length[used]
        spans = list(zip(start.tolist(), (start + length).tolist()))
        attention = None
        if explained.cross and isinstance(explained.cross[-1].structure, ChartCells):
            attention = matrix_record(explained.cross[-1].weights[: len(explained.rows), used])
        weights = [splits.weights(start, end) for start, end in spans if end - start >= 2]
        chart = {
            "tokens": list(explained.items),
            "height": cells.height,
            "cells": [list(span) for span in spans],
            "splits": None,
            "split_weights": [[round(float(weight), _DIGITS) for weight in row] for row in weights],
            "tree": tree_record((splits.tree(explained.pieces),)),
            "phrase_attention": attention,
            "rows": explained.rows,
        }
        return {"chart": chart}
