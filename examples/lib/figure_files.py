"""Writes figures of matplotlib as SVG and PNG files, without a window and without settings of the whole process.

matplotlib comes with ``pip install 'tree-fairseq[figures]'``. The pictures of trees need none of it.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tree_fairseq.support.python_versions import import_library

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.text import Text

DOTS_PER_INCH = 100
LONGEST_SIDE = 2000
"""The resolution of a PNG picture, and the most pixels that a side may have at this resolution."""

COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f")
"""The colours of the lines of a plot, in order."""

_SETTINGS = {
    "svg.fonttype": "none",  # text can be searched, read aloud and selected
    "svg.hashsalt": "tree-fairseq",  # the same picture gives the same bytes
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": 10,
}


def new_figure(width: float, height: float) -> Figure:
    """Returns an empty figure of this size in inches, whose parts make room for each other.

    A side of more than `LONGEST_SIDE` pixels is made shorter. Raises MissingLibraryError without matplotlib.
    """
    longest = LONGEST_SIDE / DOTS_PER_INCH
    figure = import_library("matplotlib.figure", "figures", "a picture of this kind").Figure
    made = figure(figsize=(min(width, longest), min(height, longest)), dpi=DOTS_PER_INCH, layout="constrained")
    made.get_layout_engine().set(w_pad=0.08, h_pad=0.08, wspace=0.04, hspace=0.04)
    return made


def as_written(texts: Sequence[Text]) -> None:
    """Shows texts as they are; by default, matplotlib reads text between dollar signs as a formula."""
    for text in texts:
        text.set_parse_math(False)


def figure_bytes(figure: Figure, form: str, title: str | None = None) -> bytes:
    """Returns a figure as a file of the form ``svg`` or ``png``; an SVG file keeps its ``title``."""
    matplotlib = import_library("matplotlib", "figures", "a picture of this kind")
    content = io.BytesIO()
    metadata: dict[str, Any] = {"Date": None, **({"Title": title} if title else {})} if form == "svg" else {}
    with matplotlib.rc_context(_SETTINGS), warnings.catch_warnings():
        # A PNG picture shows a box for a character that the font lacks; an SVG picture has the character itself.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(content, format=form, metadata=metadata, facecolor="white")
    return content.getvalue()


def figure_to_svg(figure: Figure, title: str | None = None) -> str:
    """Returns a figure as a complete SVG document."""
    return figure_bytes(figure, "svg", title).decode("utf-8")


def write_figure(figure: Figure, path: str | os.PathLike, title: str | None = None) -> list[Path]:
    """Writes a figure under a name without its ending, as ``.svg`` and as ``.png``, and returns both paths.

    If ``path`` ends in ``.svg`` or ``.png``, only this file is written. The folder must exist.
    """
    path = Path(path)
    forms = [path.suffix[1:]] if path.suffix in (".svg", ".png") else ["svg", "png"]
    written = [path if path.suffix == f".{form}" else path.with_name(f"{path.name}.{form}") for form in forms]
    for form, target in zip(forms, written):
        target.write_bytes(figure_bytes(figure, form, title))
    return written


def shortened(text: str, length: int = 24) -> str:
    """Returns a label, which ends in ``…`` if it is longer than ``length`` characters."""
    return text if len(text) <= length else text[: length - 1] + "…"
