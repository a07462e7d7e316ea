"""Sentences that share rows, against lists of them."""

from __future__ import annotations

from hypothesis import given, settings

from tests.classification.random_documents import PAD, Documents, lengths


@settings(max_examples=50, deadline=None)
@given(sizes=lengths())
def test_rows_hold_the_sentences_one_after_the_other(sizes):
    documents = Documents(sizes, extra=1)
    width, depth = max(map(max, sizes)), max(len(tree) for own in documents.documents for _, tree in own)
    if "packed" not in documents.rows:
        assert all(len(own) == 1 for own in sizes)
        return
    packed = documents.rows["packed"]
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
    assert packed["document"].tolist() == [b for b, _, _ in rows]
    assert packed["most_leaves"] == max(map(sum, sizes))
    for p, (_, tokens, nodes) in enumerate(rows):
        assert packed["tokens"][p].tolist() == tokens + [PAD] * (packed["tokens"].size(1) - len(tokens))
        found = list(zip(*(packed[name][p].tolist() for name in ("label", "start", "end", "depth"))))
        assert found == nodes + [(PAD, 0, 0, 0)] * (packed["label"].size(1) - len(nodes))


def test_short_sentences_share():
    packed = Documents([[6, 1, 2, 3], [2, 2]]).rows["packed"]
    assert packed["document"].tolist() == [0, 0, 1]
    # Of each sentence, counted in rows of six.
    assert packed["leaves"][:, 0].tolist() == [0, 6, 7, 9, 12, 14]
