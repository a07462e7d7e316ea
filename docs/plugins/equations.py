"""Renders the equations of ```math blocks as SVG inside the page, by matplotlib, so that no page needs a script.

GitHub shows the same blocks with its own renderer. One block holds one line of TeX.
"""

from __future__ import annotations

import html
import io
import re
import textwrap
import zlib

from mkdocs.config.defaults import MkDocsConfig
from pymdownx.superfences import SuperFencesException

SIZE = 13  # points


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Registers the kind of block."""
    fences = config.mdx_configs.setdefault("pymdownx.superfences", {}).setdefault("custom_fences", [])
    fences.append({"name": "math", "class": "equation", "format": equation})
    return config


def equation(source: str, language: str, css_class: str, options: dict, md: object, **others: object) -> str:
    """Returns the HTML of one equation: the SVG, with its TeX as the text that a screen reader reads."""
    tex = " ".join(textwrap.dedent(source).split())
    label = html.escape(tex, quote=True)
    try:
        return f'<div class="{css_class}" role="img" aria-label="{label}">{svg(tex)}</div>'
    except ValueError as error:
        raise SuperFencesException(f"the equation {tex!r}: {error}") from error


def svg(tex: str) -> str:
    """Returns TeX as an SVG element in the colour of the text around it."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with rc_context({"svg.fonttype": "path", "svg.hashsalt": "tree-fairseq", "mathtext.fontset": "stix"}):
        figure = Figure(facecolor="none")
        figure.text(0, 0, f"${tex}$", fontsize=SIZE)
        file = io.BytesIO()
        FigureCanvasSVG(figure).print_figure(
            file, format="svg", bbox_inches="tight", pad_inches=0.02, metadata={"Date": None}
        )
    text = file.getvalue().decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    # Names within an SVG are names within the page: those of two equations must differ.
    prefix = f"equation-{zlib.crc32(tex.encode()):08x}-"
    text = re.sub(r'\bid="', f'id="{prefix}', text).replace('xlink:href="#', f'href="#{prefix}')
    text = re.sub(r"url\(#", f"url(#{prefix}", text)
    return text.replace("#000000", "currentColor").replace("<svg ", '<svg fill="currentColor" aria-hidden="true" ', 1)
