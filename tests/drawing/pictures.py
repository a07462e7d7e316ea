"""What a picture file shows: the texts of an SVG document and the size of a PNG picture."""

from __future__ import annotations

import struct
import xml.etree.ElementTree as ElementTree

SVG = "{http://www.w3.org/2000/svg}"


def texts_of(svg: str) -> list[str]:
    return ["".join(element.itertext()).strip() for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def pixels(figure) -> tuple[float, float]:
    """The width and height that a figure will have as PNG, without drawing it."""
    return tuple(figure.get_size_inches() * figure.dpi)


def size_of(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG")
    return struct.unpack(">II", png[16:24])
