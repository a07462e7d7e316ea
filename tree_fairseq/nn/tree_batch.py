"""The one batch type of constituency trees.

A batch of trees travels in ``net_input`` as a plain dict of tensors, because fairseq moves dicts to the GPU and leaves
dataclasses behind. Inside a model it is viewed as a :class:`TreeBatch`. Shape letters: :mod:`tree_fairseq.nn`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairseq import utils
from torch import Tensor

from tree_fairseq.nn.branches import Branches


@dataclass(frozen=True)
class TreeBatch:
    """B forests over a padded batch of leaves.

    Attributes:
        label: ``[B, M]`` int64, ids in the label dictionary
        start: ``[B, M]`` int64, column of the first leaf of each span
        end: ``[B, M]`` int64, one past the column of the last leaf; equals ``start`` at padding
        depth: ``[B, M]`` int64, 0 at a root
        is_node: ``[B, M]`` bool, false at padding
        is_leaf: ``[B, N]`` bool, false at padding; true at EOS, which no node covers
        first_leaf: ``[B, 1]`` int64, column of the first leaf of each sentence
        listed: the branches as they were collated, with columns of leaves in sentences without padding; None if they
            were not listed
    """

    label: Tensor
    start: Tensor
    end: Tensor
    depth: Tensor
    is_node: Tensor
    is_leaf: Tensor
    first_leaf: Tensor
    listed: Branches | None = None

    @classmethod
    def from_net_input(cls, source_spans: dict[str, Any], src_tokens: Tensor, pad: int) -> TreeBatch:
        """A batch from the dict of a collater and tokens ``[B, N]``, padded with ``pad`` on either side.

        The dict has ``label``, ``start``, ``end`` and ``depth``, ``[B, M]`` int64, and ``branches``, the lists of
        :class:`Branches` by name; spans are relative to the sentence.
        """
        is_leaf = src_tokens.ne(pad)
        # Sentences that are padded on the left begin later. No other place has to know it.
        first_leaf = is_leaf.long().argmax(dim=1, keepdim=True)
        return cls(
            label=source_spans["label"],
            start=source_spans["start"] + first_leaf,
            end=source_spans["end"] + first_leaf,
            depth=source_spans["depth"],
            is_node=source_spans["end"] > source_spans["start"],
            is_leaf=is_leaf,
            first_leaf=first_leaf,
            listed=Branches(**source_spans["branches"]) if "branches" in source_spans else None,
        )

    def branches(self) -> Branches:
        """The branches of the trees, which are listed here, on the CPU, if the batch does not have them."""
        if self.listed is not None:
            return self.listed
        spans = self.start - self.first_leaf, self.end - self.first_leaf, self.depth
        listed = Branches.list(*(values.cpu().numpy() for values in spans))
        return Branches(**utils.apply_to_sample(lambda each: each.to(self.start.device), listed.as_dict()))
