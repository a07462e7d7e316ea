"""How many sentences may fail, and what is said when more do."""

from __future__ import annotations

from collections.abc import Sequence

from tree_fairseq.errors import TooManyParseFailuresError

_LINES_SHOWN = 20


def allowed_failures(limit: int | float, sentences: int) -> int:
    """How many of so many sentences may fail.

    Args:
        limit: a count, or (a float) a share of the sentences, of which at least one may always fail.
        sentences: how many there are.
    """
    return limit if isinstance(limit, int) else max(1, int(limit * sentences)) if limit > 0 else 0


def check_failures(limit: int | float, failed: int, sentences: int, failed_lines: Sequence[int], path: str) -> None:
    """Raise if too many sentences failed.

    Raises:
        TooManyParseFailuresError: with the numbers of the lines.
    """
    allowed = allowed_failures(limit, sentences)
    if failed <= allowed:
        return
    shown = ", ".join(map(str, failed_lines[:_LINES_SHOWN])) + (", ..." if len(failed_lines) > _LINES_SHOWN else "")
    raise TooManyParseFailuresError(
        f"{path}: {failed} of {sentences} sentences could not be parsed, --max-parse-failures allows {allowed}. Lines: {shown}. "
        "With a higher limit the same command ends at once, as their flat trees are kept"
    )


def parse_limit(text: str) -> int | float:
    """``--max-parse-failures``: ``25`` is a count, ``0.01`` and ``1%`` a share.

    Raises:
        ValueError: it is neither.
    """
    if text.endswith("%"):
        limit: int | float = float(text[:-1]) / 100
    elif text.isdigit():
        limit = int(text)
    else:
        limit = float(text)
    if not 0 <= limit or isinstance(limit, float) and not limit < 1:
        raise ValueError(f"a share is at least 0 and below 1 (or below 100%), not {text}")
    return limit
