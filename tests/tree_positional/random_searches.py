"""Structural searches with random symbols, grammars, scores and options, and all that must hold of their results.

Every decision is read from bytes, so that a fuzzer can choose them and a number can repeat them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from fairseq import search
from fairseq.models import FairseqEncoderDecoderModel, FairseqIncrementalDecoder
from torch import Tensor

from tests.fuzz.law import Choices
from tests.tree_positional.all_trees import Vocabulary, by_id, rules_of
from tests.tree_positional.table_models import TableEncoder, batch
from tree_fairseq.data_bin.grammar import ROOT, Rule
from tree_fairseq.errors import StructuralSearchError
from tree_fairseq.tree_positional.search import StructuralGenerator
from tree_fairseq.trees.symbols import NULL

LIMITS = (1, 2, 3, 5, 8, 12)
BEAMS = (1, 2, 3, 5, 64)
MANY = 64  # Leaves that are added to some dictionaries: fairseq has fewer beams than symbols
ODD_SCORES = (0.0, 0.0, 0.0, 0.0, -1e4, 1e4, math.nan, -math.inf, math.inf)  # Added to the logits of some symbols
_MULTIPLIER, _BITS = 6364136223846793005, (1 << 24) - 1


def _mixed(numbers: Tensor) -> Tensor:
    """Scatters integers over all 64 bits; overflow wraps around."""
    numbers = (numbers ^ (numbers >> 31)) * _MULTIPLIER + 1442695040888963407
    return (numbers ^ (numbers >> 29)) * _MULTIPLIER


class HashDecoder(FairseqIncrementalDecoder):
    """Random logits of the next symbol for every source and prefix, a batch at a time.

    It keeps a hash of each row's prefix, so rows that are reordered wrongly get other logits.
    """

    seed, sharpness, bias, odd, positions = 0, 1.0, 0.0, None, 100
    calls = 0

    def forward(self, prev_output_tokens, encoder_out=None, incremental_state=None, **kwargs):
        """Logits ``[R, 1, V]``."""
        type(self).calls += 1
        state = self.get_incremental_state(incremental_state, "hash") or {}
        tokens = prev_output_tokens[:, -1:] if state else prev_output_tokens
        hashes = state.get("hash")
        if hashes is None:
            hashes = _mixed(encoder_out["source"].sum(dim=1) + self.seed)
        for column in tokens.unbind(dim=1):
            hashes = _mixed(hashes + column)
        self.set_incremental_state(incremental_state, "hash", {"hash": hashes})
        drawn = _mixed(hashes[:, None] + torch.arange(len(self.dictionary)))  # [R, V]
        logits = ((drawn >> 20 & _BITS).double() / _BITS - 0.5) * (6 * self.sharpness) + self.bias
        if self.odd is not None:
            # A quarter of all rows.
            logits = logits + self.odd * (drawn[:, :1] >> 50 & 3 == 0)
        return logits[:, None].float(), None

    def reorder_incremental_state(self, incremental_state, new_order):
        """Moves the hashes with the beam."""
        state = self.get_incremental_state(incremental_state, "hash")
        self.set_incremental_state(incremental_state, "hash", {"hash": state["hash"].index_select(0, new_order)})

    def max_positions(self):
        return self.positions


def _model(vocabulary: Vocabulary, seed: int, sharpness: float, odd: Tensor | None) -> FairseqEncoderDecoderModel:
    decoder = HashDecoder(vocabulary.dictionary)
    decoder.seed, decoder.sharpness, decoder.odd = seed, sharpness, odd
    return FairseqEncoderDecoderModel(TableEncoder(vocabulary.dictionary), decoder)


def _grammar(vocabulary: Vocabulary, choices: Choices) -> set[Rule] | None:
    """The rules of some small trees, any rules, or None for all that symbols allow."""
    kind = choices.number(3)
    if kind == 0:
        return None
    if kind == 1 and len(vocabulary.dictionary) < MANY:
        trees = vocabulary.trees(4)
        chosen = [trees[choices.number(len(trees))] for _ in range(1 + choices.number(4)) if trees]
        return rules_of(vocabulary, chosen) if chosen else None
    symbols = [name for name in vocabulary.dictionary.symbols if "^" in name or name == NULL]
    names = [ROOT, *(name for name in symbols if name != NULL)]
    rules = {(ROOT, 0, choices.of(symbols))}
    for _ in range(1 + choices.number(8 * len(symbols))):
        parent = choices.of(names)
        rules.add((parent, 0 if parent == ROOT else choices.number(3), choices.of(symbols)))
    # The root has no next sibling, whatever a grammar says.
    roots = [child for parent, _, child in rules if parent == ROOT] if NULL in symbols else []
    return rules | {(root, 1, NULL) for root in roots if root != NULL}


def _strategy(vocabulary: Vocabulary, choices: Choices, beam: int) -> tuple[search.Search, int]:
    dictionary, kind = vocabulary.dictionary, choices.number(8)
    if kind < 3:
        return search.BeamSearch(dictionary), beam
    if kind == 3:
        groups = 2 if beam % 2 == 0 else 1
        return search.DiverseBeamSearch(dictionary, groups, choices.of((0.5, 5.0))), beam
    if kind == 4:
        return search.DiverseSiblingsSearch(dictionary, choices.of((0.5, 5.0))), min(beam, len(dictionary) // 2)
    options = ({}, {"sampling_topk": 1 + choices.number(4)}, {"sampling_topp": choices.of((0.1, 0.8, 1.0))})[kind - 5]
    return search.Sampling(dictionary, **options), beam


@dataclass
class RandomSearch:
    vocabulary: Vocabulary
    rules: set[Rule] | None
    models: list[FairseqEncoderDecoderModel]
    sources: list[list[int]]
    prefixes: list[list[int]]
    options: dict[str, Any]
    seed: int

    @classmethod
    def draw(cls, choices: Choices, most_sources: int) -> RandomSearch:
        traversal, binarization = choices.of(("dfs", "bfs")), choices.of(("none", "lcrs"))
        most = 3 if binarization == "lcrs" else 4
        arities = [0, *(choices.number(most) for _ in range(1 + choices.number(3)))]
        if choices.number(6) == 1:
            arities += [0] * MANY
        vocabulary = Vocabulary.of(arities, traversal, binarization, bool(choices.number(2)))
        beam = min(choices.of(BEAMS), len(vocabulary.dictionary) - 1)
        strategy, beam = _strategy(vocabulary, choices, beam)
        odd = None
        if choices.number(3) == 1:
            odd = torch.tensor([choices.of(ODD_SCORES) for _ in range(len(vocabulary.dictionary))])
        sharpness = choices.of((1.0, 0.0, 10.0, 1e4))
        models = [_model(vocabulary, choices.number(256), sharpness, odd) for _ in range(1 + choices.number(3))]
        symbols = [index for index, arity in enumerate(vocabulary.table.arity.tolist()) if arity >= 0]
        sources = [
            [*(4 + choices.number(3) for _ in range(1 + choices.number(6))), 2]
            for _ in range(1 + choices.number(most_sources))
        ]
        prefixes = []
        if choices.number(5) == 1:
            prefixes = [[choices.of(symbols) for _ in range(choices.number(3))] for _ in sources]
        options = {
            "max_len_a": choices.of((0, 0, 0.5, 2)),
            "max_len_b": choices.of(LIMITS),
            "beam_size": beam,
            "len_penalty": choices.of((1.0, 0.0, 2.0, -1.0)),
            "normalize_scores": not choices.number(3),
            "unk_penalty": choices.of((0.0, 1.0, -1.0, math.inf)),
            "temperature": choices.of((1.0, 0.01, 10.0)),
            "search_strategy": strategy,
        }
        grammar = _grammar(vocabulary, choices)
        return cls(vocabulary, grammar, models, sources, prefixes, options, choices.number(256))

    def limit(self, source: list[int]) -> int:
        """The greatest number of symbols that a tree of a source was meant to have."""
        return int(self.options["max_len_a"] * len(source) + self.options["max_len_b"])

    def generator(self) -> StructuralGenerator | None:
        grammar = None if self.rules is None else by_id(self.vocabulary, self.rules)
        vocabulary = self.vocabulary
        try:
            return StructuralGenerator(
                self.models, vocabulary.dictionary, vocabulary.table, grammar=grammar, **self.options
            )
        except StructuralSearchError:
            assert not self._trees(4), "there are trees"
            return None

    def _trees(self, limit: int) -> list[tuple[int, ...]]:
        symbols = self.vocabulary.dictionary
        without = ()
        if self.options["unk_penalty"] == math.inf:
            without = tuple(index for index, name in enumerate(symbols.symbols) if name.startswith(("<unk>", "<unk:")))
        return self.vocabulary.trees(min(limit, self._most_tried), self.rules, without)

    @property
    def _most_tried(self) -> int:
        """Up to which size all trees are tried."""
        return 5 if len(self.vocabulary.dictionary) < MANY else 2

    def run(self) -> int:
        """Searches, and checks all that holds of any search; returns the number of sentences that got trees."""
        generator = self.generator()
        if generator is None:
            return 0
        sample, prefix = batch(self.sources), None
        if any(self.prefixes):
            width = max(map(len, self.prefixes))
            prefix = torch.tensor([[*row, *[1] * (width - len(row))] for row in self.prefixes])
        torch.manual_seed(self.seed)
        HashDecoder.calls = 0
        try:
            found = generator.generate(generator.model.models, sample, prefix_tokens=prefix)
        except StructuralSearchError:
            self._check_refused_prefix(generator)
            return 0
        limits = [max(self.limit(source), generator.legal.smallest_tree) for source in self.sources]
        assert HashDecoder.calls <= len(self.models) * (max(limits) + 1), "the search went on for too long"
        assert len(found) == len(self.sources)
        for number, hypotheses in enumerate(found):
            self._check(hypotheses, limits[number], self.prefixes[number] if self.prefixes else [])
        return len(found)

    def _check_refused_prefix(self, generator: StructuralGenerator) -> None:
        assert any(self.prefixes), "a search without a prefix is refused when it is built"
        missing = 0
        for source, prefix in zip(self.sources, self.prefixes):
            limit = max(self.limit(source), generator.legal.smallest_tree)
            trees = self._trees(limit)
            missing += limit > self._most_tried or not any(tree[: len(prefix)] == tuple(prefix) for tree in trees)
        assert missing, "every prefix begins a tree"

    def _check(self, hypotheses: list[dict], limit: int, prefix: list[int]) -> None:
        """One sentence: valid, finite, sorted, within the limits, as the prefix begins, and without repetitions."""
        assert 0 < len(hypotheses) <= self.options["beam_size"]
        scores = [float(hypothesis["score"]) for hypothesis in hypotheses]
        assert all(map(math.isfinite, scores)) and scores == sorted(scores, reverse=True)
        trees = [tuple(hypothesis["tokens"].tolist()) for hypothesis in hypotheses]
        strategy = self.options["search_strategy"]
        assert isinstance(strategy, (search.Sampling, search.DiverseBeamSearch)) or len(set(trees)) == len(trees)
        for tokens, hypothesis in zip(trees, hypotheses):
            assert self.vocabulary.is_tree(tokens), [self.vocabulary.dictionary[token] for token in tokens]
            assert len(tokens) - 1 <= limit
            assert list(tokens[: len(prefix)]) == prefix
            assert self.rules is None or rules_of(self.vocabulary, [tokens[:-1]]) <= self.rules
            steps = hypothesis["positional_scores"]
            assert len(steps) == len(tokens) - 1 and torch.isfinite(steps).all()
            if type(strategy) is search.BeamSearch:
                total = float(steps.double().sum())
                power = self.options["len_penalty"] if self.options["normalize_scores"] else 0
                expected = total / len(steps) ** power
                assert float(hypothesis["score"]) == pytest.approx(expected, rel=1e-3, abs=1e-2)
