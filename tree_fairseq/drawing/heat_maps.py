"""Heat maps of what attention makes of positions alone: figures 2, 3 and 4 of Shiv & Quirk (2019), as SVG.

``python -m tree_fairseq.drawing.heat_maps --output DIR`` writes the figures; with ``--learned p [p ...]``, as `tanh` of a
checkpoint's raw decays gives them, also the map of an encoding that has these copies side by side.

Rows are queries and columns keys, the nodes of a balanced binary tree in breadth-first order; a cell is the softmax of query
times key along its row. In figure 3 the query is first led elsewhere by a linear map. The paper quotes 0.44 and 0.16 for
the likeness of node 5 to itself and to nodes 3 and 6; by its own definition these are 0.40 and 0.15, and the quoted ones
are what follows if the likeness of node 5 to node 1 is left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tree_fairseq.drawing.svg import document, number, text_width, xml_text

# FROM trees/position_codes: The codes of positions in trees, and the maps between them, as Shiv & Quirk (2019, section 3) write them down.
#
# With n branches and k levels a node's code is a stack of its last k steps from the root, the most recent one first, each a
# one-hot vector of n. The step down branch i, D_i, pushes; the step up, U, pops (equations 2 and 3). Both are affine: they
# are matrices over codes with a 1 appended, so that a path is a product of matrices, its first step rightmost.

BranchPath = tuple[int, ...]
"""The branches on the way from the root to a node, the most recent step last."""


def balanced_tree(depth: int, branches: int = 2) -> list[BranchPath]:
    """The nodes of a tree in which every node above the last level has all its children, in breadth-first order.

    Args:
        depth: steps from the root to the leaves
        branches: of every node
    """
    level: list[BranchPath] = [()]
    nodes = list(level)
    for _ in range(depth):
        level = [(*path, branch) for path in level for branch in range(branches)]
        nodes += level
    return nodes


@dataclass(frozen=True)
class StackCodes:
    """The codes of trees of a degree.

    Attributes:
        branches: n
        levels: k
    """

    branches: int
    levels: int

    @property
    def size(self) -> int:
        """Length of a code, n k."""
        return self.branches * self.levels

    def code(self, path: BranchPath) -> np.ndarray:
        """The code of a node, ``[n k]``: level j holds the step j before the last; the oldest steps may be forgotten."""
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

    def mean_down(self) -> np.ndarray:
        """(D_1 + ... + D_n) / n: to all children alike."""
        return sum(self.down(branch) for branch in range(self.branches)) / self.branches

    def apply(self, matrix: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """What a map makes of codes, ``[N, n k]``."""
        with_one = np.concatenate([codes, np.ones((len(codes), 1))], axis=1)
        return (with_one @ matrix.T)[:, : self.size]

    def weights(self, decays: Sequence[float], width: float = 2) -> np.ndarray:
        """What each copy of a code counts, ``[P, n k]``: p^j sqrt(1 - p^2) sqrt(D / 2) at level j.

        Args:
            decays: p of each copy, between -1 and 1
            width: D of the model; 2 leaves the last factor out
        """
        p = np.asarray(decays, dtype=float)[:, None]
        by_level = p ** np.arange(self.levels) * np.sqrt(1 - p**2) * np.sqrt(width / 2)  # P x k
        return by_level.repeat(self.branches, axis=1)


def attention(queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """The softmax over all nodes of query times key.

    Args:
        queries: ``[N, C]``
        keys: ``[N, C]``

    Returns:
        ``[N, N]``, of each query over the keys
    """
    scores = queries @ keys.T
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)


_BREAKS = (0.0, 1 / 3, 2 / 3, 1.0)
_COLOURS = np.array([[0, 0, 0], [255, 0, 0], [255, 255, 0], [255, 255, 255]])

# Measures of the SVG in pixels.
_SIDE = 420  # of the map
_MARGIN = 24
_LABEL = 26  # for the numbers of the nodes
_TITLE_SIZE = 17
_FONT_SIZE = 13
_BAR_GAP = 28
_BAR_WIDTH = 18
_BAR_STEPS = 60

_STYLE = f"""
  text {{ font-family: "Helvetica Neue", Helvetica, Arial, "Noto Sans", sans-serif }}
  text {{ font-size: {_FONT_SIZE}px; fill: #1f2933 }}
  rect {{ shape-rendering: crispEdges }}
  .heat-title {{ font-size: {_TITLE_SIZE}px; font-weight: 600; fill: #323f4b }}
  .heat-column {{ text-anchor: middle }}
  .heat-row {{ text-anchor: end }}
  .heat-frame {{ fill: none; stroke: #9aa5b1 }}
"""


@dataclass(frozen=True)
class HeatMap:
    """One picture: ``scores`` are ``[N, N]``, of each query over the keys."""

    name: str
    title: str
    scores: np.ndarray


def heat_colour(value: float) -> str:
    """The colour of a value from 0 to 1: black, red, yellow, white."""
    channels = (np.interp(value, _BREAKS, _COLOURS[:, channel]) for channel in range(3))
    return "#" + "".join(f"{round(float(channel)):02x}" for channel in channels)


def figures(depth: int, decays: Sequence[float] = (0.9, 0.7), width: float = 2) -> list[HeatMap]:
    """The paper's maps.

    Args:
        depth: of the tree
        decays: a map each, figure 4
        width: D of the model whose factor sqrt(D / 2) codes have; 2 is without it, as in the paper's figures
    """
    # Two levels more than the tree has, so that no map forgets a step.
    stack = StackCodes(2, depth + 2)
    codes = np.stack([stack.code(path) for path in balanced_tree(depth)])
    scale = width / 2  # of a product of two codes
    up, down = stack.up(), stack.mean_down()
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
        # The figure's p weighs levels and does nothing else.
        weighted = codes * (decay ** np.arange(stack.levels)).repeat(2)
        maps.append(
            HeatMap(f"figure4_p{decay:g}", f"Nodes, decay p = {decay:g}", attention(scale * weighted, weighted))
        )
    return maps


def learned_map(depth: int, decays: Sequence[float], width: float = 2) -> HeatMap:
    """The map of an encoding with one copy for each decay.

    Args:
        depth: of the tree
        decays: p of each copy
        width: D of the model
    """
    stack = StackCodes(2, max(depth, 1))
    codes = np.stack([stack.code(path) for path in balanced_tree(depth)])  # N x 2k
    copies = (codes[:, None] * stack.weights(decays, width)).reshape(len(codes), -1)  # N x P * 2k
    number_of = "1 decay" if len(decays) == 1 else f"{len(decays)} decays"
    return HeatMap("learned", f"Nodes, {number_of} side by side", attention(copies, copies))


def heat_map_to_svg(heat_map: HeatMap) -> str:
    """Draw a map, with a scale from 0 to 1 beside it, as a complete XML document."""
    count = len(heat_map.scores)
    side = _SIDE / count
    left, top = _MARGIN + _LABEL, _MARGIN + _TITLE_SIZE + _LABEL
    parts = [f'<text class="heat-title" x="{_MARGIN}" y="{_MARGIN + _FONT_SIZE}">{xml_text(heat_map.title)}</text>']
    for node in range(0, count, max(1, round(_LABEL / side))):
        middle = (node + 0.5) * side
        parts.append(f'<text class="heat-column" x="{number(left + middle)}" y="{top - 8}">{node}</text>')
        parts.append(f'<text class="heat-row" x="{left - 8}" y="{number(top + middle + _FONT_SIZE / 3)}">{node}</text>')
    for row, scores in enumerate(heat_map.scores):
        for column, score in enumerate(scores):
            note = f"<title>query {row}, key {column}: {score:.3f}</title>"
            parts.append(_cell(left + column * side, top + row * side, side, side, score, note))
    parts.append(f'<rect class="heat-frame" x="{left}" y="{top}" width="{_SIDE}" height="{_SIDE}"/>')
    bar = left + _SIDE + _BAR_GAP
    step = _SIDE / _BAR_STEPS
    for place in range(_BAR_STEPS):
        parts.append(_cell(bar, top + place * step, _BAR_WIDTH, step, 1 - (place + 0.5) / _BAR_STEPS))
    parts.append(f'<rect class="heat-frame" x="{bar}" y="{top}" width="{_BAR_WIDTH}" height="{_SIDE}"/>')
    for value in (0.0, 0.25, 0.5, 0.75, 1.0):
        place = number(top + (1 - value) * _SIDE + _FONT_SIZE / 3)
        parts.append(f'<text x="{bar + _BAR_WIDTH + 6}" y="{place}">{value:g}</text>')
    width = max(
        bar + _BAR_WIDTH + 6 + text_width("0.75", _FONT_SIZE), _MARGIN + text_width(heat_map.title, _TITLE_SIZE)
    )
    return document(parts, width + _MARGIN, top + _SIDE + _MARGIN, style=_STYLE, title=heat_map.title)


def _cell(x: float, y: float, width: float, height: float, value: float, note: str = "") -> str:
    size = f'width="{width:.2f}" height="{height:.2f}"'
    return f'<rect x="{x:.2f}" y="{y:.2f}" {size} fill="{heat_colour(value)}">{note}</rect>'


def main(arguments: Sequence[str] | None = None) -> None:
    """Writes the pictures that the command line asks for, and prints their paths."""
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
    add("--output", type=Path, required=True, metavar="DIR", help="folder of the files; made if it is missing")
    add("--depth", type=_depth, default=2, help="steps from the root of the balanced tree to its leaves")
    add("--decays", type=_decay, nargs="+", default=(0.9, 0.7), metavar="P", help="figure 4: a map for each p")
    add("--learned", type=_decay, nargs="+", metavar="P", help="one more map, of all these p together")
    add("--width", type=float, default=2, metavar="D", help="of the model: the larger, the sharper; 2 is the paper's")
    return parser


def _depth(text: str) -> int:
    depth = int(text)
    if not 0 <= depth <= 6:
        raise argparse.ArgumentTypeError(f"{text} is not from 0 to 6")
    return depth


def _decay(text: str) -> float:
    decay = float(text)
    if not -1 < decay < 1:
        raise argparse.ArgumentTypeError(f"{text} is not between -1 and 1")
    return decay


if __name__ == "__main__":
    main()
