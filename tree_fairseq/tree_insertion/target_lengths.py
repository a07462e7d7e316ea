"""The longest target trees that a model can learn from: it may have positions for so many labels and brackets."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tree_fairseq.errors import InputError
from tree_fairseq.tree_insertion.store import InsertionStore

logger = logging.getLogger(__name__)

_SKIP = "--skip-invalid-size-inputs-valid-test"


@dataclass(frozen=True)
class TargetLimit:
    """The positions of a decoder that reads trees as sequences of labels and brackets.

    Attributes:
        positions: how many it has, ``--max-target-positions``
        added: how many of them are for tokens beside those of a tree, such as EOS
    """

    positions: int
    added: int

    @property
    def longest(self) -> int:
        """The largest number of labels and brackets of a tree."""
        return self.positions - self.added

    def check(self, split: str, stores: Sequence[InsertionStore], skips: bool) -> None:
        """Looks for trees of a split that are too long; ``skips`` says whether they are left out.

        If they are, this logs how many there are, else it raises InputError about the first one.
        """
        too_long = [np.flatnonzero(store.sizes > self.longest) for store in stores]
        count = sum(map(len, too_long))
        if not count:
            return
        store, line = next((store, int(found[0])) for store, found in zip(stores, too_long) if len(found))
        path = Path(store.prefix).with_suffix("")  # of the token files
        if skips:
            total = sum(map(len, stores))
            logger.warning(
                "[%s] %d of %d trees have more than %d labels and brackets (--max-target-positions %d) and are "
                "skipped; the first is %s, line %d",
                *(split, count, total, self.longest, self.positions, path, line + 1),
            )
            return
        lines = "1 line is" if count == 1 else f"{count} lines are"
        most = max(int(store.sizes.max(initial=0)) for store in stores) + self.added
        raise InputError(
            f"the tree has {store.sizes[line]} labels and brackets, and the model has positions for {self.longest} "
            f"(--max-target-positions {self.positions}; {lines} too long)",
            path,
            line + 1,
            hint=f"Train with --max-target-positions {most}, or skip them with {_SKIP}.",
        )
