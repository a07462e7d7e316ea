"""Pictures of how a tree grew by insertions, step by step: as text for a terminal, as SVG for a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tree_fairseq.drawing.svg import document, number, text_width, xml_text
from tree_fairseq.drawing.tree_drawing import tree_to_text
from tree_fairseq.trees.symbols import tree_of_parents

# Measures of the SVG in pixels.
_FONT_SIZE = 14
_TITLE_SIZE = 17
_HEADING_SIZE = 13
_COLUMN_GAP = 14
_LEVEL = 42
_STEP_GAP = 34
_BOX_HEIGHT = 22
_MARGIN = 24

_STYLE = f"""
  .step-text {{ font-family: "Helvetica Neue", Helvetica, Arial, "Noto Sans", sans-serif }}
  .step-title {{ font-size: {_TITLE_SIZE}px; font-weight: 600; fill: #323f4b }}
  .step-heading {{ font-size: {_HEADING_SIZE}px; fill: #616e7c }}
  .step-node {{ font-size: {_FONT_SIZE}px; text-anchor: middle; fill: #1f2933 }}
  .step-edge {{ fill: none; stroke: #9aa5b1; stroke-width: 1.25; stroke-linecap: round }}
  .step-box {{ stroke-width: 1 }}
  .step-new {{ fill: #d7f0dc; stroke: #3f9142 }}
  .step-deleted {{ fill: #fbdada; stroke: #ba2525 }}
"""


@dataclass(frozen=True)
class InsertionStep:
    """A tree in the middle of a step: after the insertions, before the deletions.

    Attributes:
        labels: of its N nodes in preorder
        parents: the parents' places, -1 for the root
        is_new: which nodes this step inserted
        is_deleted: which nodes this step deletes
    """

    labels: Sequence[str]
    parents: Sequence[int]
    is_new: Sequence[bool]
    is_deleted: Sequence[bool]

    @property
    def summary(self) -> str:
        """What the step did."""
        done = [
            f"{sum(marks)} {name}"
            for name, marks in (("inserted", self.is_new), ("deleted", self.is_deleted))
            if any(marks)
        ]
        return ", ".join(done) or "nothing changes"


def trace_to_text(steps: Sequence[InsertionStep]) -> str:
    """The tree of each step, its root at the left; ``+`` stands before new nodes, ``-`` before nodes that are deleted.

    Returns:
        lines joined by ``\\n``, without one at the end
    """
    blocks = []
    for count, step in enumerate(steps, 1):
        marks = ["-" * deleted + "+" * new for new, deleted in zip(step.is_new, step.is_deleted, strict=True)]
        tree = tree_of_parents([mark + label for mark, label in zip(marks, step.labels, strict=True)], step.parents)
        blocks.append(f"step {count}: {step.summary}\n{tree_to_text((tree,))}")
    return "\n\n".join(blocks)


def trace_to_svg(steps: Sequence[InsertionStep], title: str | None = None) -> str:
    """The tree of each step below the one before; new nodes stand in green boxes, nodes that are deleted in red ones.

    Args:
        steps: in order
        title: stands above the picture

    Returns:
        a complete XML document, which browsers scale to the width they have
    """
    parts: list[str] = []
    top, width = float(_MARGIN), 0.0
    if title is not None:
        top += _TITLE_SIZE
        parts.append(_text("title", _MARGIN, top, title))
        top += _STEP_GAP
        width = text_width(title, _TITLE_SIZE)
    for count, step in enumerate(steps, 1):
        heading = f"step {count}: {step.summary}"
        parts.append(_text("heading", _MARGIN, top, heading))
        top += _BOX_HEIGHT
        centers, levels, tree_width = _layout(step)
        places = [
            (_MARGIN + center, top + _BOX_HEIGHT / 2 + _LEVEL * level)
            for center, level in zip(centers, levels, strict=True)
        ]
        parts += _draw(step, places)
        top += _BOX_HEIGHT + _LEVEL * max(levels) + _STEP_GAP
        width = max(width, tree_width, text_width(heading, _HEADING_SIZE))
    return document(parts, width + 2 * _MARGIN, top, style=_STYLE, title=title)


def _layout(step: InsertionStep) -> tuple[list[float], list[int], float]:
    """The middles of the nodes from the left edge, their levels, and the width of the whole; every node above its children's middle."""
    count = len(step.labels)
    own = [text_width(label, _FONT_SIZE) + 2 * _COLUMN_GAP for label in step.labels]
    below, levels = [0.0] * count, [0] * count
    for node in range(count - 1, 0, -1):
        below[step.parents[node]] += max(own[node], below[node])
    # The left edge of what the next child of a node takes.
    free, centers = [0.0] * count, [0.0] * count
    for node, parent in enumerate(step.parents):
        taken = max(own[node], below[node])
        left = 0.0
        if parent >= 0:
            levels[node] = levels[parent] + 1
            left = free[parent]
            free[parent] += taken
        centers[node] = left + taken / 2
        free[node] = left + (taken - below[node]) / 2
    return centers, levels, max(own[0], below[0])


def _draw(step: InsertionStep, places: Sequence[tuple[float, float]]) -> list[str]:
    """The elements of one tree, its lines before its boxes and texts."""
    edges = []
    for node, parent in enumerate(step.parents):
        if parent >= 0:
            (x, y), (upper_x, upper_y) = places[node], places[parent]
            start, end = upper_y + _BOX_HEIGHT / 2, y - _BOX_HEIGHT / 2
            edges.append(f"M{number(upper_x)} {number(start)}L{number(x)} {number(end)}")
    parts = [f'<path class="step-edge" d="{"".join(edges)}"/>'] if edges else []
    for label, (x, y), is_new, is_deleted in zip(step.labels, places, step.is_new, step.is_deleted, strict=True):
        if is_new or is_deleted:
            box = text_width(label, _FONT_SIZE) + _COLUMN_GAP
            corner = f'x="{number(x - box / 2)}" y="{number(y - _BOX_HEIGHT / 2)}"'
            size = f'width="{number(box)}" height="{_BOX_HEIGHT}" rx="4"'
            parts.append(f'<rect class="step-box step-{"deleted" if is_deleted else "new"}" {corner} {size}/>')
        parts.append(_text("node", x, y + _FONT_SIZE / 3, label))
    return parts


def _text(style: str, x: float, y: float, text: str) -> str:
    return f'<text class="step-text step-{style}" x="{number(x)}" y="{number(y)}">{xml_text(text)}</text>'
