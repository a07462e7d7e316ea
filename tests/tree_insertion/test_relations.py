"""Relations of all pairs at once against those found by walking from node to node."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings

from tests.tree_insertion.partial_trees import batches, path_to_root, preorder, random_batch, rows, siblings
from tree_fairseq.tree_insertion.relations import (
    ACROSS,
    CHILD,
    CHILD_OF,
    DOWN,
    NOTHING,
    STEPS,
    UP,
    TreeRelations,
    pair_relations,
)


def walk(parents: list[int], start: int, goal: int) -> tuple[int, int, int]:
    """Steps up, down and across on the way from a node to another: up until the goal or a sibling of one of its ancestors."""
    to_goal, up = path_to_root(parents, goal), 0
    while start not in to_goal:
        for down, other in enumerate(to_goal):
            if parents[other] == parents[start]:
                order = siblings(parents, start)
                return up, down, order.index(other) - order.index(start)
        start, up = parents[start], up + 1
    return up, to_goal.index(start), 0


def expected_rows(parents: list[int], start: int, goal: int, child_relations: bool) -> list[int]:
    rank = {node: min(siblings(parents, node).index(node), STEPS - 1) for node in (start, goal)}
    if child_relations and parents[goal] == start:
        return [CHILD + rank[goal], NOTHING, NOTHING]
    if child_relations and parents[start] == goal:
        return [CHILD_OF + rank[start], NOTHING, NOTHING]
    up, down, across = walk(parents, start, goal)
    across = max(1 - STEPS, min(STEPS - 1, across))
    return [UP + min(up, STEPS - 1), DOWN + min(down, STEPS - 1), ACROSS + across]


def check(batch, child_relations: bool) -> None:
    found = pair_relations(preorder(batch), child_relations)
    for row, parents in enumerate(rows(batch)):
        for start in range(len(parents)):
            for goal in range(len(parents)):
                assert found[:, row, start, goal].tolist() == expected_rows(parents, start, goal, child_relations), (
                    row,
                    start,
                    goal,
                )


@pytest.mark.parametrize("child_relations", [True, False])
@settings(max_examples=30, deadline=None)
@given(batch=batches())
def test_relations_are_those_of_walking(child_relations, batch):
    check(batch, child_relations)


def chain(length: int) -> dict[str, torch.Tensor]:
    return {"labels": torch.full((1, length), 5), "parents": torch.arange(-1, length - 1).unsqueeze(0)}


def bush(width: int) -> dict[str, torch.Tensor]:
    """A root with many children, each of which has a child."""
    parents = [-1]
    for _ in range(width):
        parents += [0, len(parents)]
    return {"labels": torch.full((1, len(parents)), 5), "parents": torch.tensor([parents])}


@pytest.mark.parametrize("batch", [chain(14), bush(13)], ids=["deep", "wide"])
@pytest.mark.parametrize("child_relations", [True, False])
def test_large_numbers_are_one(batch, child_relations):
    check(batch, child_relations)


def test_the_papers_example():
    """Figure 2: from D to I one up, two across, two down; from B to K and back a relation of its own."""
    names = "ABCDEKFGHIJ"
    parents = torch.tensor([[-1, 0, 1, 2, 2, 1, 1, 6, 7, 7, 7]])
    found = pair_relations(preorder({"labels": torch.full_like(parents, 5), "parents": parents}))[:, 0]
    pair = {f"{start}{goal}": found[:, i, j].tolist() for i, start in enumerate(names) for j, goal in enumerate(names)}
    assert pair["DI"] == pair["DH"] == pair["DJ"] == [UP + 1, DOWN + 2, ACROSS + 2]
    assert pair["ID"] == [UP + 2, DOWN + 1, ACROSS - 2]
    assert (pair["BK"], pair["KB"]) == ([CHILD + 1, NOTHING, NOTHING], [CHILD_OF + 1, NOTHING, NOTHING])
    assert pair["AK"] == [UP, DOWN + 2, ACROSS]
    assert pair["BB"] == [UP, DOWN, ACROSS]


def test_rows_of_different_relations_are_different():
    ranges = [
        (NOTHING, NOTHING),
        (UP, UP + STEPS - 1),
        (DOWN, DOWN + STEPS - 1),
        (ACROSS - STEPS + 1, ACROSS + STEPS - 1),
    ]
    ranges += [(CHILD, CHILD + STEPS - 1), (CHILD_OF, CHILD_OF + STEPS - 1)]
    taken = [row for first, last in ranges for row in range(first, last + 1)]
    assert sorted(taken) == list(range(len(taken)))
    everything, ways = TreeRelations(8), TreeRelations(8, child_relations=False)
    assert len(everything.keys) == len(taken) - 1
    assert len(ways.keys) == len(taken) - 1 - 2 * STEPS


def test_nothing_is_zero_and_stays_so():
    relations = TreeRelations(4).double()
    made = relations(preorder(random_batch(0, [5, 3])))
    assert made.padding.tolist() == [[False] * 5, [False] * 3 + [True] * 2]
    for table, own in ((made.keys, relations.keys), (made.values, relations.values)):
        assert not table[NOTHING].any() and torch.equal(table[1:], own)
    assert not torch.equal(relations.keys, relations.values)
