"""The structural beam with random grammars, scores and options."""

from __future__ import annotations

from tests.fuzz.law import Choices, target
from tests.tree_positional.random_searches import RandomSearch


@target(lambda: [b"", bytes(range(64)), b"\x01" * 48, b"\x02\x00\x01\x03" * 16, bytes(range(200, 0, -3))])
def structural_beam(data: bytes) -> None:
    """A search over some sources: its trees are valid, finite, sorted and within the limits."""
    RandomSearch.draw(Choices(data), 3).run()
