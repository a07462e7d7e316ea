"""Sentences that share rows, against lists of them."""

from __future__ import annotations

from hypothesis import given, settings

from tests.classification.random_documents import PAD, Documents, lengths
from tree_fairseq.classification.document_structure import Packing


def build(documents: Documents) -> Packing:
    rows = documents.rows
    return Packing.build(rows["tokens"].ne(PAD), rows["end"] > rows["start"], documents.document)


@settings(max_examples=50, deadline=None)
@given(sizes=lengths())
def test_rows_hold_the_sentences_one_after_the_other(sizes):
    documents = Documents(sizes, extra=1)
    width, depth = documents.rows["tokens"].size(1), documents.rows["label"].size(1)
    shared = build(documents)
    packed = shared.pack(documents.rows, PAD, PAD)
    assert packed["tokens"].shape == (len(shared.document), width) and packed["label"].shape == (
        len(shared.document),
        depth,
    )
    rows = []
    for b, document in enumerate(documents.documents):
        row = None
        for tokens, tree in document:
            if row is None or len(row[1]) + len(tokens) > width or len(row[2]) + len(tree) > depth:
                row = (b, [], [])
                rows.append(row)
            shift = len(row[1])
            row[1].extend(tokens.tolist())
            row[2].extend(
                zip(
                    tree.label.tolist(), (tree.start + shift).tolist(), (tree.end + shift).tolist(), tree.depth.tolist()
                )
            )
    assert shared.document.tolist() == [b for b, _, _ in rows]
    for p, (_, tokens, nodes) in enumerate(rows):
        assert packed["tokens"][p].tolist() == tokens + [PAD] * (width - len(tokens))
        found = list(zip(*(packed[name][p].tolist() for name in ("label", "start", "end", "depth"))))
        assert found == nodes + [(PAD, 0, 0, 0)] * (depth - len(nodes))


def test_short_sentences_share():
    shared = build(Documents([[6, 1, 2, 3], [2, 2]]))
    assert shared.document.tolist() == [0, 0, 1]
    assert shared.first_leaf.tolist() == [0, 0, 1, 3, 0, 2]
