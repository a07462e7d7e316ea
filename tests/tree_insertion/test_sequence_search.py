"""Sequences grown by insertions, a batch at a time, against one sentence at a time with lists."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass

import pytest
import torch

from tests.tree_insertion.slot_batches import label_dictionary
from tests.tree_positional.table_models import batch
from tree_fairseq.errors import StructuralSearchError
from tree_fairseq.tree_insertion.dictionary import SequenceDictionary
from tree_fairseq.tree_insertion.parallel_search import InsertionLimits, balanced_hypothesis
from tree_fairseq.tree_insertion.sequence_search import LeftToRightGenerator, SequenceInsertionGenerator

SEQUENCES = SequenceDictionary(label_dictionary("a", "b", "c"), 2)
PAD, EOS = SEQUENCES.pad(), SEQUENCES.eos()
SOURCES = [[4, 5], [7], [5, 6, 7], [9, 8, 4, 4, 5], [6], [4, 9], [5, 5], [8, 7, 6]]


@dataclass(frozen=True)
class Sums:
    """The sum of each source."""

    sums: torch.Tensor

    def select(self, rows):
        return Sums(self.sums[rows])


class SequenceTable:
    """Answers a slot by the tokens beside it and the sum of the source."""

    sequences = SEQUENCES

    def __init__(self, seed: int, keep: float = 1.0, positions: int = 100):
        random = torch.Generator().manual_seed(seed)
        size = len(SEQUENCES)
        self.beside = torch.randn(size, size, size, generator=random)
        self.beside[..., EOS] += keep
        self.of_sums = torch.randn(7, size, generator=random)
        self.positions = positions

    def eval(self):
        return self

    def max_decoder_positions(self):
        return self.positions

    def encode(self, src_tokens, src_lengths):
        return Sums(src_tokens.masked_fill(src_tokens == PAD, 0).sum(1) % 7)

    def scores(self, left, right, total):
        return self.beside[left, right] + self.of_sums[total]

    def decode(self, memory, partial):
        width = partial.size(1)
        exists = (partial[:, :-1] != PAD) & (partial[:, 1:] != PAD)
        logits = self.scores(partial[:, :-1], partial[:, 1:], memory.sums[:, None].expand(-1, width - 1))[exists]
        rows, places = exists.nonzero(as_tuple=True)
        return {"slot": width * rows + places, "logits": logits, "delete": None}


def decode_alone(
    models, source: list[int], limits: InsertionLimits, most: int
) -> tuple[list[int], list[float], int, float]:
    """The same for one sentence: tokens, their scores, steps and the mean score."""
    allowed = {*SEQUENCES.label_ids.tolist(), EOS}
    total = sum(source) % 7
    tokens, said, every = [SEQUENCES.bos(), EOS], [0.0, 0.0], []
    for step in range(1, limits.steps + 1):
        new_tokens, new_said, inserted = tokens[:1], said[:1], 0
        for left, right, score in zip(tokens, tokens[1:], said[1:]):
            mean = torch.stack([model.scores(left, right, total).softmax(0) for model in models]).mean(0)
            best = max(allowed, key=lambda index: float(mean[index]))
            every.append(math.log(mean[best]))
            if best != EOS:
                inserted += 1
                new_tokens.append(best)
                new_said.append(every[-1])
            new_tokens.append(right)
            new_said.append(score)
        if not inserted or len(new_tokens) > most:
            break
        tokens, said = new_tokens, new_said
    return tokens[1:-1], said[1:-1], step, sum(every) / len(every)


MODELS = {
    "one": [SequenceTable(1)],
    "long": [SequenceTable(2, keep=0.0)],
    "several": [SequenceTable(3), SequenceTable(4, keep=0.5)],
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "limits", [InsertionLimits(8), InsertionLimits(steps=3), InsertionLimits(8, nodes=2)], ids=["many", "few", "nodes"]
)
def test_a_batch_is_its_sentences_one_by_one(name, limits, caplog):
    models = MODELS[name]
    generator = SequenceInsertionGenerator(models, limits)
    with caplog.at_level(logging.WARNING):
        found = generator.generate(models, batch(SOURCES))
    complete = 0
    for source, (hypothesis,) in zip(SOURCES, found, strict=True):
        tokens, said, steps, score = decode_alone(models, source, limits, min(3 * limits.nodes + 2, 100))
        expected = balanced_hypothesis(torch.tensor(tokens, dtype=torch.long), torch.tensor(said), SEQUENCES)
        assert hypothesis["tokens"].equal(expected["tokens"]) and hypothesis["steps"] == steps
        torch.testing.assert_close(hypothesis["positional_scores"], expected["positional_scores"], rtol=1e-4, atol=1e-5)
        assert hypothesis["score"] == pytest.approx(score, abs=1e-4)
        complete += hypothesis["is_complete"]
    partial = len(SOURCES) - complete
    assert (
        generator.counts["sequences"] == len(SOURCES)
        and generator.counts["tokens"] + generator.counts["steps"] == partial
    )
    assert bool(caplog.messages) == bool(partial)


def test_positions_limit_sequences():
    models = [SequenceTable(2, keep=0.0, positions=6), SequenceTable(5, keep=0.0)]
    found = SequenceInsertionGenerator(models).generate(models, batch(SOURCES))
    assert all(len(hypothesis["positional_scores"].nonzero()) <= 4 for (hypothesis,) in found)


def test_prefixes_and_other_ensembles_are_refused():
    models = [SequenceTable(1)]
    with pytest.raises(StructuralSearchError, match="--prefix-size"):
        SequenceInsertionGenerator(models).generate(models, batch(SOURCES), prefix_tokens=torch.ones(8, 1))
    other = SequenceTable(1)
    other.sequences = SequenceDictionary(SEQUENCES.labels, 5)
    for generator in (SequenceInsertionGenerator, lambda models: LeftToRightGenerator(models, SEQUENCES.labels)):
        with pytest.raises(StructuralSearchError, match="different numbers of brackets"):
            generator([SequenceTable(1), other])


def test_brackets_that_were_completed_have_no_score():
    tokens = torch.tensor([SEQUENCES.open, 5, SEQUENCES.open + 2, 6])
    found = balanced_hypothesis(tokens, torch.tensor([-0.1, -0.2, -0.3, -0.4]), SEQUENCES)
    assert found["tokens"].tolist() == [SEQUENCES.open, 5, SEQUENCES.open, 6, SEQUENCES.close, SEQUENCES.close]
    assert SEQUENCES.labels.string(found["tokens"]) == "( a b )"
    assert found["positional_scores"].tolist() == pytest.approx([-0.1, -0.2, -0.3, -0.4, 0, 0])
