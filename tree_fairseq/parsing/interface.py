"""The interface of constituency parsers, and what they return beside trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tree_fairseq.trees.tree import Tree


class ConstituencyParser(Protocol):
    """Gives each sentence a constituency tree.

    Two methods are optional:

    * ``tags()`` lists those labels that stand above words
    * ``parse_text(lines)`` also finds the tokens and sentences of raw text, and returns a :class:`ParsedText` for each
      line, or None where it fails
    """

    def identity(self) -> dict[str, Any]:
        """Returns all that decides the trees (name, version, hash of the model, options), for JSON; loads no model."""

    def inventory(self) -> list[str]:
        """Returns all labels of phrases and of words that the parser can give; ``[]`` if it does not know them."""

    def parse(self, sentences: list[list[str]]) -> Sequence[Tree | None]:
        """Returns one tree for each sentence, in order, whose leaves are its words; None where the parser fails.

        Every sentence has words.
        """


@dataclass(frozen=True)
class ParsedText:
    """The parse of a line of raw text: trees whose leaves are its tokens, and each leaf's half-open character span."""

    forest: tuple[Tree, ...]
    offsets: list[tuple[int, int]]
