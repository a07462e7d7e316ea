"""Turns the docstrings' markup into Markdown: tables between rules of ``=``, sessions, and names in roles.

Comments behind the fields of a class, or above them, are docstrings, too, and so are those behind constants.
"""

from __future__ import annotations

import re

from griffe import Docstring, Extension, Object

_TABLE = re.compile(r"^(=+(?: +=+)+) *\n(.*)\n\1 *\n((?:.*\n)*?)\1 *$", re.MULTILINE)
_SESSION = re.compile(r"(?:^[ \t]*(?:>>>|\.\.\.) .*\n?)+", re.MULTILINE)
_ROLE = re.compile(r":(?:class|func|meth|mod|data|attr|exc|math|obj):(?=`)")


class MarkdownDocstrings(Extension):
    """Rewrites every docstring before it is parsed."""

    def on_object(self, *, obj: Object, **others: object) -> None:
        """Rewrites one docstring."""
        if not obj.docstring and obj.is_attribute and (comment := comment_of(obj)):
            obj.docstring = Docstring(comment, parent=obj)
        if obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value)


def comment_of(attribute: Object) -> str:
    """Returns the comment behind an attribute, or in a class that above it; empty without one."""
    if attribute.lineno is None or attribute.endlineno is None:
        return ""
    lines = attribute.lines_collection[attribute.filepath]
    _, mark, comment = lines[attribute.endlineno - 1].partition("  # ")
    above: list[str] = []
    if not mark and attribute.parent.is_class:
        for line in map(str.strip, reversed(lines[: attribute.lineno - 1])):
            if not line.startswith("# "):
                break
            above.insert(0, line[2:])
    text = comment or " ".join(above)
    return text and text[0].upper() + text[1:].rstrip(".") + "."


def markdown(text: str) -> str:
    """Returns a docstring as Markdown; Google's sections stay as they are."""
    text = _SESSION.sub(
        lambda found: f"\n```python\n{re.sub(r'^[ >.]{4,}', '', found[0], flags=re.MULTILINE)}\n```\n", text
    )
    text = _TABLE.sub(_table, _ROLE.sub("", text))
    return re.sub(r"::$", ":", text, flags=re.MULTILINE)


def _table(found: re.Match[str]) -> str:
    starts = [column.start() for column in re.finditer("=+", found[1])]
    rows: list[list[str]] = []
    for line in [found[2], *found[3].splitlines()]:
        cells = [line[start:end].strip() for start, end in zip(starts, [*starts[1:], None])]
        if cells[0] or not rows:
            rows.append(cells)
        else:  # the line continues the row above
            rows[-1] = [f"{above} {cell}".strip() for above, cell in zip(rows[-1], cells)]
    rows.insert(1, ["---"] * len(starts))
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)
