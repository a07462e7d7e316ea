"""The explorer's page as a file: one document, nothing from outside, every text escaped, and a limit of size."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
import zlib

import pytest

from tests.explorer.sample import sample_document
from tree_fairseq.explorer.page import page_html

HOSTILE = (
    '</script><script>window.broken = true</script><img src=x onerror="window.broken = true"> \u202eevil\u2028 &amp;'
)


@pytest.fixture(scope="module")
def document():
    return sample_document()


def embedded(page: str) -> dict:
    """The document in a page, with the list entries of its sentences."""
    return json.loads(re.search(r'<script type="application/json" id="document">(.*?)</script>', page, re.DOTALL)[1])


def unpacked(entry: dict) -> tuple[dict, bytes]:
    """What a list entry packs: the rest of the sentence, and the bytes of its matrices."""
    data = zlib.decompress(base64.b64decode(entry["packed"]))
    (length,) = struct.unpack("<I", data[:4])
    return json.loads(data[4 : 4 + length]), data[4 + length :]


def test_page_names_nothing_outside(document):
    page = page_html(document)
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", page)
    assert not re.search(r"@import|url\(", page)
    # Links to papers are in the script; the page loads nothing by itself.
    assert "innerHTML" not in page and "eval(" not in page


def test_policy_allows_this_script_and_this_style_alone(document):
    page = page_html(document)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)[1]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == rules["connect-src"] == rules["form-action"] == "'none'"
    for name, tag in [("script-src", "script"), ("style-src", "style")]:
        content = re.search(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)[1]
        assert rules[name] == "'sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() + "'"


def test_live_page_may_ask_its_own_server(document):
    assert "connect-src 'self';" in page_html({**document, "live": True})


def _with_hostile_texts(value: object, name: str = "") -> object:
    """A record whose every text is hostile, names of fields too; the numbers of matrices stay."""
    if isinstance(value, dict):
        return {key: _with_hostile_texts(part, key) for key, part in value.items()} | {HOSTILE: HOSTILE}
    if isinstance(value, list):
        return [_with_hostile_texts(part, name) for part in value]
    return HOSTILE if isinstance(value, str) and name != "data" else value


def test_no_text_ends_its_element(document):
    hostile = _with_hostile_texts(document)
    page = page_html(hostile)
    assert page.count("<script") == 2 and page.count("</script>") == 2 and "<img" not in page
    assert not re.search("[\u2028\u202e]", page.split('id="document">')[1].split("</script>")[0])
    assert [entry["source"] for entry in embedded(page)["sentences"]] == [HOSTILE] * len(document["sentences"])
    rest, _ = unpacked(embedded(page)["sentences"][0])
    assert HOSTILE in rest["systems"][0]["views"] or HOSTILE in rest["systems"][0]


def test_packed_sentences_have_all_fields_and_all_weights(document):
    entries = embedded(page_html(document))["sentences"]
    for entry, sentence in zip(entries, document["sentences"]):
        rest, matrices = unpacked(entry)
        assert entry["source"] == sentence["source"] and rest["tokens"] == sentence["tokens"]
        assert rest["parse"] == sentence["parse"]
        for packed, given in zip(rest["systems"], sentence["systems"]):
            assert set(packed["views"]) == set(given["views"])
            for name in ("accumulation", "cross_attention"):
                if name not in given["views"]:
                    continue
                weights, expected = packed["views"][name]["weights"], given["views"][name]["weights"]
                data = base64.b64decode(expected["data"])
                assert matrices[weights["offset"] : weights["offset"] + len(data)] == data
                assert weights["shape"] == expected["shape"] and weights["max"] == expected["max"]


def test_page_leaves_out_views_of_the_longest_sentences_and_says_so(document):
    whole = len(page_html(document).encode())
    limit = whole - 500
    page = page_html(document, limit=limit)
    assert len(page.encode()) <= limit
    entries = embedded(page)["sentences"]
    omitted = {
        entry["id"]: [system.get("omitted", []) for system in unpacked(entry)[0]["systems"]] for entry in entries
    }
    longest = max(document["sentences"], key=lambda sentence: len(sentence["tokens"]))
    assert any(omitted[longest["id"]])
    assert not any(any(names) for number, names in omitted.items() if number != longest["id"])


def test_page_of_200_sentences_is_under_two_megabytes():
    assert len(page_html(sample_document(200)).encode()) < 2_000_000


def test_numbers_that_are_not_finite_are_refused(document):
    first = {**document["sentences"][0], "length": float("nan")}
    with pytest.raises(ValueError):
        page_html({**document, "sentences": [first]})
