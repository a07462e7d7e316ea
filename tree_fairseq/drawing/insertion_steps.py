"""Draws how a tree grew by insertions, step by step, as text for a terminal and as SVG for a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tree_fairseq.drawing.svg import MARGIN, document, element, heading, number, text_width
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.trees.symbols import tree_of_parents
from tree_fairseq.trees.tree import tree_to_text

# A longer trace is cut in its middle.
_MOST_STEPS = 12
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
"""


@dataclass(frozen=True)
class InsertionStep:
    """A tree after the insertions of a step; its nodes are in preorder."""

    labels: Sequence  # ids in the trace of a hypothesis
    parents: Sequence[int]  # -1 for the root
    is_new: Sequence[bool]

    @property
    def summary(self) -> str:
        """The number of nodes that the step inserted."""
        return f"{sum(self.is_new)} inserted" if any(self.is_new) else "nothing changes"


def trace_to_text(steps: Sequence[InsertionStep]) -> str:
    """Draws the tree of each step with its root at the left; ``+`` marks new nodes."""
    blocks = []
    for count, step in enumerate(steps, 1):
        labels = ["+" * is_new + label for is_new, label in zip_equal(step.is_new, step.labels)]
        tree = tree_of_parents(labels, step.parents)
        blocks.append(f"step {count}: {step.summary}\n{tree_to_text((tree,))}")
    return "\n\n".join(blocks)


def trace_to_svg(steps: Sequence[InsertionStep], title: str | None = None) -> str:
    """Draws the trees of the steps below one another; new nodes have green boxes.

    Of more than 12 steps the first 6 and the last 6 are drawn, and a note says which are not.
    """
    parts, top, width = heading(title)
    hidden = range(_MOST_STEPS // 2 + 1, len(steps) - _MOST_STEPS // 2 + 1) if len(steps) > _MOST_STEPS else range(0)
    for count, step in enumerate(steps, 1):
        if count in hidden:
            if count == hidden[0]:
                which = f"steps {hidden[0]} to {hidden[-1]}" if len(hidden) > 1 else f"step {count}"
                note = f"not shown: {which}"
                parts.append(element("text", note, class_="step-heading", x=MARGIN, y=top))
                top += _STEP_GAP
            continue
        text = f"step {count}: {step.summary}"
        parts.append(element("text", text, class_="step-heading", x=MARGIN, y=top))
        drawn, right, bottom = _draw(step, top + 1.5 * _BOX_HEIGHT)
        parts += drawn
        top = bottom + _BOX_HEIGHT / 2 + _STEP_GAP
        width = max(width, right, MARGIN + text_width(text, _HEADING_SIZE))
    return document(parts, width + MARGIN, top, style=_STYLE, title=title, font_size=_FONT_SIZE)


def _draw(step: InsertionStep, top: float) -> tuple[list[str], float, float]:
    """The elements of one tree (edges, then boxes and labels), its right edge and the height of its lowest nodes.

    Every node stands above the middle of its children.
    """
    count, half = len(step.labels), _BOX_HEIGHT / 2
    own = [text_width(label, _FONT_SIZE) + _COLUMN_GAP for label in step.labels]
    below = [0.0] * count  # the width of all children
    for node in range(count - 1, 0, -1):
        below[step.parents[node]] += max(own[node] + _COLUMN_GAP, below[node])
    free = [0.0] * count  # the left edge of the space for the next child
    places: list[tuple[float, float]] = []
    edges, parts = [], []
    for node, (label, parent) in enumerate(zip_equal(step.labels, step.parents)):
        taken = max(own[node] + _COLUMN_GAP, below[node])
        left, y = (free[parent], places[parent][1] + _LEVEL) if node else (MARGIN, top)
        free[node] = left + (taken - below[node]) / 2
        x = left + taken / 2
        places.append((x, y))
        if node:
            free[parent] += taken
            above_x, above_y = places[parent]
            edges.append(f"M{number(above_x)} {number(above_y + half)}L{number(x)} {number(y - half)}")
        if step.is_new[node]:
            box = {"x": x - own[node] / 2, "y": y - half, "width": own[node], "height": _BOX_HEIGHT}
            parts.append(element("rect", class_="step-box step-new", **box, rx=4))
        parts.append(element("text", label, class_="step-node", x=x, y=y + _FONT_SIZE / 3))
    if edges:
        parts.insert(0, element("path", class_="step-edge", d="".join(edges)))
    return parts, MARGIN + max(own[0] + _COLUMN_GAP, below[0]), max(y for _, y in places)
