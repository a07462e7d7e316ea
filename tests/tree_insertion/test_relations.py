"""Batches of trees, their relations and bracket sequences against walking, and attention against the equations."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings

from tests.tree_insertion.partial_trees import PAD, batches, path_to_root, random_batch, rows, shapes_of, siblings
from tree_fairseq.nn.shared_memory import PackedRows
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.tree_insertion import tree_shapes
from tree_fairseq.tree_insertion.decoder import TreeRelationAttention, TreeRelations, without_child_relations
from tree_fairseq.tree_insertion.tree_shapes import ACROSS, CHILD, CHILD_OF, DOWN, NOTHING, STEPS, UP, pair_relations


@settings(max_examples=40, deadline=None)
@given(batch=batches())
def test_depths_subtrees_and_ranks(batch):
    trees = shapes_of(batch)
    first = 0
    for row, parents in enumerate(rows(batch)):
        assert trees.lengths[row] == len(parents)
        for node in range(len(parents)):
            below = [other for other in range(len(parents)) if node in path_to_root(parents, other)]
            place = first + node
            assert trees.depths[place] == len(path_to_root(parents, node)) - 1
            assert trees.ends[place] == first + max(below) + 1
            assert trees.is_inner[place] == (len(below) > 1)
            assert trees.ranks[place] == siblings(parents, node).index(node)
            assert trees.parents[place] == (first + parents[node] if node else -1)
        first += len(parents)
    assert trees.padded_parents().tolist() == batch["parents"].tolist()


def walk(parents: list[int], start: int, goal: int) -> tuple[int, int, int]:
    """Steps up, down and across from a node to another: up until the goal or a sibling of one of its ancestors."""
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


def relations_of(batch, child_relations: bool = True) -> torch.Tensor:
    """Rows of the embedding tables for each pair, ``[3, B, M, M]``."""
    numbers, rows = map(torch.from_numpy, pair_relations(shapes_of(batch)))
    assert ((numbers == 0) == (batch["labels"] == PAD)[:, None]).all()
    rows = rows if child_relations else without_child_relations(rows)
    return rows[numbers.long()].movedim(3, 0)


def check(batch, child_relations: bool) -> None:
    found = relations_of(batch, child_relations)
    for row, parents in enumerate(rows(batch)):
        for start in range(len(parents)):
            for goal in range(len(parents)):
                assert found[:, row, start, goal].tolist() == expected_rows(parents, start, goal, child_relations), (
                    row,
                    start,
                    goal,
                )


@pytest.mark.parametrize("pairs_at_once", [1, 50])
def test_blocks_of_pairs_make_no_difference(pairs_at_once, monkeypatch):
    batch = random_batch(7, [12, 1, 9])
    whole = relations_of(batch)
    monkeypatch.setattr(tree_shapes, "_PAIRS_AT_ONCE", pairs_at_once)
    assert relations_of(batch).equal(whole)


def test_relations_of_large_trees_are_those_of_small_numbers():
    """Counts are kept in as few bytes as they need."""
    large = random_batch(3, [40, 140])
    small = {name: large[name][:1, :40] for name in ("labels", "parents")}
    assert relations_of(large)[:, :1, :40, :40].equal(relations_of(small))


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
    found = relations_of({"labels": torch.full_like(parents, 5), "parents": parents})[:, 0]
    pair = {f"{start}{goal}": found[:, i, j].tolist() for i, start in enumerate(names) for j, goal in enumerate(names)}
    assert pair["DI"] == pair["DH"] == pair["DJ"] == [UP + 1, DOWN + 2, ACROSS + 2]
    assert pair["ID"] == [UP + 2, DOWN + 1, ACROSS - 2]
    assert (pair["BK"], pair["KB"]) == ([CHILD + 1, NOTHING, NOTHING], [CHILD_OF + 1, NOTHING, NOTHING])
    assert pair["AK"] == [UP, DOWN + 2, ACROSS]
    assert pair["BB"] == [UP, DOWN, ACROSS]


def looked_up(relations, batch):
    """The relations of a batch as attention reads them."""
    is_node = batch["labels"] != PAD
    nodes = PackedRows(is_node.flatten().nonzero().squeeze(1), tuple(is_node.shape))
    return relations(*map(torch.from_numpy, pair_relations(shapes_of(batch))), nodes)


def attended(attention, relations, states, batch) -> torch.Tensor:
    """Attention over a batch of states ``[M, B, D]``; padding is zero."""
    known = looked_up(relations, batch)
    packed = known.nodes.pack(states.transpose(0, 1)).unsqueeze(1)
    found, weights = attention(packed, packed, packed, key_padding_mask=known)
    assert weights is None
    return known.nodes.pad(found.squeeze(1)).transpose(0, 1)


WIDTH, HEADS = 12, 3


def build(child_relations: bool = True):
    torch.manual_seed(0)
    attention = TreeRelationAttention(WIDTH, HEADS, self_attention=True).double().eval()
    return attention, TreeRelations(WIDTH // HEADS, child_relations).double()


def direct(attention, relations, states, batch, child_relations) -> list[list[torch.Tensor]]:
    """Equations of section 3.2.2 for each head and pair; ``[N, B, D]`` to the states of the nodes of each tree."""
    kinds = relations_of(batch, child_relations)
    embedding = lambda table, picked: sum(table[row - 1] for row in picked if row)
    size = WIDTH // HEADS
    output = []
    for row, parents in enumerate(rows(batch)):
        nodes = range(len(parents))
        query, key, value = (
            [layer(states[node, row]).split(size) for node in nodes]
            for layer in (attention.q_proj, attention.k_proj, attention.v_proj)
        )
        output.append([])
        for i in nodes:
            heads = []
            for head in range(HEADS):
                scores = torch.stack(
                    [
                        query[i][head]
                        @ (key[j][head] + embedding(relations.keys, kinds[:, row, i, j].tolist()))
                        / size**0.5
                        for j in nodes
                    ]
                )
                shares = scores.softmax(0)
                heads.append(
                    sum(
                        shares[j] * (value[j][head] + embedding(relations.values, kinds[:, row, i, j].tolist()))
                        for j in nodes
                    )
                )
            output[-1].append(attention.out_proj(torch.cat(heads)))
    return output


@pytest.mark.parametrize("child_relations", [True, False])
@settings(max_examples=15, deadline=None)
@given(batch=batches(max_nodes=6))
def test_values_and_gradients_are_those_of_the_equations(child_relations, batch):
    attention, relations = build(child_relations)
    states = torch.randn(batch["labels"].size(1), len(batch["labels"]), WIDTH, dtype=torch.float64, requires_grad=True)
    parameters = [
        states,
        relations.keys,
        relations.values,
        attention.q_proj.weight,
        attention.k_proj.weight,
        attention.v_proj.weight,
    ]
    found = attended(attention, relations, states, batch)
    expected = direct(attention, relations, states, batch, child_relations)
    scale = torch.randn(WIDTH, dtype=torch.float64)
    losses = []
    for made in (found, None):
        total = 0
        for row, nodes in enumerate(expected):
            for node, state in enumerate(nodes):
                if made is not None:
                    torch.testing.assert_close(made[node, row], state)
                total = total + (scale * (state if made is None else made[node, row]) ** 2).sum()
        losses.append(torch.autograd.grad(total, parameters))
    for fast, slow in zip_equal(*losses):
        torch.testing.assert_close(fast, slow)


def test_dropout_is_of_weights():
    attention, relations = build()
    attention.dropout_module.p = 0.5
    batch = random_batch(1, [6, 4])
    states = torch.randn(6, 2, WIDTH, dtype=torch.float64)
    still = attended(attention, relations, states, batch)
    torch.testing.assert_close(still, attended(attention, relations, states, batch), rtol=0, atol=0)
    attention.train()
    assert not torch.allclose(still, attended(attention, relations, states, batch))
