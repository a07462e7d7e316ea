"""The forms in which ``tree-fairseq parse`` writes the trees of a line: brackets, drawings, pictures and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from tree_fairseq.drawing.tree_pictures import tree_to_svg
from tree_fairseq.errors import InputError
from tree_fairseq.trees.bracket import write_forest
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Forest, Tree, binarize, forest_leaves, tree_from_preorder, tree_to_text

FORMATS = {
    "brackets": "one line for each line of text",
    "pretty": "drawn with lines, for a terminal",
    "svg": "a picture of at most 20 lines",
    "json": "one object for each line",
}
_LINES_OF_A_PICTURE = 20
_BRACKETS = notation_named("bracket")


@dataclass(frozen=True)
class TreeFormat:
    """A form of trees."""

    name: str = "brackets"  # one of :data:`FORMATS`
    binarized: bool = False  # whether every node has at most two children
    spans: bool = False  # whether constituents show the half-open spans of their leaves in the line, as in ``NP[0:2]``
    width: int | None = None  # of a drawing, in columns; None for any
    is_program: bool = False  # whether the trees are programs or other symbol trees, whose words have no tags

    def write(self, forests: Iterable[tuple[str, Forest]]) -> Iterator[str]:
        """Yields the output, in parts, for lines of text and their forests.

        Raises InputError if there are more lines than a picture holds, or JSON cannot nest a tree so deep.
        """
        if self.name == "svg":
            lines = list(forests)
            if len(lines) > _LINES_OF_A_PICTURE:
                limit = f"more than {_LINES_OF_A_PICTURE} lines for one picture"
                raise InputError(limit, hint="Choose some of them, for instance with head or sed -n 5p.")
            title = lines[0][0] if len(lines) == 1 else None
            yield tree_to_svg(tuple(tree for _, forest in lines for tree in self._prepared(forest)), title)
            return
        for number, (text, forest) in enumerate(forests):
            if self.name == "json":
                trees = [_with_spans(*each) if self.spans else each[0].to_dict() for each in self._placed(forest)]
                values = {"text": text, "leaves": forest_leaves(forest), "trees": trees}
                try:
                    yield json.dumps(values, ensure_ascii=False) + "\n"
                except RecursionError:
                    raise InputError("a tree too deep for JSON", hint="--format brackets has no such limit.") from None
                continue
            shown = self._prepared(forest)
            if self.name == "pretty":
                yield ("\n" if number else "") + tree_to_text(shown, width=self.width) + "\n"
            else:
                yield (_BRACKETS.write(shown[0]) if self.is_program else write_forest(shown)) + "\n"

    def _prepared(self, forest: Forest) -> Forest:
        return tuple(_labelled_by_span(tree, start) if self.spans else tree for tree, start in self._placed(forest))

    def _placed(self, forest: Forest) -> Iterator[tuple[Tree, int]]:
        """Yields the trees, made binary if that is wanted, and the position of the first leaf of each."""
        start = 0
        for tree in forest:
            yield (binarize(tree) if self.binarized else tree), start
            start += len(tree.leaves())


def _labelled_by_span(tree: Tree, first: int) -> Tree:
    """The tree with the span after each label: ``NP[0:2]``; ``first`` is the position of its first leaf in the line."""
    places = (f"[{first + start}:{first + end}]" for _, start, end in tree.spans())
    labels = [node.label + next(places) if node.children else node.label for node in tree.preorder()]
    return tree_from_preorder(labels, [len(node.children) for node in tree.preorder()])


def _with_spans(tree: Tree, first: int) -> dict[str, Any]:
    """The dictionary of a tree (see `Tree.to_dict`) with ``start`` and ``end`` of every node, words included."""
    places = count(first)

    def build(node: Tree, children: list[dict[str, Any]]) -> dict[str, Any]:
        if children:
            ends = {"start": children[0]["start"], "end": children[-1]["end"]}
            return {"label": node.label, **ends, "children": children}
        start = next(places)
        return {"label": node.label, "start": start, "end": start + 1}

    return tree.fold(build)
