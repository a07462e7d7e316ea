"""Documents: matrices in steps, trees as lists, one and two systems."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
from fairseq.data import FairseqDataset
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.explorer.untrained import matrix_values, untrained
from tests.strategies import forests
from tree_fairseq.drawing.views import matrix_record, tree_record
from tree_fairseq.errors import InputError
from tree_fairseq.explorer.comparison import Comparison
from tree_fairseq.explorer.systems import System
from tree_fairseq.trees.tree import tree_from_preorder

STOCK = "--encoder-layers", 1, "--decoder-layers", 1, "--encoder-embed-dim", 16, "--decoder-embed-dim", 16


@given(st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=1, max_size=4))
def test_matrices_are_exact_up_to_half_a_step(rows):
    values = np.array(rows)
    record = matrix_record(values)
    assert record["shape"] == list(values.shape) and json.loads(json.dumps(record)) == record
    np.testing.assert_allclose(matrix_values(record), values, atol=values.max() / 510 + 2e-6)


def test_a_matrix_of_zeros_or_of_what_is_not_finite_has_only_zeros():
    for values in (np.zeros((2, 2)), np.full((2, 2), np.nan), np.zeros((0, 3))):
        assert not matrix_values(matrix_record(values)).any()


@settings(max_examples=30)
@given(forests(min_trees=1))
def test_trees_are_lists_in_preorder(forest):
    record = tree_record(forest)
    first = len(list(forest[0].preorder()))
    assert tree_from_preorder(record["labels"][:first], record["children"][:first]) == forest[0]
    assert len(record["labels"]) == sum(len(list(tree.preorder())) for tree in forest)


def test_two_systems_share_the_sentences(tree_system, stock_system):
    document = Comparison([tree_system, stock_system], "Both").document_of_split("test", 4)
    value = json.loads(json.dumps(document.to_dict(), allow_nan=False))
    assert [system["method"] for system in value["systems"]] == ["tree_transformer", "sequence"]
    assert [system["architecture"] for system in value["systems"]] == ["tree_transformer_tiny", "transformer"]
    assert [system["metric"] for system in value["systems"]] == ["sentence BLEU"] * 2
    assert all(len(sentence["systems"]) == 2 and sentence["parse"] for sentence in value["sentences"])
    assert all(isinstance(output["metric"], float) for each in value["sentences"] for output in each["systems"])
    assert "accumulation" in value["sentences"][0]["systems"][0]["views"]
    assert list(value["sentences"][0]["systems"][1]["views"]) == ["cross_attention"]


def test_a_stock_model_writes_trees_where_its_folder_holds_trees(symbol_system, symbol_data):
    stock = System(untrained(symbol_data, "translation", "transformer", *STOCK), "stock", beam=2, max_len_b=8)
    document = Comparison([symbol_system, stock]).document_of_split("test", 3)
    assert [system.metric for system in document.systems] == ["exact match", "exact match"]
    ours, theirs = ([system.reader.read_split("test", 1)] for system in (symbol_system, stock))
    [sentence], [same] = map(list, (*ours, *theirs))
    assert stock.reference(same) == symbol_system.reference(sentence) and "(" in stock.reference(same)
    assert stock.metric.compare("", same.target, "", same.target) == 100


def test_trees_and_raw_text_are_compared_by_exact_match(symbol_system, stock_system):
    stock = copy.copy(stock_system)
    assert stock.metric.name == "sentence BLEU"
    Comparison([symbol_system, stock])
    assert stock.metric.name == stock.record.metric == symbol_system.metric.name == "exact match"
    assert [stock.metric.compare("f ( a )", [], text, []) for text in ("f ( a )", "f ( b )")] == [100, 0]
    assert stock_system.record.metric == "sentence BLEU"


def test_typed_lines_have_no_metric(stock_system):
    document = Comparison([stock_system]).document_of_lines(["she sees it ."]).to_dict()
    assert document["systems"][0]["metric"] is None and document["sentences"][0]["reference"] is None


class OneSentence(FairseqDataset):
    """A split that is too short."""

    def __len__(self) -> int:
        return 1


def test_systems_need_the_same_sentences(stock_system, symbol_system, monkeypatch):
    monkeypatch.setitem(symbol_system.task.datasets, "valid", OneSentence())
    with pytest.raises(InputError, match="different numbers of sentences in 'valid': 16 and 1"):
        Comparison([stock_system, symbol_system]).document_of_split("valid", 4)
