"""Where positions of sentences stand in their documents."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tree_fairseq.classification.document_structure import Placement


@settings(max_examples=30, deadline=None)
@given(
    documents=st.lists(
        st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=3), min_size=1, max_size=3
    ),
    seed=st.integers(0, 99),
)
def test_real_positions_follow_one_another(documents, seed):
    """Whatever is real of rows of four positions; a document may even have nothing that is."""
    torch.manual_seed(seed)
    rows = [row for document in documents for row in document]
    document = torch.tensor([b for b, own in enumerate(documents) for _ in own])
    width = max(sum(map(sum, own)) for own in documents)
    placement = Placement.build(torch.tensor(rows), document, len(documents), width)
    states = torch.randn(5, len(rows), 2)  # one position more than are laid out
    laid_out = placement.to_documents(states)
    expected = [[] for _ in documents]
    for r, row in enumerate(rows):
        for p in (p for p, real in enumerate(row) if real):
            assert placement.target[p, r] == document[r] * width + len(expected[document[r]])
            expected[document[r]].append(states[p, r])
    width = max(map(len, expected))
    assert laid_out.shape == (len(documents), width, 2)
    for b, own in enumerate(expected):
        assert placement.padding[b].tolist() == [False] * len(own) + [True] * (width - len(own))
        assert placement.attention_bias[b, 0, 0].tolist() == [0.0] * len(own) + [float("-inf")] * (width - len(own))
        assert all(torch.equal(laid_out[b, k], state) for k, state in enumerate(own))
    if width:
        real = torch.tensor(rows).T
        assert torch.equal(placement.to_rows(laid_out)[real], states[:4][real])
