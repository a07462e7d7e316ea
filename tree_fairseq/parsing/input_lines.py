"""Lines as users write them: trees whose brackets may not match, several sentences on a line, Moses' entities."""

from __future__ import annotations

import os
import re

from tree_fairseq.errors import (
    DepthLimitError,
    EmptyTreeError,
    ExtraCloseError,
    MixedChildrenError,
    TreeFormatError,
    UnclosedTreeError,
    UnlabelledTreeError,
)
from tree_fairseq.parsing.parsers import flat_tree
from tree_fairseq.trees.bracket import read_forest, unescape, write_forest
from tree_fairseq.trees.tree import Forest

# The words of a line with one of these faults are still known: they are neither brackets nor follow an opening one.
_WORDS_REMAIN = (
    DepthLimitError,
    EmptyTreeError,
    ExtraCloseError,
    MixedChildrenError,
    UnclosedTreeError,
    UnlabelledTreeError,
)
_OPENING_OR_WORD = re.compile(r"\([ \t]*[^ \t()]*|\)|([^ \t()]+)")

_END = re.compile(r"[.!?。！？]+")
_ELLIPSIS = re.compile(r"\.\.+|…")
_CLOSERS = frozenset("'' ” ’ » ) ] } 」 』 ）".split())
_STRAIGHT_QUOTES = frozenset("\" '".split())

# Moses' tokeniser writes these; older versions wrote the last three.
_CHARACTERS = {"&apos;": "'", "&quot;": '"', "&lt;": "<", "&gt;": ">", "&#91;": "[", "&#93;": "]", "&#124;": "|"}
_CHARACTERS |= {"&amp;": "&", "&bar;": "|", "&bra;": "[", "&ket;": "]"}
_ENTITY = re.compile("|".join(re.escape(entity) for entity in _CHARACTERS))


def read_bracketed(
    line: str, on_error: str | None, path: str | os.PathLike | None = None, number: int | None = None
) -> tuple[Forest, bool]:
    """Reads the forest of a bracketed line and returns whether it is a flat tree in place of a faulty one.

    If ``on_error`` is ``flat`` and not ``stop``, a line whose brackets do not match gets a flat tree over its words. A
    line whose words are in doubt is an error in either case: text outside trees, characters that no token can hold,
    discontinuous leaves, or no word at all.
    """
    try:
        return read_forest(line, path=path, line_number=number), False
    except _WORDS_REMAIN:
        # The words, still escaped: ``a`` and ``b`` of ``(S (NN a b) ) (``.
        words = [word for word in _OPENING_OR_WORD.findall(line) if word]
        if on_error != "flat" or not words:
            raise
    flat = (flat_tree([unescape(word) for word in words]),)
    try:
        # A reader of the tree must find the same words.
        write_forest(flat)
    except TreeFormatError as error:
        raise error.at(path, number) from None
    return flat, True


def split_sentences(words: list[str]) -> list[tuple[int, int]]:
    """Cuts a line of words without Moses' entities into sentences, half-open spans that together cover the line.

    A sentence ends with a token of sentence-final punctuation and the closing quotes and brackets after it. An ellipsis
    ends a sentence only before a capital letter. A straight quote closes if an odd number of them came before it in the
    sentence.
    """
    spans = []
    start = end = 0
    while end < len(words):
        end += 1
        if is_over := _ends_sentence(words, end):
            while end < len(words) and _closes(words, start, end):
                end += 1
        if is_over or end == len(words):
            spans.append((start, end))
            start = end
    return spans


def _ends_sentence(words: list[str], position: int) -> bool:
    """Returns whether the word before ``position`` is final punctuation."""
    word = words[position - 1]
    if _ELLIPSIS.fullmatch(word):
        return position < len(words) and words[position][:1].isupper()
    return _END.fullmatch(word) is not None


def _closes(words: list[str], start: int, position: int) -> bool:
    """Returns whether the word at ``position`` belongs to the end of the sentence that began at ``start``."""
    word = words[position]
    if word in _STRAIGHT_QUOTES:
        return words[start:position].count(word) % 2 == 1
    return word in _CLOSERS or _END.fullmatch(word) is not None


def unescape_entities(word: str) -> str:
    """Replaces Moses' entities by their characters, each once: ``&apos;s`` by ``'s``, and ``&amp;lt;`` by ``&lt;``."""
    return _ENTITY.sub(lambda match: _CHARACTERS[match.group()], word) if "&" in word else word
