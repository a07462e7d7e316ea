"""How many sentences may fail."""

from __future__ import annotations

import pytest

from tree_fairseq.errors import TooManyParseFailuresError
from tree_fairseq.parsing.arguments import allowed_failures, check_failures, parse_limit


@pytest.mark.parametrize(
    ("limit", "sentences", "allowed"),
    [(0, 100, 0), (3, 100, 3), (0.01, 1000, 10), (0.01, 5, 1), (0.0, 100, 0), (0.5, 3, 1), (1, 10, 1)],
)
def test_counts_and_shares(limit, sentences, allowed):
    assert allowed_failures(limit, sentences) == allowed
    check_failures(limit, allowed, sentences, [], "x")
    with pytest.raises(TooManyParseFailuresError):
        check_failures(limit, allowed + 1, sentences, [1], "x")


def test_the_error_says_where():
    with pytest.raises(TooManyParseFailuresError) as raised:
        check_failures(0.01, 30, 200, list(range(5, 35)), "train.en")
    message = str(raised.value)
    assert (
        "train.en" in message
        and "30 of 200" in message
        and "Lines: 5, 6, 7" in message
        and "24, ..." in message
        and "allows 2" in message
    )


@pytest.mark.parametrize(("text", "limit"), [("25", 25), ("0.01", 0.01), ("1%", 0.01), ("0", 0), ("50%", 0.5)])
def test_the_flag(text, limit):
    assert parse_limit(text) == limit and type(parse_limit(text)) is type(limit)


@pytest.mark.parametrize("text", ["many", "-1", "1.5", "100%", "-3%", "nan", "inf"])
def test_other_values_are_refused(text):
    with pytest.raises(ValueError):
        parse_limit(text)
