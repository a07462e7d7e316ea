"""Moses entities as a parser sees them."""

from __future__ import annotations

import pytest
from sacremoses import MosesDetokenizer

from tree_fairseq.parsing.input_lines import unescape_entities


@pytest.mark.parametrize(
    ("word", "seen"),
    [
        ("&apos;s", "'s"),
        ("&quot;", '"'),
        ("n&apos;t", "n't"),
        ("&#91;", "["),
        ("&#93;", "]"),
        ("&#124;", "|"),
        ("&lt;b&gt;", "<b>"),
        ("&bar;", "|"),
        ("&amp;", "&"),
        ("plain", "plain"),
        ("AT&T", "AT&T"),
        ("&nbsp;", "&nbsp;"),
        ("&amp;lt;", "&lt;"),
    ],
)
def test_entities_become_characters(word, seen):
    assert unescape_entities(word) == seen


def test_equal_to_moses_own_inverse():
    detokenizer = MosesDetokenizer()
    for word in ("&apos;s", "&quot;", "&#91;x&#93;", "&#124;", "&lt;&gt;", "&amp;", "a&amp;b", "none"):
        assert unescape_entities(word) == detokenizer.unescape_xml(word)
