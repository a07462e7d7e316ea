"""The entities that Moses' tokeniser writes, as a parser should see them."""

from __future__ import annotations

import re

# `&bar;`, `&bra;` and `&ket;` are of older versions; -LRB- and its like are the treebanks' own names of the same characters.
_CHARACTERS = {
    "&apos;": "'", "&quot;": '"', "&lt;": "<", "&gt;": ">", "&#91;": "[", "&#93;": "]", "&#124;": "|", "&bar;": "|", "&bra;": "[", "&ket;": "]",
    "&amp;": "&",
}
_ENTITY = re.compile("|".join(re.escape(entity) for entity in _CHARACTERS))


def unescape_entities(word: str) -> str:
    """``&apos;s`` as ``'s``; a word without entities is itself. What an entity stands for is not read again: ``&amp;lt;`` is ``&lt;``."""
    return _ENTITY.sub(lambda match: _CHARACTERS[match.group()], word) if "&" in word else word
