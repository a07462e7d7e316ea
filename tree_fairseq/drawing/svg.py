"""The parts that all SVG pictures share: the document, its elements, and estimates of the width of text."""

from __future__ import annotations

import re
import unicodedata
from xml.sax.saxutils import escape as escape_xml

MARGIN = 24
TITLE_SIZE = 17
"""The margin of a picture and the font size of its title, in pixels."""

LONGEST_SIDE = 2000
"""The most pixels that a side of a picture has."""

_FONT = "Helvetica Neue, Helvetica, Arial, Noto Sans, sans-serif"
_TITLE_STYLE = f".picture-title {{ font-size: {TITLE_SIZE}px; font-weight: 600; fill: #323f4b }}"

# Characters that XML 1.0 cannot represent, not even as references.
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def document(
    parts: list[str], width: float, height: float, *, style: str, title: str | None, font_size: int = 13
) -> str:
    """A complete XML document of elements, from back to front, which browsers scale to the available width.

    Sizes are in pixels; a picture with a side over `LONGEST_SIDE` is scaled down to it. Screen readers read the title.
    ``font_size`` is for texts whose style sets no other.
    """
    scale = min(1.0, LONGEST_SIDE / width, LONGEST_SIDE / height)
    size = f'width="{number(scale * width)}" height="{number(scale * height)}"'
    size += f' viewBox="0 0 {number(width)} {number(height)}"'
    font = f'font-family="{_FONT}" font-size="{font_size}" fill="#1f2933"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size} {font} style="max-width:100%;height:auto">',
        *([] if title is None else [f"<title>{_xml_text(title)}</title>"]),
        f"<style>{_TITLE_STYLE}{style}</style>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        *parts,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def heading(title: str | None) -> tuple[list[str], float, float]:
    """The elements of a title at the top of a picture, the height where the picture goes on, and the width so far."""
    if title is None:
        return [], MARGIN, MARGIN
    parts = [element("text", title, class_="picture-title", x=MARGIN, y=MARGIN + TITLE_SIZE)]
    return parts, MARGIN + TITLE_SIZE + MARGIN, MARGIN + text_width(title, TITLE_SIZE)


def element(name: str, text: str = "", *, note: str = "", **attributes: float | str) -> str:
    """An element with a text and a note that browsers show under the pointer; ``class_`` is the attribute ``class``."""
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{value if isinstance(value, str) else number(value)}"'
        for key, value in attributes.items()
    )
    content = (f"<title>{_xml_text(note)}</title>" if note else "") + _xml_text(text)
    return f"<{name}{shown}>{content}</{name}>" if content else f"<{name}{shown}/>"


def number(value: float) -> str:
    """A length with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _xml_text(text: str) -> str:
    return escape_xml(_NOT_XML.sub("\ufffd", text))


def text_width(text: str, font_size: float) -> float:
    """The approximate width of a text in a sans-serif face."""
    return font_size * sum(_character_width(character) for character in text)


def _character_width(character: str) -> float:
    """The approximate width of a character, in units of the font size."""
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Me", "Mn"):
        return 0.0
    if unicodedata.east_asian_width(character) in ("F", "W"):
        return 1.0
    if character in "iljftrI.,:;'`!|()[] -":
        return 0.34
    if character in "mwMW@%":
        return 0.9
    return 0.7 if character.isupper() else 0.57
