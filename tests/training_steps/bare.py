"""Folders for training steps whose data begin with examples that have hardly anything."""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path
from unittest import mock

from tests.end_to_end import sentences, tiny_classes, tiny_corpus, tiny_programs
from tests.training_steps.cases import Folders

BARE = 5
"""Examples of a kind, a whole batch of them."""


class BareFolders(Folders):
    """Folders whose training data begin with blank lines, single words and trees of one node, as far as they can."""

    def __call__(self, name: str) -> Path:
        make_tree, make_document = tiny_classes.make_tree, tiny_classes.make_document
        trees, documents, rows = (itertools.count() for _ in range(3))
        bare_pairs = _pairs(tiny_corpus.make_pairs, [("", ""), ("(VBZ sings)", "singt")])
        with contextlib.ExitStack() as stack:
            for owner, function, bare in (
                (tiny_corpus, "make_pairs", bare_pairs),
                (tiny_programs, "make_pairs", _pairs(tiny_programs.make_pairs, [("rivers", "rivers")])),
                (tiny_classes, "make_tree", lambda *a: "(1 good)" if next(trees) < BARE else make_tree(*a)),
                (tiny_classes, "make_document", lambda *a: "it\tpos" if next(documents) < BARE else make_document(*a)),
                (sentences, "row", _rows(sentences.row, rows)),
            ):
                stack.enter_context(mock.patch.object(owner, function, bare))
            return super().__call__(name)


def _rows(make, numbers):
    """A maker of rows, the first of which have single words."""

    def row(chooser, kind: str) -> str:
        *texts, label = make(chooser, kind).split("\t")
        return "\t".join([*("it" if next(numbers) < 2 * BARE else text for text in texts), label])

    return row


def _pairs(make, bare):
    """A maker of pairs, the first of which are bare ones."""

    def make_pairs(count: int, seed: int):
        pairs = make(count, seed)
        if count > BARE * len(bare):  # the data to train on
            kind = type(pairs[0])
            pairs[: BARE * len(bare)] = [kind(*pair) for pair in bare for _ in range(BARE)]
        return pairs

    return make_pairs
