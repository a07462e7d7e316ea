"""Where one tokenised line holds several sentences."""

from __future__ import annotations

import re

_END = re.compile(r"[.!?。！？]+")
_ELLIPSIS = re.compile(r"\.\.+|…")
_CLOSERS = frozenset("'' ” ’ » ) ] } 」 』 ）".split())
_STRAIGHT_QUOTES = frozenset("\" '".split())


def split_sentences(words: list[str]) -> list[tuple[int, int]]:
    """Cut a line after sentence-final punctuation that stands as a token of its own, with the quotes and brackets that close behind it.

    An ellipsis ends a sentence only before a capital letter. A straight quote closes if an odd number of them came before it in the sentence.

    Args:
        words: the words of the line, Moses entities already unescaped.

    Returns:
        half-open spans of words that together cover the line; ``[]`` for a blank line.
    """
    spans = []
    start = position = 0
    while position < len(words):
        position += 1
        if not _ends_sentence(words, position):
            continue
        while position < len(words) and _closes(words, start, position):
            position += 1
        spans.append((start, position))
        start = position
    if start < len(words):
        spans.append((start, len(words)))
    return spans


def _ends_sentence(words: list[str], position: int) -> bool:
    """Whether the word before ``position`` is final punctuation."""
    word = words[position - 1]
    if _ELLIPSIS.fullmatch(word):
        return position < len(words) and words[position][:1].isupper()
    return _END.fullmatch(word) is not None


def _closes(words: list[str], start: int, position: int) -> bool:
    """Whether the word at ``position`` belongs to the end of the sentence that began at ``start``."""
    word = words[position]
    if word in _STRAIGHT_QUOTES:
        return words[start:position].count(word) % 2 == 1
    return word in _CLOSERS or _END.fullmatch(word) is not None
