"""Fault 27: a search closes a tree that is malformed, or never ends, or scores it by what is not a number.

tests/tree_positional/test_random_searches.py has random models, grammars and options; these are the worst of them.
"""

from __future__ import annotations

import math

import pytest
from fairseq import search

from tests.tree_positional.all_trees import Vocabulary
from tests.tree_positional.table_models import TableModel, batch
from tree_fairseq.tree_positional.search import StructuralGenerator

EOS = 2
WORST = {
    "ends at once": lambda vocabulary, table: [1e4 * (index == EOS) for index in range(len(table))],
    "never ends": lambda vocabulary, table: [1e4 * (arity > 0) for arity in table],
    "always pads": lambda vocabulary, table: [1e4 * (index == 1) for index in range(len(table))],
    "excludes all": lambda vocabulary, table: [-math.inf] * len(table),
    "is not a number": lambda vocabulary, table: [math.nan] * len(table),
    "is infinite": lambda vocabulary, table: [math.inf] * len(table),
}
STRATEGIES = {
    "beam": search.BeamSearch,
    "sampling": search.Sampling,
    "groups": lambda dictionary: search.DiverseBeamSearch(dictionary, 2, 0.5),
    "siblings": lambda dictionary: search.DiverseSiblingsSearch(dictionary, 0.5),
}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", WORST)
@pytest.mark.parametrize("form", [("dfs", "none"), ("bfs", "lcrs")])
def test_whatever_a_model_wants_a_search_ends_with_trees(name, strategy, form, caplog):
    vocabulary = Vocabulary.of([0, 1, 2, 0, 0], *form)
    model = TableModel(vocabulary.dictionary, bias=WORST[name](vocabulary, vocabulary.table.arity.tolist()))
    calls, look_up = [], model.decoder.look_up
    model.decoder.look_up = lambda *given: calls.append(1) or look_up(*given)
    for beam, limit in ((2, 1), (4, 7)):
        generator = StructuralGenerator(
            [model],
            vocabulary.dictionary,
            vocabulary.table,
            beam_size=beam,
            max_len_b=limit,
            search_strategy=STRATEGIES[strategy](vocabulary.dictionary),
        )
        calls.clear()
        [hypotheses] = generator.generate([model], batch([[4, 5, EOS]]))
        most = max(limit, generator.legal.smallest_tree)
        assert len(calls) <= most + 1
        assert hypotheses
        for hypothesis in hypotheses:
            assert vocabulary.is_tree(hypothesis["tokens"]) and len(hypothesis["tokens"]) - 1 <= most
            assert math.isfinite(hypothesis["score"]) and hypothesis["positional_scores"].isfinite().all()
        generator.generate([model], batch([[4, 5, EOS]]))
        # Each generator warns once.
        assert caplog.text.count("not numbers") == (name in ("excludes all", "is not a number", "is infinite"))
        caplog.clear()
