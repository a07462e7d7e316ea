"""The loss of insertions, compared with the sum of its equation, slot by slot and label by label."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch
from fairseq.logging import metrics
from torch import nn

from tests.tree_insertion.slot_batches import DICTIONARY, random_batch
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.tree_insertion.criterion import SlotKlDivergence, slot_divergence
from tree_fairseq.tree_insertion.dataset import TargetDistribution


class Constant(nn.Module):
    """A model whose output does not depend on its input."""

    def __init__(self, slot, count, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.slot = slot
        self.logits = nn.Parameter(2 * torch.randn(count, len(DICTIONARY), dtype=torch.float64))

    def forward(self, partial_tree):
        return {"slot": self.slot, "logits": self.logits}


def criterion(learns_from_trees=False, **options):
    return SlotKlDivergence(
        SimpleNamespace(target_dictionary=DICTIONARY, learns_from_trees=learns_from_trees), **options
    )


def equation(slot, logits, target, weight=1.0):
    """The sum of the divergences, from dense distributions; those of slots that stay open have a weight."""
    total = logits.new_zeros(())
    for place, number in enumerate(slot.tolist()):
        said = torch.softmax(logits[place], dim=0)
        for other, label, share in zip_equal(*(target[name].tolist() for name in ("slot", "label", "probability"))):
            if other == number:
                divergence = share * (math.log(share) - torch.log(said[label]))
                total = total + (1.0 if label == DICTIONARY.keep else weight) * divergence
    return total


@pytest.mark.parametrize("kind", ["rank", "uniform"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("options", "weight"), [({}, 1), ({"insertion_weight": 2.2}, 2.2), ({"learns_from_trees": True}, 3)]
)
def test_it_is_the_divergence_of_the_equation(seed, kind, options, weight):
    sample, slot = random_batch(seed, distribution=TargetDistribution(kind, 0.7))
    model = Constant(slot, len(slot), seed=seed)
    loss, size, log = criterion(**options)(model, sample)
    assert size == log["nsentences"] == 3 and log["slots"] == len(slot) == sample["ntokens"]
    expected = equation(slot, model.logits, sample["slot_target"], weight)
    torch.testing.assert_close(log["slot_loss"], equation(slot, model.logits, sample["slot_target"]))
    torch.testing.assert_close(loss, expected, rtol=1e-12, atol=0)
    ours, theirs = (torch.autograd.grad(value, model.logits)[0] for value in (loss, expected))
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


def test_any_of_the_best_labels_is_right():
    slot = torch.tensor([3, 8, 9])
    target = {
        "slot": torch.tensor([3, 3, 3, 8, 9]),
        "label": torch.tensor([5, 6, 7, 2, 2]),
        "probability": torch.tensor([0.4, 0.4, 0.2, 1.0, 1.0]),
    }
    for answer, rights in ((5, [1, 0, 0, 1, 0]), (6, [0, 1, 0, 1, 0]), (7, [0, 0, 0, 1, 0]), (4, [0, 0, 0, 1, 0])):
        logits = torch.zeros(3, len(DICTIONARY))
        logits[[0, 1, 2], [answer, 2, 5]] = 1.0
        assert slot_divergence(slot, logits, target)[1].tolist() == [bool(right) for right in rights]


def test_a_probability_that_a_half_cannot_represent_adds_nothing():
    """fairseq's trainer makes the targets of ``--fp16`` halves: the last ranks have probability 0 there."""
    sample, slot = random_batch(1, distribution=TargetDistribution("rank", 0.05))
    target, logits = sample["slot_target"], torch.randn(len(slot), len(DICTIONARY), requires_grad=True)
    halves = {**target, "probability": target["probability"].half()}
    assert target["probability"].gt(0).all() and halves["probability"].eq(0).any()
    divergence, _ = slot_divergence(slot, logits, halves)
    torch.testing.assert_close(divergence, slot_divergence(slot, logits, target)[0], rtol=1e-3, atol=1e-5)
    divergence.sum().backward()
    assert logits.grad.isfinite().all()


def test_what_is_logged():
    outputs = [
        {"loss": 6.0, "sample_size": 2, "slot_loss": 4.0, "slots": 10, "right": 7, "kept": 6, "right_kept": 5},
        {"loss": 2.0, "sample_size": 2, "slot_loss": 1.0, "slots": 10, "right": 5, "kept": 4, "right_kept": 3},
    ]
    with metrics.aggregate() as logged:
        SlotKlDivergence.reduce_metrics(outputs)
    values = logged.get_smoothed_values()
    assert values == {
        "loss": pytest.approx(2 / math.log(2), abs=1e-3), "slot_loss": pytest.approx(0.25 / math.log(2), abs=1e-4),
        "slot_accuracy": 60.0, "keep_accuracy": 80.0, "insert_accuracy": 40.0,
    }  # fmt: skip
