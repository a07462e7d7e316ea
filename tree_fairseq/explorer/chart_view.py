"""The view of a Treeformer's chart: its cells, their split points, the induced tree and attention to phrases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import torch
from torch import Tensor

from tree_fairseq.explorer.attention_records import CrossAttention
from tree_fairseq.explorer.document import matrix_record, tree_record
from tree_fairseq.explorer.sentences import words_of
from tree_fairseq.treeformer.cells import ChartCells
from tree_fairseq.treeformer.induction import sentence_splits
from tree_fairseq.treeformer.model import TreeformerEncoder

_DIGITS = 3  # of the weights of split points


@torch.no_grad()
def chart_view(
    encoders: Sequence[TreeformerEncoder],
    src_tokens: Tensor,
    items: Sequence[str],
    rows: Sequence[str],
    cross: Sequence[CrossAttention],
) -> Optional[dict[str, Any]]:
    """The chart of one sentence.

    Args:
        encoders: of an ensemble, whose weights of split points are averaged
        src_tokens: ``[1, N]``, the sentence with EOS and without padding
        items: its tokens, with EOS
        rows: the tokens of the hypothesis
        cross: the attention of the decoder's layers; the view has that of the last layer

    Returns:
        the view; None for a sentence without words
    """
    tokens = list(items[:-1])
    if not tokens:
        return None
    encoder = encoders[0]
    pad = encoder.dictionary.pad()
    [splits] = sentence_splits(encoders, src_tokens, pad)
    cells = encoder.chart.cells(src_tokens.eq(pad))
    used = cells.places(0)
    start, length = cells.start[used], cells.length[used]
    spans = list(zip(start.tolist(), (start + length).tolist()))
    attention = None
    if cross and isinstance(cross[-1].structure, ChartCells):
        attention = matrix_record(cross[-1].weights[: len(rows), used])
    tree = splits.tree(words_of(tokens).pieces)
    return {
        "tokens": list(items),
        "height": cells.height,
        "cells": [list(span) for span in spans],
        "splits": None,
        "split_weights": [_rounded(splits.weights(start, end)) for start, end in spans if end - start >= 2],
        "tree": tree_record((tree,)),
        "phrase_attention": attention,
        "rows": list(rows),
    }


def _rounded(weights) -> list[float]:
    return [round(float(weight), _DIGITS) for weight in weights]
