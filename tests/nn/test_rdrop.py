"""R-Drop against sums over single words, in float64, and in the criterion of real models."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from torch import nn

from tests.nn.tiny import PAD, build, net_input, pairs, stack, stock_flags, tiny_task
from tree_fairseq.errors import InputError
from tree_fairseq.nn.rdrop import RDropCrossEntropy

SMOOTHING, ALPHA, WORDS = 0.1, 3.0, 9
TASK = SimpleNamespace(target_dictionary=SimpleNamespace(pad=lambda: PAD))


class Passes(nn.Module):
    """A model that says something else in every other pass; a sentence is a row of what it can say."""

    def __init__(self, sentences: int, length: int):
        super().__init__()
        self.logits = nn.Parameter(2 * torch.randn(2, sentences, length, WORDS, dtype=torch.float64))
        self.passes = 0

    def forward(self, rows):
        self.passes += 1
        return self.logits[(self.passes - 1) % 2, rows]

    def get_normalized_probs(self, net_output, log_probs):
        assert log_probs
        return net_output.log_softmax(dim=-1)

    def get_targets(self, sample, net_output):
        return sample["target"]


def drawn(seed: int, sentences: int = 4, length: int = 5):
    """A model and a batch with padding."""
    torch.manual_seed(seed)
    target = torch.randint(3, WORDS, (sentences, length))
    for row in range(1, sentences):
        target[row, length - row :] = PAD
    return Passes(sentences, length), batch(range(sentences), target)


def batch(rows, target) -> dict:
    rows = list(rows)
    return {"net_input": {"rows": rows}, "target": target[rows], "ntokens": int((target[rows] != PAD).sum())}


def criterion(alpha: float = ALPHA, **options) -> RDropCrossEntropy:
    options = {"sentence_avg": False, "label_smoothing": SMOOTHING, **options}
    return RDropCrossEntropy(TASK, rdrop_alpha=alpha, **options)


def equation(passes, target, alpha: float, prefix: int = 0):
    """The paper's equation divided by two, word by word."""
    total = 0
    for first, second, words in zip(*passes, target.tolist()):
        for place, word in list(enumerate(words))[prefix:]:
            if word == PAD:
                continue
            p, q = (torch.softmax(scores[place], dim=0) for scores in (first, second))
            for said in (p, q):
                # fairseq gives the other V - 1 words the share of the smoothing, and the word itself as much besides.
                even = SMOOTHING / (WORDS - 1)
                total = total - (1 - SMOOTHING - even) * said[word].log() / 2 - even * said.log().sum() / 2
            total = total + alpha / 4 * sum(p[k] * (p[k] / q[k]).log() for k in range(WORDS))
            total = total + alpha / 4 * sum(q[k] * (q[k] / p[k]).log() for k in range(WORDS))
    return total


@pytest.mark.parametrize("prefix", [0, 2])
@pytest.mark.parametrize("seed", range(3))
def test_values_and_gradients_are_those_of_the_equation(seed, prefix):
    model, sample = drawn(seed)
    loss, sample_size, log = criterion(ignore_prefix_size=prefix)(model, sample)
    assert model.passes == 2 and sample_size == log["sample_size"] == sample["ntokens"] == 14
    expected = equation(model.logits, sample["target"], ALPHA, prefix)
    torch.testing.assert_close(loss, expected, rtol=1e-12, atol=0)
    ours, theirs = (torch.autograd.grad(value, model.logits)[0] for value in (loss, expected))
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("sentence_avg", [False, True])
def test_batches_add_up(sentence_avg):
    """As where gradients are accumulated: the loss of a batch is the sum of the losses of its parts."""
    model, sample = drawn(5)
    alike = criterion(sentence_avg=sentence_avg)
    whole, size, _ = alike(model, sample)
    parts = [alike(model, batch(rows, sample["target"])) for rows in ([0, 1], [2, 3])]
    torch.testing.assert_close(sum(loss for loss, *_ in parts), whole)
    assert sum(own for _, own, _ in parts) == size == (4 if sentence_avg else 14)
    each, _, log = alike(model, sample, reduce=False)
    assert each.shape == (20, 1) and not each[sample["target"].flatten() == PAD].any()
    torch.testing.assert_close(each.sum(), whole)
    torch.testing.assert_close(log["nll_loss"].sum(), alike(model, sample)[2]["nll_loss"])


def test_validation_has_the_loss_of_one_pass():
    model, sample = drawn(6)
    model.eval()
    stock = LabelSmoothedCrossEntropyCriterion(TASK, False, SMOOTHING)
    for alpha in (0.0, ALPHA):
        model.passes = 0
        ours = criterion(alpha)(model, sample)
        assert model.passes == 1
        model.passes = 0
        assert ours[0].item() == stock(model, sample)[0].item()
    model.train()
    model.passes = 0
    criterion(0.0)(model, sample)
    assert model.passes == 1


@pytest.mark.parametrize("arch", ["tree_transformer_tiny", "transformer"])
def test_two_passes_of_a_model_differ_in_dropout_alone(arch):
    """The trees and all other input of a batch serve both passes; dropout is drawn anew for the second one."""
    task = tiny_task()
    sizes = stock_flags() if arch == "transformer" else ()
    model = build(task, "--dropout", "0.4", *sizes, arch=arch).train()
    given = net_input(pairs(task, 7, 5, 3), left_pad=True)
    if arch != "tree_transformer_tiny":
        del given["source_spans"]
    target = stack([pair.target for pair in pairs(task, 7, 5, 3)], False)
    sample = {"net_input": given, "target": target, "ntokens": int((target != PAD).sum())}
    torch.manual_seed(3)
    loss, *_ = criterion()(model, sample)
    torch.manual_seed(3)
    passes = [model(**given)[0] for _ in range(2)]
    assert (passes[0] - passes[1]).abs().max() > 0.1
    values = [scores.double().log_softmax(dim=-1) for scores in passes]
    kept = (target != PAD).unsqueeze(2)
    vocabulary = values[0].size(-1)
    even = SMOOTHING / (vocabulary - 1)
    expected = 0
    for said, other in (values, values[::-1]):
        expected = expected + ALPHA / 4 * (kept * said.exp() * (said - other)).sum()
        hit = said.gather(2, target.unsqueeze(2))
        expected = expected - ((1 - SMOOTHING - even) * kept * hit).sum() / 2 - even * (kept * said).sum() / 2
    torch.testing.assert_close(loss.double(), expected, rtol=1e-5, atol=1e-5)
    weights = list(model.parameters())
    ours, theirs = (torch.autograd.grad(value, weights, allow_unused=True) for value in (loss, expected))
    for own, other in zip(ours, theirs):
        if other is not None:
            torch.testing.assert_close(own, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("alpha", [-1.0, math.inf, math.nan])
def test_a_weight_that_is_no_weight_is_refused(alpha):
    with pytest.raises(InputError, match="--rdrop-alpha"):
        criterion(alpha)
