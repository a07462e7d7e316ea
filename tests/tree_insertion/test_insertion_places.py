"""Insertions into all sequences of a batch, against lists."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from tree_fairseq.tree_insertion.sequence_insertion import InsertionPlaces

PAD = 1
# Of each token, and what is inserted after it, if anything.
ROWS = st.lists(
    st.lists(st.tuples(st.integers(2, 9), st.none() | st.integers(2, 9)), min_size=1, max_size=6),
    min_size=1,
    max_size=4,
)


@given(ROWS)
def test_tokens_are_put_after_their_slots(rows):
    width = max(map(len, rows))
    tokens = torch.tensor([[token for token, _ in row] + [PAD] * (width - len(row)) for row in rows])
    inserted = [
        (width * place + column, new)
        for place, row in enumerate(rows)
        for column, (_, new) in enumerate(row)
        if new is not None
    ]
    slots, new = (torch.tensor([pair[side] for pair in inserted], dtype=torch.long) for side in (0, 1))
    places = InsertionPlaces.of(tokens != PAD, slots)
    expected = [[token for pair in row for token in pair if token is not None] for row in rows]
    longest = max(map(len, expected))
    assert places.put(tokens, new, PAD).tolist() == [row + [PAD] * (longest - len(row)) for row in expected]
    flags = places.put(torch.zeros(tokens.shape), torch.ones(len(new)), 7.0)
    assert flags.sum(1).tolist() == [
        sum(pair[1] is not None for pair in row) + 7.0 * (longest - len(out)) for row, out in zip(rows, expected)
    ]
