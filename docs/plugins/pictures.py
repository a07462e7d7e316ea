"""Draws the pictures of the documentation into docs/images: ``python docs/plugins/pictures.py``.

Each is made by the code that users have, or computed from its formula; nothing is drawn by hand. The PNG files
come from ``python -m docs.plugins.screenshots docs/images``.
"""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
SENTENCE = (
    "(S (NP (NP (DT the) (NN man)) (SBAR (WHNP (WDT that)) (S (VP (VBD saw) (NP (DT the) (NN dog)))))) "
    "(VP (VBZ sleeps) (PP (IN in) (NP (DT the) (NN garden)))))"
)
CLASSES = "(3 (2 (2 The) (2 film)) (3 (3 (2 is) (3 (1 slow) (3 (2 but) (4 charming)))) (2 .)))"
FORM = (
    "( call-SW:listValue ( filter ( call-SW:getProperty ( call-SW:singleton en.article ) ( string !type ) ) "
    "( condition ( string publication_date ) ( string = ) ( date 2004 -1 -1 ) ) ) )"
)
WORDS = "the boat sinks in the deep sea".split()
HEIGHT = 4
COLOURS = "GnBu"


def tree() -> str:
    """The parse of a sentence, which the page of the Tree-Transformer begins with."""
    from tree_fairseq.drawing.tree_pictures import tree_to_svg
    from tree_fairseq.trees.bracket import read_forest

    return tree_to_svg(read_forest(SENTENCE))


def classes() -> str:
    """A sentence with a class at every node, as the Stanford Sentiment Treebank has them."""
    from tree_fairseq.drawing.tree_pictures import tree_to_svg
    from tree_fairseq.trees.bracket import read_forest

    return tree_to_svg(read_forest(CLASSES))


def insertion() -> str:
    """A logical form of Overnight, with the steps in which centrality inserts its nodes."""
    from tree_fairseq.drawing.tree_pictures import tree_to_svg
    from tree_fairseq.tree_insertion.oracles import CentralityOracle, trajectories
    from tree_fairseq.tree_insertion.target import TargetTree
    from tree_fairseq.trees.notations import notation_named
    from tree_fairseq.trees.symbols import tree_of_parents

    target = TargetTree.of(notation_named("bracket").read(FORM))
    (trajectory,) = trajectories(CentralityOracle(target), 1)
    labels, parents = [], []
    places = {-1: -1}
    for node, (label, parent, step) in enumerate(zip(target.labels, target.parents, trajectory.steps)):
        places[node] = len(labels)
        parents.append(places[parent])
        if target.children[node]:
            labels.append(f"{label} {step}")
        else:
            labels += [label, str(step)]
            parents.append(places[node])
    return tree_to_svg((tree_of_parents(labels, parents),))


def accumulation() -> str:
    """The subtree mask of a sentence, and how much each leaf counts in the value of each node (w = 1)."""
    from tree_fairseq.trees.bracket import read_forest
    from tree_fairseq.trees.spans import encode, reduce_spans

    read = encode(read_forest(SENTENCE))
    kept = reduce_spans(read.spans)
    words, spans = read.leaves, [(int(start), int(end)) for start, end, _ in read.spans[kept]]
    labels = [f"{read.labels[k]} {words[start]}…{words[end - 1]}" for k, (start, end) in zip(kept, spans)]
    nodes, leaves = len(spans), len(words)
    covers = np.array([[start <= leaf < end for leaf in range(leaves)] for start, end in spans])
    inside = np.array([[start <= a and b <= end for a, b in spans] for start, end in spans])
    # The number of nodes from node i down to leaf j
    between = inside.astype(int) @ covers.astype(int)
    share = np.where(covers, 1 / (covers.sum(1, keepdims=True) * (between + 1)), 0)
    mask = np.zeros((leaves + nodes, leaves + nodes))
    mask[:leaves, :leaves] = 1
    mask[leaves:] = np.hstack([covers, inside])
    figure, (left, right) = _figure(10, 4.6, 2)
    everything = [*words, *labels]
    left.imshow(mask, cmap=COLOURS, vmin=0, vmax=1.6)
    _ticks(left, everything, everything)
    left.set(title="Subtree mask", xlabel="attended leaf or node", ylabel="attending leaf or node")
    left.axhline(leaves - 0.5, color="0.4", linewidth=0.8)
    left.axvline(leaves - 0.5, color="0.4", linewidth=0.8)
    image = right.imshow(share, cmap=COLOURS, vmin=0)
    _ticks(right, words, labels)
    right.set(title="Share of each leaf in the value of a node, w = 1", xlabel="leaf", ylabel="node")
    figure.colorbar(image, ax=right, shrink=0.6, label="coefficient C")
    return _svg(figure)


def distances() -> str:
    """The distances between the words of a sentence, in words and in edges of its tree."""
    import torch

    from tree_fairseq.nn.distance_bias import leaf_distances
    from tree_fairseq.trees.bracket import read_forest
    from tree_fairseq.trees.spans import encode, reduce_spans

    read = encode(read_forest(SENTENCE))
    words, spans = read.leaves, torch.from_numpy(read.spans[reduce_spans(read.spans)])
    column = torch.arange(len(words))
    covers = (spans[:, :1] <= column) & (column < spans[:, 1:2])
    maps = {
        "Linear distance": (column - column[:, None]).abs().numpy(),
        "Tree distance": leaf_distances(covers.unsqueeze(0), 16)[0].numpy(),
    }
    figure, axes = _figure(10, 4.6, 2)
    for part, (title, values) in zip(axes, maps.items()):
        part.imshow(values, cmap=COLOURS, vmin=0, vmax=16)
        _ticks(part, words, words)
        part.set(title=title)
        for row, numbers in enumerate(values.tolist()):
            for place, number in enumerate(numbers):
                part.text(place, row, number, ha="center", va="center", fontsize=7)
    return _svg(figure)


def chart() -> str:
    """The cells of Treeformer's chart over a sentence, and the pairs of parts of one of them."""
    figure, (axes,) = _figure(7, 3.6, 1)
    count, colours = len(WORDS), ("#2b8cbe", "#7bccc4", "#bae4bc", "#e6550d")
    begin, length = 2, HEIGHT
    for size in range(1, HEIGHT + 1):
        for start in range(count - size + 1):
            chosen = start == begin and size == length
            parts = [k for k in range(1, length) if (start, size) in ((begin, k), (begin + k, length - k))]
            colour = "#e6550d" if chosen else colours[parts[0] - 1] if parts else "#f0f2f4"
            x = start + (size - 1) / 2
            axes.add_patch(_box(x - 0.46, size - 0.42, colour))
            text = WORDS[start] if size == 1 else f"{WORDS[start]}…{WORDS[start + size - 1]}"
            axes.text(x, size, text, ha="center", va="center", fontsize=7, color="white" if chosen else "black")
    axes.set(
        xlim=(-0.6, count - 0.4), ylim=(0.4, HEIGHT + 0.6), ylabel="tokens of the phrase", yticks=range(1, HEIGHT + 1)
    )
    axes.set_xticks([])
    axes.set_title(
        f"Chart of height h = {HEIGHT}: the orange phrase is composed of the pairs of equal colour", fontsize=9
    )
    for side in ("top", "right", "bottom"):
        axes.spines[side].set_visible(False)
    return _svg(figure)


def _box(x: float, y: float, colour: str):
    from matplotlib.patches import FancyBboxPatch

    return FancyBboxPatch((x, y), 0.92, 0.84, boxstyle="round,pad=0,rounding_size=0.08", facecolor=colour, linewidth=0)


def tree_positions() -> str:
    """The similarity of the positions of a balanced tree of seven nodes, with a decay of 0.9: the paper's figure 4a."""
    from examples.heat_maps import draw_heat_map, figures
    from examples.lib.figure_files import figure_to_svg

    heat_map = next(drawn for drawn in figures(2) if drawn.name == "figure4_p0.9")
    return figure_to_svg(draw_heat_map(heat_map), heat_map.title)


PICTURES = {
    "tree": tree, "classes": classes, "insertion": insertion, "accumulation": accumulation, "distances": distances,
    "chart": chart,
    "tree_positions": tree_positions,
}  # fmt: skip


def _figure(width: float, height: float, count: int):
    from examples.lib.figure_files import new_figure

    figure = new_figure(width, height)
    return figure, figure.subplots(1, count, squeeze=False)[0]


def _ticks(axes, columns: list[str], rows: list[str]) -> None:
    axes.set_xticks(range(len(columns)), columns, rotation=90, fontsize=7)
    axes.set_yticks(range(len(rows)), rows, fontsize=7)


def _svg(figure) -> str:
    from examples.lib.figure_files import figure_to_svg

    return figure_to_svg(figure)


def main(arguments: list[str] | None = None) -> int:
    """Draws all pictures, or those that are named, and prints their paths."""
    parser = argparse.ArgumentParser(description="draws the pictures of the documentation")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PICTURES)}; by default all")
    parser.add_argument(
        "--output", type=Path, default=ROOT / "docs/images", metavar="DIR", help="folder of the pictures"
    )
    options = parser.parse_args(arguments)
    logging.getLogger("matplotlib").setLevel(logging.WARNING)
    options.output.mkdir(parents=True, exist_ok=True)
    for name in options.names or PICTURES:
        path = options.output / f"{name}.svg"
        path.write_text(PICTURES[name](), encoding="utf-8", newline="\n")
        print(path)
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
