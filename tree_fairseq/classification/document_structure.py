"""Documents of several sentences: where the leaves of their rows lie in a document.

A row holds one sentence, or a few of one document; R rows of N leaves make B documents of at most X leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from tree_fairseq.tree_transformer.tree_structure import TreeStructure


@dataclass(frozen=True)
class Placement:
    """The leaves of R rows, laid out one after another in B documents."""

    source: Tensor  # ``[B, X]`` int64, the leaf of rows, in flattened ``[N, R]``, that each place holds; 0 at padding
    target: Tensor  # ``[N, R]`` int64, the place, in flattened ``[B, X]``, of each leaf; 0 at padding
    padding: Tensor  # ``[B, X]`` bool, true at padding

    @classmethod
    def build(cls, real: Tensor, document: Tensor, num_documents: int, width: int) -> Placement:
        """Lays out the leaves ``real`` ``[R, N]`` that are not padding, row by row; ``document`` is ``[R]``.

        ``num_documents`` is B, and ``width`` X.
        """
        length = document.new_zeros(num_documents).index_add(0, document, real.sum(1))
        earlier = length.cumsum(0) - length  # B, leaves in the documents before
        column = real.flatten().cumsum(0).view_as(real) - 1 - earlier.index_select(0, document).unsqueeze(1)
        place, end = document.unsqueeze(1) * width + column, num_documents * width
        flat = torch.arange(real.numel(), device=real.device).view(real.shape[::-1])  # N x R
        source = document.new_zeros(end + 1).scatter(0, place.masked_fill(~real, end).flatten(), flat.t().flatten())
        padding = torch.arange(width, device=real.device) >= length.unsqueeze(1)
        target = place.masked_fill(~real, 0).t().contiguous()
        return cls(source[:end].view(num_documents, width), target, padding)

    @property
    def attention_bias(self) -> Tensor:
        """``[B, 1, 1, X]`` float, -inf at padding."""
        bias = torch.zeros(self.padding.shape, device=self.padding.device)
        return bias.masked_fill(self.padding, float("-inf"))[:, None, None]

    def to_documents(self, rows: Tensor) -> Tensor:
        """Moves ``[N or more, R, ...]`` to ``[B, X, ...]``; padding gets arbitrary leaves."""
        return rows.flatten(0, 1).index_select(0, self.source.flatten()).unflatten(0, self.source.shape)

    def to_rows(self, documents: Tensor) -> Tensor:
        """Moves ``[B, X, ...]`` to ``[N, R, ...]``; padding gets arbitrary leaves."""
        return documents.flatten(0, 1).index_select(0, self.target.flatten()).unflatten(0, self.target.shape)


class DocumentStructure(NamedTuple):
    """Documents whose leaves attend beyond their row."""

    rows: TreeStructure  # the trees of the rows, with the attention masks within them
    leaves: Placement  # the leaves of each document

    @property
    def padding(self) -> Tensor:
        """``[R, S]`` bool, true at padding."""
        return self.rows.padding


def unpack(rows: Tensor, places: Tensor) -> Tensor:
    """Takes the states of sentences ``[R, N or M, D]``, zero at padding, from rows ``[P, N or M, D]``."""
    padded = functional.pad(rows.flatten(0, 1), (0, 0, 0, 1))
    return padded.index_select(0, places.flatten()).unflatten(0, places.shape)
