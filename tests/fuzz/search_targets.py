"""Searches with random answers of models: the structural beam, and the decoders of insertions."""

from __future__ import annotations

import math

import torch
from torch import nn

from tests.fuzz.law import Choices, target
from tests.tree_insertion.slot_batches import DICTIONARY
from tests.tree_insertion.slot_tables import SlotTable
from tests.tree_insertion.test_sequence_search import SEQUENCES, SequenceTable
from tests.tree_positional.random_searches import ODD_SCORES, RandomSearch
from tests.tree_positional.table_models import batch
from tree_fairseq.tree_insertion.parallel_search import InsertionLimits, ParallelSearch
from tree_fairseq.tree_insertion.search import InsertionGenerator
from tree_fairseq.tree_insertion.sequences import SequenceInsertionGenerator


@target(lambda: [b"", bytes(range(64)), b"\x01" * 48, b"\x02\x00\x01\x03" * 16, bytes(range(200, 0, -3))])
def structural_beam(data: bytes) -> None:
    """A search over some sources: its trees are valid, finite, sorted and within the limits."""
    RandomSearch.draw(Choices(data), 3).run()


class OddAnswers(nn.Module):
    """A model some of whose answers are infinite or not numbers."""

    def __init__(self, model, choices: Choices, size: int):
        super().__init__()
        self.model, self.sequences = model, getattr(model, "sequences", None)
        self.odd = torch.tensor([choices.of(ODD_SCORES) for _ in range(size)])
        self.every = 1 + choices.number(5)

    def max_decoder_positions(self) -> int:
        return self.model.max_decoder_positions()

    def encode(self, **inputs):
        return self.model.encode(**inputs)

    def decode(self, memory, partial):
        """The answers of the model, every few slots with something odd."""
        output = self.model.decode(memory, partial)
        output["logits"][:: self.every] += self.odd
        return output


def _models(choices: Choices, make, size: int) -> list:
    models = [make() for _ in range(1 + choices.number(3))]
    return [OddAnswers(model, choices, size) if choices.number(3) == 1 else model for model in models]


def _generate(generator: ParallelSearch, models: list, choices: Choices, limits: InsertionLimits) -> list[dict]:
    """The hypotheses of some sources, one each, with finite scores."""
    sources = [[4 + choices.number(6) for _ in range(1 + choices.number(5))] for _ in range(1 + choices.number(4))]
    found = generator.generate(models, batch(sources))
    assert len(found) == len(sources) and all(len(hypotheses) == 1 for hypotheses in found)
    for (hypothesis,) in found:
        assert math.isfinite(hypothesis["score"]) and hypothesis["score"] <= 0
        assert hypothesis["positional_scores"].isfinite().all()
        assert len(hypothesis["positional_scores"]) == len(hypothesis["tokens"])
        assert 1 <= hypothesis["steps"] <= limits.steps
    return [hypothesis for (hypothesis,) in found]


_SEEDS = [b"", bytes(range(64)), b"\x01" * 48, bytes(range(200, 0, -3))]


@target(lambda: _SEEDS)
def insertion_trees(data: bytes) -> None:
    """Trees that grow by random insertions."""
    choices = Choices(data)
    limits = InsertionLimits(steps=choices.of((1, 2, 5, 8)), nodes=choices.of((1, 2, 9, 30)))
    keeps = (0.6, 0.0, 0.3, -5.0)
    models = _models(choices, lambda: SlotTable(choices.number(256), choices.of(keeps)), len(DICTIONARY))
    generator = InsertionGenerator(models, DICTIONARY, limits, bool(choices.number(2)), keep_history=True)
    labels = set(DICTIONARY.label_ids.tolist())
    for hypothesis in _generate(generator, models, choices, limits):
        ids, parents = hypothesis["labels"].tolist(), hypothesis["parents"].tolist()
        assert len(ids) - 1 <= limits.nodes
        assert ids[0] == DICTIONARY.root and set(ids[1:]) <= labels
        assert parents[0] == -1 and all(0 <= parent < node for node, parent in enumerate(parents) if node)
        assert hypothesis["tokens"].tolist() == DICTIONARY.sequence(ids, parents).tolist()
        assert len(hypothesis["history"]) == hypothesis["steps"]
        assert not hypothesis["is_complete"] or parents.count(0) == 1


@target(lambda: _SEEDS)
def insertion_sequences(data: bytes) -> None:
    """Sequences of labels and brackets that grow by random insertions."""
    choices = Choices(data)
    limits = InsertionLimits(steps=choices.of((1, 2, 5, 8)), nodes=choices.of((1, 2, 9, 30)))
    positions = choices.of((100, 3, 10))
    models = _models(
        choices, lambda: SequenceTable(choices.number(256), choices.of((1.0, 0.0, -5.0)), positions), len(SEQUENCES)
    )
    generator = SequenceInsertionGenerator(models, limits, bool(choices.number(2)))
    allowed = {*SEQUENCES.label_ids.tolist()}
    for hypothesis in _generate(generator, models, choices, limits):
        tokens = hypothesis["tokens"].tolist()
        assert tokens == [SEQUENCES.eos()] or (tokens and set(tokens) <= allowed)
        assert tokens.count(SEQUENCES.open) == tokens.count(SEQUENCES.close)
        predicted = int((hypothesis["positional_scores"] != 0).sum())
        assert predicted <= min(3 * limits.nodes, positions - 2)
