"""Heat maps of attention by tree positions alone: figures 2, 3 and 4 of Shiv & Quirk (2019), as SVG.

``python -m tree_fairseq.drawing.heat_maps --output DIR`` writes the figures. With ``--learned p [p ...]``, the `tanh`
of the raw decays in a checkpoint, it also writes the map of an encoding that contains one copy for each of these
decays.

Rows are queries and columns are keys: the nodes of a balanced binary tree in breadth-first order. A cell is the softmax
of query times key over its row. In figure 3 a linear map moves the query first. The paper states 0.44 and 0.16 for the
similarity of node 5 to itself and to nodes 3 and 6. By the paper's own definition these are 0.40 and 0.15; the stated
values result if the similarity of node 5 to node 1 is left out.

The code of a position (section 3 of the paper), with n branches and k levels, is a stack of the last k steps from the
root, the most recent step first, each a one-hot vector of size n. The step down branch i, D_i, pushes; the step up, U,
pops (equations 2 and 3). Both are affine: they are matrices over codes with a 1 appended, so a path is a product of
matrices, its first step rightmost.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tree_fairseq.drawing.svg import MARGIN, TITLE_SIZE, document, element, heading, text_width

BranchPath = tuple[int, ...]
"""The branches from the root to a node, the most recent step last."""


def balanced_tree(depth: int, branches: int = 2) -> list[BranchPath]:
    """The nodes of a complete tree in breadth-first order; its leaves are ``depth`` steps from the root."""
    level: list[BranchPath] = [()]
    nodes = list(level)
    for _ in range(depth):
        level = [(*path, branch) for path in level for branch in range(branches)]
        nodes += level
    return nodes


@dataclass(frozen=True)
class StackCodes:
    """The codes of positions, for ``branches`` n and ``levels`` k."""

    branches: int
    levels: int

    @property
    def size(self) -> int:
        """The length of a code, n k."""
        return self.branches * self.levels

    def code(self, path: BranchPath) -> np.ndarray:
        """The code of a node, ``[n k]``: level j holds the step j before the last; older steps than k are forgotten."""
        code = np.zeros(self.size)
        for level, branch in enumerate(reversed(path[-self.levels :])):
            code[level * self.branches + branch] = 1
        return code

    def down(self, branch: int) -> np.ndarray:
        """D_i, ``[n k + 1, n k + 1]``: the step to a child."""
        matrix = np.eye(self.size + 1, k=-self.branches)
        matrix[self.size] = 0
        matrix[branch, self.size] = matrix[self.size, self.size] = 1
        return matrix

    def up(self) -> np.ndarray:
        """U, ``[n k + 1, n k + 1]``: the step to the parent."""
        matrix = np.eye(self.size + 1, k=self.branches)
        matrix[:, self.size] = 0
        matrix[self.size, self.size] = 1
        return matrix

    def apply(self, matrix: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """The codes after an affine map, ``[N, n k]``."""
        with_one = np.concatenate([codes, np.ones((len(codes), 1))], axis=1)
        return (with_one @ matrix.T)[:, : self.size]

    def weights(self, decays: Sequence[float], width: float = 2) -> np.ndarray:
        """The weights of each copy of a code, ``[P, n k]``: p^j sqrt(1 - p^2) sqrt(D / 2) at level j.

        Args:
            decays: p of each copy, between -1 and 1
            width: D, the width of the model; with 2 the last factor is 1
        """
        p = np.asarray(decays, dtype=float)[:, None]
        by_level = p ** np.arange(self.levels) * np.sqrt(1 - p**2) * np.sqrt(width / 2)  # P x k
        return by_level.repeat(self.branches, axis=1)


def attention(queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """The softmax over all keys of query times key, ``[N, N]``, for queries ``[N, C]`` and keys ``[N, C]``."""
    scores = queries @ keys.T
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)


_BREAKS = (0.0, 1 / 3, 2 / 3, 1.0)
_COLOURS = np.array([[0, 0, 0], [255, 0, 0], [255, 255, 0], [255, 255, 255]])

# Sizes in pixels.
_SIDE = 420  # of the map
_LABEL = 26  # for the numbers of the nodes
_FONT_SIZE = 13
_BAR_GAP = 28
_BAR_WIDTH = 18
_BAR_STEPS = 60

_STYLE = """
  rect { shape-rendering: crispEdges }
  .heat-column { text-anchor: middle }
  .heat-row { text-anchor: end }
  .heat-frame { fill: none; stroke: #9aa5b1 }
"""


@dataclass(frozen=True)
class HeatMap:
    """One picture; ``scores`` ``[N, N]`` contains a distribution over the keys for each query."""

    name: str
    title: str
    scores: np.ndarray


def heat_colour(value: float) -> str:
    """The colour of a value from 0 to 1, from black over red and yellow to white."""
    channels = (np.interp(value, _BREAKS, _COLOURS[:, channel]) for channel in range(3))
    return "#" + "".join(f"{round(float(channel)):02x}" for channel in channels)


def figures(depth: int, decays: Sequence[float] = (0.9, 0.7), width: float = 2) -> list[HeatMap]:
    """The paper's maps.

    Args:
        depth: the depth of the tree
        decays: one map of figure 4 for each
        width: D, the width of the model; codes have the factor sqrt(D / 2), and the paper's figures use D = 2
    """
    # Two more levels than the tree, so that no map forgets a step.
    stack = StackCodes(2, depth + 2)
    codes = np.stack([stack.code(path) for path in balanced_tree(depth)])
    scale = width / 2  # of the product of two codes
    up, down = stack.up(), (stack.down(0) + stack.down(1)) / 2
    relations = {
        "parent": ("Parent: U", up),
        "siblings": ("Siblings: (D₁ + D₂) U / 2", down @ up),
        "aunts": ("Aunts: (D₁ + D₂) U² / 2", down @ up @ up),
        "cousins": ("Cousins: (D₁ + D₂)² U² / 4", down @ down @ up @ up),
    }
    maps = [HeatMap("figure2", "Nodes, all levels alike", attention(scale * codes, codes))]
    for name, (title, matrix) in relations.items():
        maps.append(HeatMap(f"figure3_{name}", title, attention(scale * stack.apply(matrix, codes), codes)))
    for decay in decays:
        # In this figure, p only weights the levels.
        weighted = codes * (decay ** np.arange(stack.levels)).repeat(2)
        scores = attention(scale * weighted, weighted)
        maps.append(HeatMap(f"figure4_p{decay:g}", f"Nodes, decay p = {decay:g}", scores))
    return maps


def learned_map(depth: int, decays: Sequence[float], width: float = 2) -> HeatMap:
    """The map of an encoding with one copy for each decay; ``width`` is D, the width of the model."""
    stack = StackCodes(2, max(depth, 1))
    codes = np.stack([stack.code(path) for path in balanced_tree(depth)])  # N x 2k
    copies = (codes[:, None] * stack.weights(decays, width)).reshape(len(codes), -1)  # N x P * 2k
    number_of = "1 decay" if len(decays) == 1 else f"{len(decays)} decays"
    return HeatMap("learned", f"Nodes, {number_of} side by side", attention(copies, copies))


def heat_map_to_svg(heat_map: HeatMap) -> str:
    """Draws a map, with a scale from 0 to 1 beside it, as a complete XML document."""
    count = len(heat_map.scores)
    side = _SIDE / count
    left, top = MARGIN + _LABEL, MARGIN + TITLE_SIZE + _LABEL
    parts, _, width = heading(heat_map.title)
    for node in range(0, count, max(1, round(_LABEL / side))):
        middle = (node + 0.5) * side
        parts.append(element("text", str(node), class_="heat-column", x=left + middle, y=top - 8))
        parts.append(element("text", str(node), class_="heat-row", x=left - 8, y=top + middle + _FONT_SIZE / 3))
    for row, scores in enumerate(heat_map.scores):
        for column, score in enumerate(scores):
            note = f"query {row}, key {column}: {score:.3f}"
            parts.append(_cell(left + column * side, top + row * side, side, side, score, note))
    bar = left + _SIDE + _BAR_GAP
    step = _SIDE / _BAR_STEPS
    for place in range(_BAR_STEPS):
        parts.append(_cell(bar, top + place * step, _BAR_WIDTH, step, 1 - (place + 0.5) / _BAR_STEPS))
    for x, frame_width in ((left, _SIDE), (bar, _BAR_WIDTH)):
        parts.append(element("rect", class_="heat-frame", x=x, y=top, width=frame_width, height=_SIDE))
    numbers = bar + _BAR_WIDTH + 6
    for value in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(element("text", f"{value:g}", x=numbers, y=top + (1 - value) * _SIDE + _FONT_SIZE / 3))
    width = max(width, numbers + text_width("0.75", _FONT_SIZE)) + MARGIN
    return document(parts, width, top + _SIDE + MARGIN, style=_STYLE, title=heat_map.title, font_size=_FONT_SIZE)


def _cell(x: float, y: float, width: float, height: float, value: float, note: str = "") -> str:
    return element("rect", note=note, x=x, y=y, width=width, height=height, fill=heat_colour(value))


def main(arguments: Sequence[str] | None = None) -> None:
    """Writes the requested pictures and prints their paths."""
    options = _parser().parse_args(arguments)
    maps = figures(options.depth, options.decays, options.width)
    if options.learned:
        maps.append(learned_map(options.depth, options.learned, options.width))
    options.output.mkdir(parents=True, exist_ok=True)
    for heat_map in maps:
        path = options.output / f"{heat_map.name}.svg"
        path.write_text(heat_map_to_svg(heat_map), encoding="utf-8", newline="\n")
        print(path)


def _parser() -> argparse.ArgumentParser:
    description = "heat maps of tree positional encodings, as SVG files"
    parser = argparse.ArgumentParser(prog="python -m tree_fairseq.drawing.heat_maps", description=description)
    add = parser.add_argument
    add("--output", type=Path, required=True, metavar="DIR", help="folder for the files; created if it does not exist")
    add(
        "--depth",
        type=int,
        choices=range(7),
        default=2,
        metavar="N",
        help="number of steps from the root of the balanced tree to its leaves",
    )
    add("--decays", type=_decay, nargs="+", default=(0.9, 0.7), metavar="P", help="figure 4: one map for each p")
    add("--learned", type=_decay, nargs="+", metavar="P", help="also write the map of an encoding with all these p")
    add("--width", type=float, default=2, metavar="D", help="width of the model; a larger one gives sharper maps")
    return parser


def _decay(text: str) -> float:
    decay = float(text)
    if not -1 < decay < 1:
        raise argparse.ArgumentTypeError(f"{text} is not between -1 and 1")
    return decay


if __name__ == "__main__":
    main()
