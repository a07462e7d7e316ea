"""Ready-made trees, one forest a line."""

from __future__ import annotations

import os
import re

from tree_fairseq.errors import (
    DepthLimitError, EmptyTreeError, ExtraCloseError, MixedChildrenError, TreeFormatError, UnclosedTreeError, UnlabelledTreeError,
)
from tree_fairseq.parsing.base import flat_tree
from tree_fairseq.trees.bracket import read_forest, unescape, write_forest
from tree_fairseq.trees.tree import Forest

# The words of such a line are still plain to see: all that neither is a bracket nor follows an opening one.
_WORDS_REMAIN = (DepthLimitError, EmptyTreeError, ExtraCloseError, MixedChildrenError, UnclosedTreeError, UnlabelledTreeError)
_OPENING_OR_WORD = re.compile(r"\([ \t]*[^ \t()]*|\)|([^ \t()]+)")


def read_bracketed(line: str, on_error: str, path: str | os.PathLike | None = None, number: int | None = None) -> tuple[Forest, bool]:
    """The forest of a bracketed line.

    Args:
        line: the line.
        on_error: ``stop``, or ``flat``: a line whose brackets do not match gets a flat tree over its words. A line whose words are in doubt (text
            outside trees, characters that no token can hold, discontinuous leaves, no word at all) stops in either case.
        path: the file, for messages.
        number: the line's number in it.

    Returns:
        the forest, and whether it is such a flat tree.

    Raises:
        TreeFormatError: with the place.
    """
    try:
        return read_forest(line, path=path, line_number=number), False
    except _WORDS_REMAIN:
        words = visible_words(line) if on_error == "flat" else []
        if not words:
            raise
    flat = (flat_tree([unescape(word) for word in words]),)
    try:
        # Whoever reads the tree again must find the same words.
        write_forest(flat)
    except TreeFormatError as error:
        raise error.at(path, number) from None
    return flat, True


def visible_words(line: str) -> list[str]:
    """The words of a line with broken brackets, still escaped: ``(S (NN a b) ) (`` has ``a`` and ``b``."""
    return [match.group(1) for match in _OPENING_OR_WORD.finditer(line) if match.group(1)]
