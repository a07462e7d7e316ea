"""Heat maps of attention by tree positions alone: figures 2, 3 and 4 of Shiv & Quirk (2019).

``python -m examples.heat_maps --output DIR`` writes the figures, each as SVG and as PNG.

Rows are queries and columns are keys: the nodes of a balanced binary tree in breadth-first order. A cell is the softmax
of query times key over its row. In figure 3 a linear map moves the query first. The paper states 0.44 and 0.16 for the
similarity of node 5 to itself and to nodes 3 and 6. By the paper's own definition these are 0.40 and 0.15; the stated
values result if the similarity of node 5 to node 1 is left out.

The code of a position (section 3 of the paper), with n branches and k levels, is a stack of the last k steps from the
root, the most recent step first, each a one-hot vector of size n. The step down branch i, D_i, pushes; the step up, U,
pops (equations 2 and 3). Both are affine, so the mean of D_1 and D_2 pushes the mean of their vectors.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import softmax

from examples.lib.figure_files import as_written, new_figure, shortened, write_figure
from tree_fairseq.support.python_versions import import_library

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BranchPath = tuple[int, ...]  # the branches from the root to a node, the most recent step last


def balanced_tree(depth: int) -> list[BranchPath]:
    """The nodes of a complete binary tree in breadth-first order; its leaves are ``depth`` steps from the root."""
    return [path for length in range(depth + 1) for path in product((0, 1), repeat=length)]


def code_of(path: BranchPath, levels: int) -> np.ndarray:
    """The code of a node, ``[k, 2]``: row j is the step j before the last; older steps than k are forgotten."""
    code = np.zeros((levels, 2))
    for level, branch in enumerate(reversed(path[-levels:])):
        code[level, branch] = 1
    return code


def down(codes: np.ndarray, step: Sequence[float] = (0.5, 0.5)) -> np.ndarray:
    """The step to a child, from codes ``[N, k, 2]``: D_i for a one-hot ``step``, (D_1 + D_2) / 2 by default."""
    return np.concatenate([np.broadcast_to(step, (len(codes), 1, 2)), codes[:, :-1]], axis=1)


def up(codes: np.ndarray) -> np.ndarray:
    """U, the step to the parent, from codes ``[N, k, 2]``."""
    return np.concatenate([codes[:, 1:], np.zeros((len(codes), 1, 2))], axis=1)


def attention(queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """The softmax over all keys of query times key, ``[N, N]``, for queries and keys ``[N, ...]``."""
    return softmax(queries.reshape(len(queries), -1) @ keys.reshape(len(keys), -1).T, axis=1)


# Sizes in inches.
_WIDTH, _HEIGHT = 5.6, 5.0


@dataclass(frozen=True)
class HeatMap:
    """One picture; ``scores`` ``[N, N]`` contains a distribution over the keys for each query."""

    name: str
    title: str
    scores: np.ndarray


def figures(depth: int = 2, decays: Sequence[float] = (0.9, 0.7)) -> list[HeatMap]:
    """Returns the paper's maps of a tree of this depth, with one map of figure 4 for each decay p."""
    # Two more levels than the tree, so that no map forgets a step.
    codes = np.stack([code_of(path, depth + 2) for path in balanced_tree(depth)])
    relations = (
        ("figure2", "Nodes, all levels alike", codes),
        ("figure3_parent", "Parent: U", up(codes)),
        ("figure3_siblings", "Siblings: (D₁ + D₂) U / 2", down(up(codes))),
        ("figure3_aunts", "Aunts: (D₁ + D₂) U² / 2", down(up(up(codes)))),
        ("figure3_cousins", "Cousins: (D₁ + D₂)² U² / 4", down(down(up(up(codes))))),
    )
    maps = [HeatMap(name, title, attention(queries, codes)) for name, title, queries in relations]
    for decay in decays:
        weighted = codes * decay ** np.arange(depth + 2)[:, None]  # here p weights the levels alone
        maps.append(HeatMap(f"figure4_p{decay:g}", f"Nodes, decay p = {decay:g}", attention(weighted, weighted)))
    return maps


def draw_heat_map(heat_map: HeatMap) -> Figure:
    """Draws a map with the scale of its colours, from 0 (black) to the greatest score (white).

    Raises MissingLibraryError without matplotlib.
    """
    figure = new_figure(_WIDTH, _HEIGHT)
    axes = figure.add_subplot()
    image = axes.imshow(heat_map.scores, cmap="hot", vmin=0, vmax=heat_map.scores.max(), interpolation="nearest")
    ticker = import_library("matplotlib.ticker", "figures", "a heat map")
    count = len(heat_map.scores)
    for axis in (axes.xaxis, axes.yaxis):
        # Numbers that would touch each other are left out.
        few = ticker.MaxNLocator(integer=True, nbins=16, steps=[1, 2, 5, 10])
        axis.set_major_locator(ticker.FixedLocator(range(count)) if count <= 16 else few)
    axes.set_xlim(-0.5, len(heat_map.scores) - 0.5)
    axes.set_ylim(len(heat_map.scores) - 0.5, -0.5)
    labels = [axes.set_xlabel("key (node, breadth first)"), axes.set_ylabel("query (node, breadth first)")]
    as_written([*labels, axes.set_title(shortened(heat_map.title, 60), fontsize=12)])
    figure.colorbar(image, ax=axes, label="attention (softmax over the keys)")
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Writes the requested pictures and prints their paths."""
    description = "heat maps of tree positional encodings, as SVG and PNG files"
    parser = argparse.ArgumentParser(prog="python -m examples.heat_maps", description=description)
    about = "folder for the files; created if it does not exist"
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help=about)
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    for heat_map in figures():
        for path in write_figure(draw_heat_map(heat_map), options.output / heat_map.name, heat_map.title):
            print(path)


if __name__ == "__main__":
    main()
