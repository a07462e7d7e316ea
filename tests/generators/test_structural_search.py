"""The structural search against a search of all trees."""

from __future__ import annotations

import logging
import math

import pytest
import torch
from fairseq import search
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.generators.all_trees import Vocabulary, continuations, ranked
from tests.generators.table_models import TableModel, batch
from tree_fairseq.errors import StructuralSearchError
from tree_fairseq.generators.structural_search import StructuralGenerator
from tree_fairseq.trees.symbols import BINARIZATIONS, TRAVERSALS

SOURCE = [4, 5, 2]


def generator(vocabulary: Vocabulary, models, **options) -> StructuralGenerator:
    models = models if isinstance(models, list) else [models]
    return StructuralGenerator(models, vocabulary.dictionary, symbols=vocabulary.table, **options)


def generate(vocabulary: Vocabulary, models, sources=(SOURCE,), prefix=None, **options) -> list[list[dict]]:
    made = generator(vocabulary, models, **options)
    return made.generate(made.model.models, batch(list(sources)), prefix_tokens=prefix)


def found(hypotheses: list[dict]) -> list[tuple[tuple[int, ...], float]]:
    """Trees without EOS, and scores."""
    return [(tuple(hypothesis["tokens"][:-1].tolist()), float(hypothesis["score"])) for hypothesis in hypotheses]


def assert_same(hypotheses: list[dict], expected: list[tuple[tuple[int, ...], float]]) -> None:
    assert [tree for tree, _ in found(hypotheses)] == [tree for tree, _ in expected]
    for (_, score), (_, wanted) in zip(found(hypotheses), expected):
        assert score == pytest.approx(wanted, rel=1e-4)


forms = st.tuples(st.sampled_from(TRAVERSALS), st.sampled_from(BINARIZATIONS))


@st.composite
def vocabularies(draw, most: int = 4, unknown: bool = False) -> Vocabulary:
    traversal, binarization = draw(forms)
    arities = draw(st.lists(st.integers(0, 2 if binarization == "lcrs" else 3), min_size=1, max_size=most - 1))
    return Vocabulary.of([0, *arities], traversal, binarization, unknown)


@settings(max_examples=40, deadline=None)
@given(vocabulary=vocabularies(3), limit=st.integers(1, 6), seed=st.integers(0, 99), length_penalty=st.sampled_from([0.0, 1.0, 2.0]))
def test_a_beam_as_wide_as_there_are_trees_finds_all_in_order(vocabulary, limit, seed, length_penalty):
    trees = vocabulary.trees(limit)
    # fairseq takes no beam wider than the dictionary.
    while len(trees) >= len(vocabulary.dictionary):
        limit -= 1
        trees = vocabulary.trees(limit)
    model = TableModel(vocabulary.dictionary, seed)
    hypotheses = generate(vocabulary, model, beam_size=len(vocabulary.dictionary) - 1, max_len_b=limit, len_penalty=length_penalty)[0]
    assert_same(hypotheses, ranked(trees, lambda prefix: model.log_probabilities(SOURCE, prefix), length_penalty))
    for hypothesis in hypotheses:
        positional = hypothesis["positional_scores"]
        assert len(positional) == len(hypothesis["tokens"]) - 1
        assert float(positional.sum()) / len(positional) ** length_penalty == pytest.approx(float(hypothesis["score"]), rel=1e-4)
