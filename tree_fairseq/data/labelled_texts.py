"""Texts and, if known, what is to be told of them, as a fairseq dataset."""

from __future__ import annotations

from typing import Callable, Sequence

import numpy as np
import torch
from fairseq.data import Dictionary, data_utils
from torch import Tensor

from tree_fairseq.data.wrapped_pairs import KeepsRemainder


class LabelledTexts(KeepsRemainder):
    """Texts with targets: classes from 0, or numbers.

    Args:
        tokens: of each text, as they are read
        lengths: how many of them are read, from the first, ``[texts]`` int64
        dictionary: of the tokens
        targets: lines of tokens that tell the target of each text; None where it is not known
        read_target: the target that such a line tells, and its number: an int for a class, a float for a number
        shuffle: whether texts of the same length come in random order
    """

    # A test set is classified to its last line; a text that is too long to be trained on is an error of the task's.
    keep_remainder = True

    def __init__(
        self,
        tokens: Sequence[Tensor],
        lengths: np.ndarray,
        dictionary: Dictionary,
        targets: Sequence[Tensor] | None = None,
        read_target: Callable[[Tensor, int], int | float] | None = None,
        shuffle: bool = False,
    ):
        self.tokens = tokens
        self.sizes = lengths
        self.dictionary = dictionary
        self.targets = targets
        self.read_target = read_target
        self.shuffle = shuffle

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, index: int) -> dict:
        """``id``, ``source`` ``[N]`` int64 and ``target``, or None."""
        return {
            "id": index,
            "source": self.tokens[index][: int(self.sizes[index])].long(),
            "target": None if self.targets is None else self.read_target(self.targets[index], index),
        }

    def collater(self, samples: list[dict], pad_to_length: dict | None = None) -> dict:
        """Stacks texts, the longest first, as recurrent encoders want them.

        Returns:
            ``id`` ``[B]``, ``nsentences``, ``ntokens``; ``net_input`` with ``src_tokens`` ``[B, N]``, padded on the right, and
            ``src_lengths`` ``[B]``; ``target`` ``[B]``, int64 classes from 0 or float32 numbers, or None
        """
        if not samples:
            return {}
        samples = sorted(samples, key=lambda sample: -len(sample["source"]))
        sources = [sample["source"] for sample in samples]
        lengths = torch.tensor([len(source) for source in sources])
        return {
            "id": torch.tensor([sample["id"] for sample in samples]),
            "nsentences": len(samples),
            "ntokens": int(lengths.sum()),
            "net_input": {"src_tokens": data_utils.collate_tokens(sources, self.dictionary.pad()), "src_lengths": lengths},
            "target": None if samples[0]["target"] is None else torch.tensor([sample["target"] for sample in samples]),
        }

    def num_tokens(self, index: int) -> int:
        """Tokens of a text."""
        return int(self.sizes[index])

    def num_tokens_vec(self, indices: np.ndarray) -> np.ndarray:
        """As :meth:`num_tokens`, for many texts."""
        return self.sizes[indices]

    def size(self, index: int) -> int:
        """Tokens of a text."""
        return int(self.sizes[index])

    def ordered_indices(self) -> np.ndarray:
        """The texts by length."""
        order = np.random.permutation(len(self)) if self.shuffle else np.arange(len(self))
        return order[np.argsort(self.sizes[order], kind="stable")]

    @property
    def supports_prefetch(self) -> bool:
        """Whether token files want to be read ahead, as those of ``--dataset-impl cached`` do."""
        return any(getattr(tokens, "supports_prefetch", False) for tokens in (self.tokens, self.targets))

    def prefetch(self, indices: Sequence[int]) -> None:
        """Reads token files ahead."""
        for tokens in (self.tokens, self.targets):
            if getattr(tokens, "supports_prefetch", False):
                tokens.prefetch(indices)
