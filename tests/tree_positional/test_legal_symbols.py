"""Which symbols may come next, against all trees that there are."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tree_positional.all_trees import Vocabulary, by_id, continuations, rules_of
from tree_fairseq.data_bin.grammar import ROOT
from tree_fairseq.errors import StructuralSearchError
from tree_fairseq.tree_positional.hypotheses import LegalSymbols, TreeHypotheses
from tree_fairseq.trees.symbols import BINARIZATIONS, NULL, TRAVERSALS

PAD = 1


@st.composite
def vocabularies(draw) -> Vocabulary:
    binarization = draw(st.sampled_from(BINARIZATIONS))
    arities = draw(st.lists(st.integers(0, 2 if binarization == "lcrs" else 3), max_size=3))
    return Vocabulary.of([0, *arities], draw(st.sampled_from(TRAVERSALS)), binarization)


def legal_after(vocabulary: Vocabulary, legal: LegalSymbols, prefixes, limit: int) -> list[set[int]]:
    """What may follow prefixes of the same length, followed symbol by symbol."""
    trees = TreeHypotheses(vocabulary.table, legal, torch.full((len(prefixes),), limit), 1, None, PAD)
    illegal = trees.illegal_symbols()
    for tokens in torch.tensor(prefixes, dtype=torch.int64).unbind(1):
        trees.advance(tokens)
        illegal = trees.illegal_symbols()
    assert not trees.is_dead.any()
    assert trees.is_complete.tolist() == (illegal > 0).all(dim=1).tolist()
    return [set((row == 0).nonzero().flatten().tolist()) for row in illegal]


def assert_legal_symbols_are(vocabulary, legal, trees, limit):
    following = continuations(trees)
    for length in {len(prefix) for prefix in following}:
        prefixes = [prefix for prefix in following if len(prefix) == length]
        assert legal_after(vocabulary, legal, prefixes, limit) == [following[prefix] for prefix in prefixes]


@settings(max_examples=50, deadline=None)
@given(vocabulary=vocabularies(), limit=st.integers(1, 6))
def test_a_symbol_is_legal_where_a_tree_has_it(vocabulary, limit):
    legal = LegalSymbols.build(vocabulary.table)
    assert_legal_symbols_are(vocabulary, legal, vocabulary.trees(limit), limit)
    assert legal.smallest_tree == 1


@settings(max_examples=80, deadline=None)
@given(data=st.data(), vocabulary=vocabularies(), limit=st.integers(1, 6))
def test_a_grammar_forbids_what_no_tree_of_its_rules_has(data, vocabulary, limit):
    seen = data.draw(st.lists(st.sampled_from(vocabulary.trees(6)), min_size=1, max_size=3))
    rules = rules_of(vocabulary, seen)
    # Without one rule, others may lead to no tree; that the root has no sibling needs no rule.
    needless = [rule for rule in sorted(rules) if rule[2] != NULL]
    spoilt = rules - {data.draw(st.sampled_from(needless))} if data.draw(st.booleans()) else rules
    trees = vocabulary.trees(6, spoilt)
    if not trees:
        return
    legal = LegalSymbols.build(vocabulary.table, by_id(vocabulary, spoilt))
    assert legal.smallest_tree == min(map(len, trees))
    trees = [tree for tree in trees if len(tree) <= limit]
    if trees:
        assert_legal_symbols_are(vocabulary, legal, trees, limit)


def test_a_grammar_without_finite_trees_is_refused():
    vocabulary = Vocabulary.of([0, 1], "dfs", "none")
    with pytest.raises(StructuralSearchError, match="under the grammar"):
        LegalSymbols.build(vocabulary.table, by_id(vocabulary, {(ROOT, 0, "b^1"), ("b^1", 0, "b^1")}))
