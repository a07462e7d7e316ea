"""The parts that all SVG pictures share."""

from __future__ import annotations

import re
import unicodedata
from xml.sax.saxutils import escape as escape_xml

# What XML 1.0 cannot hold, even as a reference.
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def document(parts: list[str], width: float, height: float, *, style: str, title: str | None) -> str:
    """A complete XML document, which browsers scale to the width they have.

    Args:
        parts: elements, from back to front
        width, height: in pixels
        style: CSS
        title: what a screen reader says
    """
    size = f'width="{number(width)}" height="{number(height)}" viewBox="0 0 {number(width)} {number(height)}"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size} style="max-width:100%;height:auto">',
        *([] if title is None else [f"<title>{xml_text(title)}</title>"]),
        f"<style>{style}</style>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        *parts,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def number(value: float) -> str:
    """A length with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")


def xml_text(text: str) -> str:
    """A text as it stands between tags."""
    return escape_xml(_NOT_XML.sub("\ufffd", text))


def text_width(text: str, font_size: float) -> float:
    """About how wide a text is in a sans-serif face."""
    return font_size * sum(_character_width(character) for character in text)


def _character_width(character: str) -> float:
    """About how wide a character is, in units of the font size."""
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Me", "Mn"):
        return 0.0
    if unicodedata.east_asian_width(character) in ("F", "W"):
        return 1.0
    if character in "iljftrI.,:;'`!|()[] -":
        return 0.34
    if character in "mwMW@%":
        return 0.9
    return 0.7 if character.isupper() else 0.57
