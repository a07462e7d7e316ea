"""The structural beam with random grammars, scores and options: trees are valid, finite, sorted, within the limits."""

from __future__ import annotations

import math

import torch

from tests.fuzz.law import Choices, target
from tests.tree_positional.all_trees import Vocabulary, by_id, rules_of
from tests.tree_positional.table_models import TableModel, batch
from tree_fairseq.data_bin.symbol_dictionary import Rule
from tree_fairseq.tree_positional.search import StructuralGenerator

_TRAVERSALS, _BINARIZATIONS = ("dfs", "bfs"), ("none", "lcrs")


def _grammar(vocabulary: Vocabulary, choices: Choices) -> set[Rule] | None:
    """The rules of some small trees, or None for all."""
    trees = vocabulary.trees(4) if choices.number(2) else []
    chosen = [trees[choices.number(len(trees))] for _ in range(1 + choices.number(4)) if trees]
    return rules_of(vocabulary, chosen) if chosen else None


@target(lambda: [b"", bytes(range(32)), b"\x01" * 24, b"\x02\x00\x01\x03" * 8])
def structural_beam(data: bytes) -> None:
    """A search over one or two sources."""
    choices = Choices(data)
    traversal, binarization = choices.of(_TRAVERSALS), choices.of(_BINARIZATIONS)
    most = 3 if binarization == "lcrs" else 4
    arities = [0, *(choices.number(most) for _ in range(1 + choices.number(3)))]
    vocabulary = Vocabulary.of(arities, traversal, binarization, bool(choices.number(2)))
    rules = _grammar(vocabulary, choices)
    limit, beam = choices.of((1, 2, 3, 6, 9, 12)), choices.of((1, 2, 3, 5, 64))
    options = {
        "max_len_b": limit,
        "beam_size": min(beam, len(vocabulary.dictionary) - 1) if choices.number(4) else beam,
        "len_penalty": choices.of((1.0, 0.0, 2.0, -1.0)),
        "normalize_scores": not choices.number(3),
        "unk_penalty": choices.of((0.0, 1.0, -1.0)),
        "temperature": choices.of((1.0, 0.01, 10.0)),
        "no_repeat_ngram_size": choices.of((0, 0, 1, 2)),
        "min_len": choices.of((1, 1, 2, 5)),
        "grammar": None if rules is None else by_id(vocabulary, rules),
    }
    sharpness, bias = choices.of((1.0, 0.0, 30.0, 1e4)), choices.of((0.0, -1e4, 1e4))
    models = [
        TableModel(vocabulary.dictionary, choices.number(256), sharpness, bias, bool(choices.number(2)))
        for _ in range(1 + choices.number(2))
    ]
    sources = [[4, 5, 2], [5, 4, 4, 2]][: 1 + choices.number(2)]
    prefix = torch.tensor([[4]] * len(sources)) if choices.number(5) == 1 else None
    generator = StructuralGenerator(models, vocabulary.dictionary, symbols=vocabulary.table, **options)
    found = generator.generate(generator.model.models, batch(sources), prefix_tokens=prefix)
    assert len(found) == len(sources)
    for hypotheses in found:
        scores = [float(hypothesis["score"]) for hypothesis in hypotheses]
        assert all(map(math.isfinite, scores)) and scores == sorted(scores, reverse=True)
        assert 0 < len(hypotheses) <= options["beam_size"]
        trees = [tuple(hypothesis["tokens"].tolist()) for hypothesis in hypotheses]
        assert len(set(trees)) == len(trees)
        for tokens, hypothesis in zip(trees, hypotheses):
            assert vocabulary.is_tree(tokens), [vocabulary.dictionary[token] for token in tokens]
            # A limit below the smallest tree is raised, with a warning.
            assert len(tokens) - 1 <= max(limit, generator.legal.smallest_tree)
            assert torch.isfinite(hypothesis["positional_scores"]).all()
            assert rules is None or rules_of(vocabulary, [tokens[:-1]]) <= rules
            assert prefix is None or tokens[0] == 4
