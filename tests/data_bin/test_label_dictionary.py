"""The label dictionary: its entries and their order."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import strategies
from tree_fairseq.data_bin import tree_store
from tree_fairseq.errors import CorruptFileError, MissingTreesError, TreeFormatError

good_labels = strategies.labels().filter(lambda label: label not in tree_store.RESERVED_LABELS)


def test_sorted_by_count_and_name_after_the_special_symbols():
    dictionary = tree_store.build_label_dictionary(["ZP", "NP", "AP"], {"NP": 3, "VP": 7, "B": 3})
    assert dictionary.symbols == ["<s>", "<pad>", "</s>", "<unk>", "VP", "B", "NP", "AP", "ZP"]
    assert dictionary.count[4:] == [7, 3, 3, 0, 0]


@settings(deadline=None, max_examples=50)
@given(st.sets(good_labels), st.dictionaries(good_labels, st.integers(1, 5)))
def test_every_label_occurs_once_and_is_kept_in_the_file(tmp_path_factory, inventory, counts):
    path = tmp_path_factory.mktemp("labels") / tree_store.label_dictionary_name("en")
    dictionary = tree_store.build_label_dictionary(inventory, counts)
    tree_store.save_label_dictionary(dictionary, path)
    again = tree_store.load_label_dictionary(path)
    assert again.symbols == dictionary.symbols and again.count == dictionary.count
    assert sorted(again.symbols[again.nspecial :]) == sorted(inventory | set(counts))


@pytest.mark.parametrize("label", tree_store.RESERVED_LABELS)
def test_labels_named_as_special_symbols_are_refused(label):
    with pytest.raises(TreeFormatError, match=label):
        tree_store.build_label_dictionary([], {label: 1})


def test_missing_and_damaged_files_are_refused(tmp_path):
    path = tmp_path / "dict.label.en.txt"
    with pytest.raises(MissingTreesError, match="dict.label.en.txt"):
        tree_store.load_label_dictionary(path)
    for content in (b"NP", b"NP x\n", b"NP 1\nNP 1\n", b"\xff 1\n"):
        path.write_bytes(content)
        with pytest.raises(CorruptFileError, match="dict.label.en.txt"):
            tree_store.load_label_dictionary(path)
