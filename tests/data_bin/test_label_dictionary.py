"""The label dictionary: its entries, their order, and the labels of joined chains."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import strategies
from tests.trees.inverses import split_label
from tree_fairseq.data_bin.tree_store import (
    RESERVED_LABELS,
    ChainLabels,
    build_label_dictionary,
    join_labels,
    label_dictionary_name,
    load_label_dictionary,
    save_label_dictionary,
)
from tree_fairseq.errors import CorruptFileError, MissingTreesError, TreeFormatError
from tree_fairseq.trees.spans import encode, unary_chains

good_labels = strategies.labels().filter(lambda label: label not in RESERVED_LABELS)


def test_sorted_by_count_and_name_after_the_special_symbols():
    dictionary = build_label_dictionary(["ZP", "NP", "AP"], {"NP": 3, "VP": 7, "B": 3}, {("S", "VP"): 4})
    assert dictionary.symbols == ["<s>", "<pad>", "</s>", "<unk>", "VP", "S+VP", "B", "NP", "AP", "ZP"]
    assert dictionary.count[4:] == [7, 4, 3, 3, 0, 0]


@settings(deadline=None, max_examples=50)
@given(st.sets(good_labels), st.dictionaries(good_labels, st.integers(1, 5)))
def test_every_label_occurs_once_and_is_kept_in_the_file(tmp_path_factory, inventory, counts):
    path = tmp_path_factory.mktemp("labels") / label_dictionary_name("en")
    dictionary = build_label_dictionary(inventory, counts, {})
    save_label_dictionary(dictionary, path)
    again = load_label_dictionary(path)
    assert again.symbols == dictionary.symbols and again.count == dictionary.count
    assert sorted(again.symbols[again.nspecial :]) == sorted(inventory | set(counts))


@pytest.mark.parametrize("label", RESERVED_LABELS)
def test_labels_named_as_special_symbols_are_refused(label):
    with pytest.raises(TreeFormatError, match=label):
        build_label_dictionary([], {label: 1}, {})


def test_missing_and_damaged_files_are_refused(tmp_path):
    path = tmp_path / "dict.label.en.txt"
    with pytest.raises(MissingTreesError, match="dict.label.en.txt"):
        load_label_dictionary(path)
    for content in (b"NP", b"NP x\n", b"NP 1\nNP 1\n", b"\xff 1\n"):
        path.write_bytes(content)
        with pytest.raises(CorruptFileError, match="dict.label.en.txt"):
            load_label_dictionary(path)


@settings(deadline=None, max_examples=100)
@given(strategies.trees(label=st.sampled_from(["S", "NP", "A+B", "\\", "+"])))
def test_chain_labels_join_the_nodes_of_equal_spans(tree):
    forest = encode((tree,))
    dictionary = build_label_dictionary(forest.labels, {}, {})
    for _, chain in groupby(zip(forest.spans[:, :2].tolist(), forest.labels), itemgetter(0)):
        dictionary.add_symbol(join_labels(label for _, label in chain))
    kept, chain_start = unary_chains(forest.spans)
    labels = np.array([dictionary.index(label) for label in forest.labels])
    lookup = ChainLabels(dictionary)
    found = lookup.lookup(labels, chain_start, kept)
    expected = []
    for node, top in zip(kept.tolist(), chain_start.tolist()):
        chain = forest.labels[top : node + 1]
        expected.append(join_labels(chain) if len(chain) > 1 else chain[0])
    assert [dictionary[label] for label in found] == expected
    assert not lookup.unknown
    assert np.array_equal(lookup.lookup(labels, chain_start, kept), found)


def test_an_unseen_chain_is_unknown_and_counted():
    dictionary = build_label_dictionary(["S", "VP", "NP"], {}, {("S", "VP"): 1})
    lookup = ChainLabels(dictionary)
    labels = np.array([dictionary.index(label) for label in ("S", "NP", "S", "VP")], np.int32)
    for _ in range(2):
        found = lookup.lookup(labels, np.array([0, 2]), np.array([1, 3]))
        assert found.tolist() == [dictionary.unk(), dictionary.index("S+VP")]
    assert lookup.unknown == {"S+NP": 2}


@given(st.lists(strategies.labels() | st.text(), min_size=1, max_size=4))
@settings(deadline=None, max_examples=300)
def test_joined_labels_come_apart_again(parts):
    assert split_label(join_labels(parts)) == parts


def test_plain_labels_are_joined_plainly():
    assert join_labels(["S", "VP"]) == "S+VP"
    assert split_label("S+VP") == ["S", "VP"]
    assert join_labels(["A+B"]) == "A\\+B"
