"""What data sets of this package share: pairs wrap fairseq's, and all go through a test set to its last line."""

from __future__ import annotations

import numpy as np
from fairseq.data import BaseWrapperDataset, FairseqDataset, LanguagePairDataset


class KeepsRemainder(FairseqDataset):
    """A data set that need not drop its last examples; stands before other data sets among the bases of a class.

    Attributes:
        keep_remainder: keep the examples that are left over when all batches but the last have a size
            that divides as asked for; fairseq drops them, of sorted sentences the longest
    """

    keep_remainder = False

    def batch_by_size(
        self,
        indices: np.ndarray,
        max_tokens: int | None = None,
        max_sentences: int | None = None,
        required_batch_size_multiple: int = 1,
    ) -> list[np.ndarray]:
        """Cuts sorted examples into batches, by their tokens as counted here."""
        if not len(indices):
            return []
        # Not a wrapped data set's: it would count by itself.
        batches = FairseqDataset.batch_by_size(self, indices, max_tokens, max_sentences, required_batch_size_multiple)
        rest = indices[sum(map(len, batches)) :]
        return [*batches, rest] if self.keep_remainder and len(rest) else batches


class WrappedPairs(KeepsRemainder, BaseWrapperDataset):
    """A :class:`LanguagePairDataset` whose batches get something added.

    Args:
        dataset: pairs of sentences
        keep_remainder: see :class:`KeepsRemainder`
    """

    def __init__(self, dataset: LanguagePairDataset, keep_remainder: bool = False):
        super().__init__(dataset)
        self.keep_remainder = keep_remainder

    @property
    def src(self):
        """Token data set of the sources; fairseq-generate asks it for the original text."""
        return self.dataset.src

    @property
    def tgt(self):
        """Token data set of the targets, or None."""
        return self.dataset.tgt

    def filter_indices_by_size(self, indices: np.ndarray, max_sizes):
        """By the lengths of the wrapped dataset: limits on positions concern tokens."""
        return self.dataset.filter_indices_by_size(indices, max_sizes)
