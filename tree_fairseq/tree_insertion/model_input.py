"""Partial trees as models read them: labels and parents, and all that follows from the parents.

The arrays are made on the CPU, by the data loader and between steps of decoding.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tree_fairseq.tree_insertion.relations import pair_relations
from tree_fairseq.tree_insertion.slots import ANCESTOR, DESCENDANT, FIRST_CHILD, KINDS, NEXT_SIBLING, SlotNumbers
from tree_fairseq.tree_insertion.tree_shapes import TreeShapes

ROLES = 5
AS_ANCESTOR, AS_DESCENDANT, AS_PARENT, AS_LEFT, AS_RIGHT = range(ROLES)
NO_NEIGHBOUR = AS_DESCENDANT
"""Stands for a missing neighbour of a slot: the first root, which is nobody's descendant, in that role."""
OPENING, CLOSING = 1, 2


def partial_tree_input(shapes: TreeShapes, labels: np.ndarray, pad: int) -> dict[str, Tensor]:
    """Returns all that a model reads of trees with the labels ``[n]`` int64.

    Returns:
        - ``labels`` and ``parents``, places in the row, each ``[B, M]`` int64, padded on the right with ``pad`` and -1
        - ``nodes`` ``[n]`` int64, the places of nodes in the flattened ``[B * M]``
        - ``slots`` ``[Z]`` int64, the ascending numbers of all slots (:class:`SlotNumbers`)
        - ``neighbours`` ``[Z, 3]`` int64, see :func:`slot_neighbours`
        - ``relations`` ``[B, M, M]`` int16 and ``relation_rows`` ``[K, 3]`` int64, see
          :func:`~tree_fairseq.tree_insertion.relations.pair_relations`
        - ``brackets`` and ``bracket_places``, see :func:`bracket_sequences`
    """
    numbers = SlotNumbers()
    nodes, kinds = numbers.place(shapes.slots), numbers.kind(shapes.slots)
    brackets, places = bracket_sequences(shapes)
    relations, relation_rows = pair_relations(shapes)
    arrays = {
        "labels": shapes.padded(labels, pad),
        "parents": shapes.padded_parents(),
        "nodes": shapes.places,
        "slots": numbers.number(shapes.places[nodes], kinds),
        "neighbours": slot_neighbours(shapes),
        "relations": relations,
        "relation_rows": relation_rows,
        "brackets": brackets,
        "bracket_places": places,
    }
    return {name: torch.from_numpy(values) for name, values in arrays.items()}


def read_partial_trees(trees: dict[str, Tensor], pad: int) -> dict[str, Tensor]:
    """Returns :func:`partial_tree_input` of ``labels`` and ``parents`` ``[B, M]``, on their device.

    Labels are padded with ``pad`` on the right, maybe more than needed. Parents are places in the row, -1 for roots.
    """
    labels, parents = (trees[name].cpu().numpy() for name in ("labels", "parents"))
    lengths = (labels != pad).sum(1)
    shapes = TreeShapes.of_parents([row[:length] for row, length in zip(parents, lengths.tolist())], labels.shape[1])
    made = partial_tree_input(shapes, labels[labels != pad], pad)
    return {name: values.to(trees["labels"].device) for name, values in made.items()}


def slot_neighbours(shapes: TreeShapes) -> np.ndarray:
    """Finds the nodes beside all slots of the trees and their roles there (section 3.2.3), ``[Z, 3]`` int64.

    Node i in role r is ``5 i + r``. A slot has up to three neighbours; missing ones are :data:`NO_NEIGHBOUR`.
    """
    own, parents, ends = shapes.nodes, shapes.parents, shapes.ends
    following = np.minimum(ends, len(own) - 1)
    has_next = ends < ends[parents]
    found = np.full((len(own), KINDS, 3), NO_NEIGHBOUR)
    found[:, DESCENDANT, 0] = ROLES * own + AS_ANCESTOR
    found[:, ANCESTOR, 0] = ROLES * own + AS_DESCENDANT
    found[:, FIRST_CHILD, 0] = ROLES * own + AS_PARENT
    found[:, FIRST_CHILD, 1] = ROLES * (own + 1) + AS_RIGHT
    found[:, NEXT_SIBLING, 0] = ROLES * parents + AS_PARENT
    found[:, NEXT_SIBLING, 1] = ROLES * own + AS_LEFT
    found[:, NEXT_SIBLING, 2] = np.where(has_next, ROLES * following + AS_RIGHT, NO_NEIGHBOUR)
    return found.reshape(-1, 3)[shapes.slots]


def bracket_sequences(shapes: TreeShapes) -> tuple[np.ndarray, np.ndarray]:
    """Writes trees as sequences such as ``( a b ( c d ) )``: every node with children is in brackets with its subtree.

    Returns where brackets are, ``[B, T]`` int8: :data:`OPENING`, :data:`CLOSING`, or 0 for labels and padding on the
    right; and the places of the nodes in the flattened ``[B * T]``, ``[n]`` int64.
    """
    is_inner = shapes.is_inner
    sizes = np.empty(2 * len(is_inner), np.int64)  # of events: an opening bracket and a label, or one of the two
    sizes[shapes.opens], sizes[shapes.closes] = 1 + is_inner, is_inner
    places = sizes.cumsum() - 1
    lengths = np.bincount(shapes.rows, 1 + 2 * is_inner, minlength=len(shapes)).astype(np.int64)
    width = int(lengths.max())
    moves = (np.arange(len(lengths)) * width - (lengths.cumsum() - lengths))[shapes.rows]
    labels, closing = places[shapes.opens] + moves, places[shapes.closes] + moves
    brackets = np.zeros(len(lengths) * width, np.int8)
    brackets[labels[is_inner] - 1] = OPENING
    brackets[closing[is_inner]] = CLOSING
    return brackets.reshape(-1, width), labels
