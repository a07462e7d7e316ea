"""Insertions into whole batches against those of one tree after the other."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tree_insertion.partial_trees import KEEP, PAD, ChangedTrees, batches, insert, inserted, rows, same
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.tree_insertion.target import KINDS


def draw_answers(batch, seed: int, share: float) -> tuple[torch.Tensor, torch.Tensor]:
    """All slots of a batch, and what to insert in some of them."""
    generator = torch.Generator().manual_seed(seed)
    slots = batch["slots"]
    answers = torch.randint(5, 10, slots.shape, generator=generator)
    return slots, answers.masked_fill(torch.rand(slots.shape, generator=generator) >= share, KEEP)


def padded(rows_of_labels, rows_of_parents, rows_of_sources) -> ChangedTrees:
    width = max(map(len, rows_of_labels))
    made = []
    for values, filling in ((rows_of_labels, PAD), (rows_of_parents, -1), (rows_of_sources, -1)):
        made.append(torch.tensor([[*row, *[filling] * (width - len(row))] for row in values]))
    return ChangedTrees(*made)


def insert_row_by_row(batch, slots, answers) -> ChangedTrees:
    width = KINDS * batch["labels"].size(1)
    labels, new_parents, old = [], [], []
    for row, parents in enumerate(rows(batch)):
        chosen = [
            (slot % width, answer)
            for slot, answer in zip(slots.tolist(), answers.tolist())
            if slot // width == row and answer != KEEP
        ]
        sources, after = insert(np.array(parents), [slot for slot, _ in chosen])
        names = batch["labels"][row, : len(parents)].tolist() + [answer for _, answer in chosen]
        labels.append([names[source] for source in sources])
        new_parents.append(after.tolist())
        old.append([source if source < len(parents) else -1 for source in sources.tolist()])
    return padded(labels, new_parents, old)


@settings(max_examples=60, deadline=None)
@given(batch=batches(), seed=st.integers(0, 2**32 - 1), share=st.sampled_from([0.0, 0.2, 0.5, 1.0]))
def test_insertions_are_those_row_by_row(batch, seed, share):
    slots, answers = draw_answers(batch, seed, share)
    found, expected = inserted(batch, slots, answers), insert_row_by_row(batch, slots, answers)
    for ours, theirs in zip_equal(found, expected):
        same(ours, theirs)
