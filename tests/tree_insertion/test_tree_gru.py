"""Parents and previous siblings of the columns of a bracketed sequence, compared with a stack."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from tree_fairseq.tree_insertion.tree_gru import bracket_links

FIRST = 10


def links_by_stack(tokens: list[int]) -> tuple[list[int], list[int]]:
    """Finds previous siblings and parents token by token, with a stack."""
    previous, parents = [], []
    opened: list[int] = []  # columns of the brackets that are open
    for column, token in enumerate(tokens):
        before = column - 1
        if token >= FIRST and token % 2 == 0:
            opened.append(column)
        elif token >= FIRST and opened:
            before = opened.pop() - 1
        previous.append(before)
        parents.append(opened[-1] - 1 if opened else -1)
    return previous, parents


@given(st.lists(st.lists(st.sampled_from([4, 5, 10, 11, 12, 13]), min_size=9, max_size=9), min_size=1, max_size=3))
def test_links_are_those_of_a_stack(rows):
    rows = [[2, *row] for row in rows]
    # A closing bracket that closes none is like a label, for what follows it, too.
    previous, parents = bracket_links(torch.tensor(rows), FIRST)
    expected = [links_by_stack(row) for row in rows]
    assert previous.tolist() == [links[0] for links in expected]
    assert parents.tolist() == [links[1] for links in expected]
    for column in range(1, 11):
        last = bracket_links(torch.tensor(rows)[:, :column], FIRST, last=True)
        assert [part.squeeze(1).tolist() for part in last] == [
            [links[side][column - 1] for links in expected] for side in (0, 1)
        ]
