"""Reduces stored trees for a model, compared with the same reduction of tree objects."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data_bin.corpora import block_of
from tests.strategies import deep_tree, forests, plain_trees
from tree_fairseq.data_bin.tree_store import TreeStore, TreeStoreWriter, build_label_dictionary
from tree_fairseq.nn.tree_batch import TreeReader, as_stored
from tree_fairseq.trees.bracket import read_forest
from tree_fairseq.trees.spans import encode
from tree_fairseq.trees.subwords import split_words
from tree_fairseq.trees.tree import Forest, Tree

LABELS = ("S", "NP", "VP", "PP", "NN", "DT", "VBZ")


def twin(forest: Forest) -> list[tuple[str, int, int, int]]:
    """(label, start, end, depth) of the nodes that remain, in preorder, from the definition."""
    rows = []

    def visit(tree: Tree, start: int, depth: int) -> None:
        chain = [tree]
        while len(chain[-1].children) == 1 and not chain[-1].is_preterminal:
            chain.append(chain[-1].children[0])
        lowest, width = chain[-1], len(tree.leaves())
        if width >= 2:
            rows.append((lowest.label, start, start + width, depth))
            for child in lowest.children:
                visit(child, start, depth + 1)
                start += len(child.leaves())

    offset = 0
    for tree in forest:
        visit(tree, offset, 0)
        offset += len(tree.leaves())
    return rows


def reader(keep_unary: bool = False) -> TreeReader:
    return TreeReader(build_label_dictionary(LABELS, {}), keep_unary)


def rows_of(read: TreeReader, forest: Forest) -> list[tuple[str, int, int, int]]:
    nodes = read(as_stored(encode(forest), read.labels))
    columns = (nodes.start.tolist(), nodes.end.tolist(), nodes.depth.tolist())
    return list(zip((read.labels[label] for label in nodes.label), *columns))


@settings(max_examples=60, deadline=None)
@given(forest=forests(plain_trees()))
def test_reduction_equals_the_definition(forest):
    assert rows_of(reader(), forest) == twin(forest)


def test_tags_and_chains_are_kept_where_they_are_wanted():
    forest = read_forest("(S (VP (VP (VBZ sleeps) (NN here)))) (NN x)")
    rows = [("S", 0, 2, 0), ("VP", 0, 2, 1), ("VP", 0, 2, 2), ("VBZ", 0, 1, 3), ("NN", 1, 2, 3), ("NN", 2, 3, 0)]
    assert rows_of(reader(keep_unary=True), forest) == rows


def test_a_word_that_is_split_becomes_a_node():
    forest = split_words(read_forest("(S (NP (NN boat)) (VBZ sleeps))"), [["bo@@", "at"], ["sleeps"]])
    assert rows_of(reader(), forest) == [("S", 0, 3, 0), ("NN", 0, 2, 1)]


def test_deep_chains_and_deep_trees_are_reduced():
    assert rows_of(reader(), (deep_tree(20_000, branching=False),)) == []
    nodes = reader()(as_stored(encode((deep_tree(20_000),)), reader().labels))
    assert len(nodes) == 19_999 and nodes.depth.tolist() == list(range(19_999))


# Stored trees


@settings(max_examples=25, deadline=None)
@given(lines=st.lists(forests(plain_trees()), max_size=6))
def test_stored_trees_are_reduced(tmp_path_factory, lines):
    read = reader()
    prefix = tmp_path_factory.mktemp("store") / "trees"
    with TreeStoreWriter(prefix) as writer:
        writer.add(block_of(lines, list(read.labels.symbols)))
    stored = TreeStore(prefix)
    assert len(stored) == len(lines)
    for item, forest in zip((read(stored[index]) for index in range(len(stored))), lines):
        assert list(zip(item.label, item.start, item.end, item.depth)) == [
            (read.labels.index(label), *span) for label, *span in twin(forest)
        ]
