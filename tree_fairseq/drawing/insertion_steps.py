"""How a tree grew by insertions, step by step: as text for a terminal and as SVG for a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tree_fairseq.drawing.forest import tree_to_text
from tree_fairseq.drawing.svg import MARGIN, document, element, heading, number, text_width
from tree_fairseq.trees.symbols import tree_of_parents

# Sizes in pixels.
_FONT_SIZE = 14
_HEADING_SIZE = 13
_COLUMN_GAP = 14
_LEVEL = 42
_STEP_GAP = 34
_BOX_HEIGHT = 22

_STYLE = f"""
  .step-heading {{ font-size: {_HEADING_SIZE}px; fill: #616e7c }}
  .step-node {{ text-anchor: middle }}
  .step-edge {{ fill: none; stroke: #9aa5b1; stroke-width: 1.25; stroke-linecap: round }}
  .step-box {{ stroke-width: 1 }}
  .step-new {{ fill: #d7f0dc; stroke: #3f9142 }}
  .step-deleted {{ fill: #fbdada; stroke: #ba2525 }}
"""


@dataclass(frozen=True)
class InsertionStep:
    """A tree in the middle of a step: after the insertions, before the deletions.

    Attributes:
        labels: the labels of its M nodes in preorder; ids in the trace of a hypothesis
        parents: the indices of their parents, -1 for the root
        is_new: which nodes this step inserted
        is_deleted: which nodes this step deletes
    """

    labels: Sequence
    parents: Sequence[int]
    is_new: Sequence[bool]
    is_deleted: Sequence[bool]

    @property
    def summary(self) -> str:
        """The numbers of nodes that the step inserted and deleted."""
        counts = ((sum(self.is_new), "inserted"), (sum(self.is_deleted), "deleted"))
        return ", ".join(f"{count} {name}" for count, name in counts if count) or "nothing changes"


def trace_to_text(steps: Sequence[InsertionStep]) -> str:
    """Draws the tree of each step with its root at the left; ``+`` marks new nodes and ``-`` nodes to delete.

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
    """Draws the trees of all steps below one another, with new nodes in green boxes and nodes to delete in red boxes.

    Args:
        steps: the steps in order
        title: drawn above the picture

    Returns:
        a complete XML document, which browsers scale to the available width
    """
    parts, top, width = heading(title)
    for count, step in enumerate(steps, 1):
        text = f"step {count}: {step.summary}"
        parts.append(element("text", text, class_="step-heading", x=MARGIN, y=top))
        top += _BOX_HEIGHT
        centers, levels, tree_width = _layout(step)
        heights = [top + _BOX_HEIGHT / 2 + _LEVEL * level for level in levels]
        parts += _draw(step, [MARGIN + center for center in centers], heights)
        top += _BOX_HEIGHT + _LEVEL * max(levels) + _STEP_GAP
        width = max(width, MARGIN + tree_width, MARGIN + text_width(text, _HEADING_SIZE))
    return document(parts, width + MARGIN, top, style=_STYLE, title=title, font_size=_FONT_SIZE)


def _layout(step: InsertionStep) -> tuple[list[float], list[int], float]:
    """The centers of the nodes above the middle of their children, their levels, and the width of the whole tree."""
    count = len(step.labels)
    own = [text_width(label, _FONT_SIZE) + 2 * _COLUMN_GAP for label in step.labels]
    below, levels = [0.0] * count, [0] * count
    for node in range(count - 1, 0, -1):
        below[step.parents[node]] += max(own[node], below[node])
    # The left edge of the space for the next child of each node.
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


def _draw(step: InsertionStep, xs: Sequence[float], ys: Sequence[float]) -> list[str]:
    """The elements of one tree: edges, then boxes and labels."""
    half = _BOX_HEIGHT / 2
    edges = [
        f"M{number(xs[parent])} {number(ys[parent] + half)}L{number(xs[node])} {number(ys[node] - half)}"
        for node, parent in enumerate(step.parents)
        if parent >= 0
    ]
    parts = [element("path", class_="step-edge", d="".join(edges))] if edges else []
    for label, x, y, is_new, is_deleted in zip(step.labels, xs, ys, step.is_new, step.is_deleted, strict=True):
        if is_new or is_deleted:
            width = text_width(label, _FONT_SIZE) + _COLUMN_GAP
            style = f"step-box step-{'deleted' if is_deleted else 'new'}"
            parts.append(
                element("rect", class_=style, x=x - width / 2, y=y - half, width=width, height=_BOX_HEIGHT, rx=4)
            )
        parts.append(element("text", label, class_="step-node", x=x, y=y + _FONT_SIZE / 3))
    return parts
