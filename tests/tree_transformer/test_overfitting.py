"""A tiny model learns ten trees by heart, some of which differ in their structure alone."""

from __future__ import annotations

import copy

import numpy as np
from fairseq.sequence_generator import SequenceGenerator

from tests.nn.tiny import build, cross_entropy, last_loss, net_input, pairs, random_tree, stack, tiny_task

TASK = tiny_task()


def ten_pairs():
    """Five sentences, each with two trees and a target for each tree."""
    made = []
    random = np.random.default_rng(3)
    for pair in pairs(TASK, 4, 5, 7, 8, 10, seed=3):
        twin = copy.copy(pair)
        twin.tree = random_tree(random, len(pair.source), len(TASK.label_dictionary))
        twin.target = random.permutation(random.integers(4, len(TASK.target_dictionary), 5))
        made += [pair, twin]
    return made


def test_ten_trees_are_learned():
    data = ten_pairs()
    model = build(TASK, "--dropout", "0", seed=1).train()
    inputs = net_input(data)
    target = stack([pair.target for pair in data], False)
    assert last_loss(model, lambda: cross_entropy(model, inputs, target), updates=120, rate=2e-3) < 0.05

    # fairseq ends a search when it has as many hypotheses as beams; with some seeds, four beams end too early.
    del inputs["prev_output_tokens"]
    for beams in (1, 4):
        generator = SequenceGenerator([model.eval()], TASK.target_dictionary, beam_size=beams, max_len_b=10)
        hypotheses = generator.generate([model], {"net_input": inputs})
        found = [best[0]["tokens"].tolist()[:-1] for best in hypotheses]
        assert found == [pair.target.tolist() for pair in data]
