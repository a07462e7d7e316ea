"""Log-probabilities of trees under a left-to-right model: all at once, compared with one symbol at a time."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from fairseq import utils

from tests.tree_insertion.test_sequence_models import CAUSAL, TOKENS, inputs_of, model_of
from tree_fairseq.tree_insertion.sampled_search import LeftToRightScorer

SENTENCES = [2, 0, 1, 0, 2]
TREES = [0, 1, 2, 2, 1]


@pytest.mark.parametrize("variant", CAUSAL)
def test_a_batch_of_trees_is_scored_as_each_symbol_alone(variant, monkeypatch):
    # fairseq takes the softmax of weights that it returns in single precision.
    monkeypatch.setattr(utils, "softmax", lambda scores, dim, onnx_trace=False: scores.softmax(dim))
    model = model_of(variant)
    sequences = model.sequences
    trees = [sequences.plain(torch.tensor(TOKENS[number])) for number in TREES]
    net_input = inputs_of(variant, spare=2)
    found = LeftToRightScorer(model).score(net_input, torch.tensor(SENTENCES), trees)
    for sentence, number, log_prob in zip(SENTENCES, TREES, found.tolist()):
        own, total = inputs_of(variant, rows=(sentence,)), 0.0
        target = [*TOKENS[number], sequences.eos()]
        for place, token in enumerate(target):
            previous = torch.tensor([[sequences.eos(), *target[:place]]])
            with torch.no_grad():
                logits, _ = model(**own, prev_output_tokens=previous)
            total += float(logits[0, -1].log_softmax(0)[token])
        assert log_prob == pytest.approx(total, abs=1e-9)
    assert found.dtype == torch.float64 and len(set(found.tolist())) == len(TREES)


def test_a_tree_needs_a_position_for_each_symbol_and_eos():
    model = SimpleNamespace(eval=lambda: model, decoder=SimpleNamespace(max_positions=lambda: 4))
    scorer = LeftToRightScorer(model)
    assert scorer.reads(torch.zeros(3)) and not scorer.reads(torch.zeros(4))
