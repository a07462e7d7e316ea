r"""Which characters a bracketed line can hold, and how brackets in words are written.

A bracket in a word is escaped when written and only then: ``(`` becomes ``-LRB-`` and ``)`` becomes ``-RRB-``, as in the
Penn treebank.  A backslash marks a word that really holds the characters ``-LRB``, so that all words can be written:
backslashes right before a bracket are doubled, ``k`` of them before a literal ``-LRB`` or ``-RRB`` become ``2k + 1``.
Labels are not escaped: the tag ``-LRB-`` is just that.
"""

from __future__ import annotations

import re

from tree_fairseq.errors import EmptyTreeError, UnlabelledTreeError, UnsupportedCharacterError
from tree_fairseq.trees.text import character_name

# All of Unicode's whitespace (str.isspace) except blank and tab: fairseq would split a token at any of it.
_WHITESPACE = "\n\x0b\x0c\r\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_SURROGATES = "\ud800-\udfff"  # UTF-8 cannot hold them

REFUSED = re.compile(f"[{_WHITESPACE}{_SURROGATES}]")
"""What no line of trees may hold anywhere."""

_REFUSED_IN_WORD = re.compile(f"[ \t{_WHITESPACE}{_SURROGATES}]")
_REFUSED_IN_LABEL = re.compile(f"[() \t{_WHITESPACE}{_SURROGATES}]")
# Both begin at the first of a run of backslashes, which keeps them linear in its length.
_TO_ESCAPE = re.compile(r"(?<!\\)(\\*+)(?:([()])|(-[LR]RB))")
_ESCAPED = re.compile(r"(?<!\\)((?:\\\\)*+)(?:\\(-[LR]RB)|(-[LR]RB-))")

CHARACTER_HINT = "Replace it in the tree and in the text by a visible character."


def escape(word: str) -> str:
    """A word as it stands between brackets; the inverse is `unescape`."""
    return _TO_ESCAPE.sub(_escape_match, word) if "(" in word or ")" in word or "RB" in word else word


def unescape(text: str) -> str:
    """The word that `escape` wrote, or that a treebank holds (``-LRB-`` is ``(``)."""
    return _ESCAPED.sub(_unescape_match, text) if "RB" in text else text


def _escape_match(found: re.Match) -> str:
    backslashes, bracket, literal = found.groups()
    if bracket:
        return backslashes * 2 + ("-LRB-" if bracket == "(" else "-RRB-")
    return backslashes * 2 + "\\" + literal


def _unescape_match(found: re.Match) -> str:
    backslashes, literal, bracket = found.groups()
    half = backslashes[: len(backslashes) // 2]
    return half + (literal or ("(" if bracket == "-LRB-" else ")"))


def check_characters(line: str) -> str:
    """The line itself, if it holds nothing that is refused everywhere.

    Raises:
        UnsupportedCharacterError: with the column of the first such character.
    """
    found = REFUSED.search(line)
    if found:
        message = f"{character_name(found.group())} in a line of trees"
        raise UnsupportedCharacterError(message, column=found.start() + 1, hint=CHARACTER_HINT)
    return line


def check_label(label: str) -> str:
    """The label itself, if it can be written.

    Raises:
        UnlabelledTreeError: it is empty.
        UnsupportedCharacterError: it holds whitespace or a bracket.
    """
    if not label:
        raise UnlabelledTreeError("a constituent without a label cannot be written")
    found = _REFUSED_IN_LABEL.search(label)
    if found:
        raise UnsupportedCharacterError(f"{character_name(found.group())} in the label {label!r}")
    return label


def check_word(word: str) -> str:
    """The word itself, if it can be written.

    Raises:
        EmptyTreeError: it is empty.
        UnsupportedCharacterError: it holds whitespace.
    """
    if not word:
        raise EmptyTreeError("an empty word cannot be written")
    found = _REFUSED_IN_WORD.search(word)
    if found:
        raise UnsupportedCharacterError(f"{character_name(found.group())} in the word {word!r}", hint=CHARACTER_HINT)
    return word
