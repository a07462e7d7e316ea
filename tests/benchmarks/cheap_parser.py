"""A parser that costs nothing and counts as expensive, so that its trees go through the parse cache."""

from __future__ import annotations

from tree_fairseq.parsing.parsers import ControlParser, ParserOptions, register_parser


@register_parser("cheap", expensive=True)
def cheap(options: ParserOptions) -> ControlParser:
    """Cuts every phrase in the middle."""
    return ControlParser("cheap", lambda width, generator: (width + 1) // 2)
