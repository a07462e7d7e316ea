"""The loss of classes against sums over single examples, nodes and leaves, in float64."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch
from fairseq.logging import metrics
from torch import nn

from tree_fairseq.classification.criterion import TreeClassificationCriterion
from tree_fairseq.classification.folder import IGNORE

CLASSES = 4


class Answers(nn.Module):
    """A model that always says the same, and only when asked for nodes says anything of them."""

    def __init__(self, documents: int, rows: int, nodes: int, leaves: int, seed: int):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        shapes = {"logits": (documents,), "node_logits": (rows, nodes), "leaf_logits": (rows, leaves)}
        for name, shape in shapes.items():
            setattr(
                self, name, nn.Parameter(2 * torch.randn(*shape, CLASSES, dtype=torch.float64, generator=generator))
            )

    def forward(self, src_tokens, node_logits: bool = False):
        asked = {"node_logits": self.node_logits, "leaf_logits": self.leaf_logits} if node_logits else {}
        return {"logits": self.logits, "node_logits": None, "leaf_logits": None, **asked}


def drawn(seed: int, documents: int = 5, rows: int = 7, nodes: int = 3, leaves: int = 4):
    """A model and a batch; half of the nodes and leaves have no class."""
    generator = torch.Generator().manual_seed(seed)

    def targets(*shape):
        classes = torch.randint(CLASSES, shape, generator=generator)
        return classes.masked_fill(torch.rand(shape, generator=generator) < 0.5, IGNORE)

    target, of_all = (
        torch.randint(CLASSES, (documents,), generator=generator),
        (targets(rows, nodes), targets(rows, leaves)),
    )
    sample = {
        "net_input": {"src_tokens": None},
        "target": target,
        "node_target": of_all[0],
        "leaf_target": of_all[1],
        "num_targets": sum(int((classes != IGNORE).sum()) for classes in of_all),
        "nsentences": documents,
        "ntokens": rows * leaves,
    }
    return Answers(documents, rows, nodes, leaves, seed), sample


def criterion(all_nodes: bool, label_smoothing: float = 0.0):
    task = SimpleNamespace(labels_all_nodes=all_nodes, target_dictionary=None)
    return TreeClassificationCriterion(task, label_smoothing)


def places(model, sample, all_nodes: bool):
    """Scores and class of everything that has a class."""
    if not all_nodes:
        return list(zip(model.logits, sample["target"].tolist()))
    found = []
    for part in ("node", "leaf"):
        scores, targets = getattr(model, f"{part}_logits").flatten(0, 1), sample[f"{part}_target"].flatten().tolist()
        found += [(row, target) for row, target in zip(scores, targets) if target != IGNORE]
    return found


def equation(found, smoothing: float):
    """The sum of - (1 - e) log p(class) - e / C * sum of log p."""
    total = 0
    for scores, target in found:
        log_probabilities = [score - torch.logsumexp(scores, 0) for score in scores]
        total = total - (1 - smoothing) * log_probabilities[target] - smoothing / CLASSES * sum(log_probabilities)
    return total


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("all_nodes", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_values_and_gradients_are_those_of_the_equation(seed, all_nodes, smoothing):
    model, sample = drawn(seed)
    loss, sample_size, log = criterion(all_nodes, smoothing)(model, sample)
    found = places(model, sample, all_nodes)
    expected = equation(found, smoothing)
    assert sample_size == log["sample_size"] == len(found)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(log["loss"], expected.detach())
    torch.testing.assert_close(log["nll_loss"], equation(found, 0.0).detach())
    weights = [model.node_logits, model.leaf_logits] if all_nodes else [model.logits]
    for ours, theirs in zip(torch.autograd.grad(loss, weights), torch.autograd.grad(expected, weights)):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("all_nodes", [False, True])
def test_right_answers_and_confusions_are_counted(all_nodes):
    model, sample = drawn(0)
    model.train()
    assert "_confusion" not in criterion(all_nodes)(model, sample)[2]
    model.eval()
    log = criterion(all_nodes)(model, sample)[2]
    pairs = list(zip(sample["target"].tolist(), model.logits.argmax(1).tolist()))
    assert log["_confusion"].tolist() == [
        [pairs.count((row, column)) for column in range(CLASSES)] for row in range(CLASSES)
    ]
    assert log["correct"] == sum(target == predicted for target, predicted in pairs)
    assert ("node_correct" in log) == all_nodes
    if all_nodes:
        assert log["node_correct"] == sum(
            int(scores.argmax()) == target for scores, target in places(model, sample, True)
        )


def test_sentences_of_one_word_have_no_nodes():
    model, sample = drawn(1, nodes=0)
    loss, *_ = criterion(True)(model, sample)
    torch.testing.assert_close(loss, equation(places(model, sample, True), 0.0))


def logged(outputs: list[dict]) -> dict:
    with metrics.aggregate(new_root=True) as aggregated:
        TreeClassificationCriterion.reduce_metrics(outputs)
    return aggregated.get_smoothed_values()


@pytest.mark.parametrize("training", [False, True])
def test_metrics_are_those_of_all_batches_and_processes(training):
    """Summed over processes, one after another, or logged at once: the same."""
    outputs = []
    for seed, documents in enumerate((5, 2, 9)):
        model, sample = drawn(seed, documents)
        outputs.append(criterion(True)(model.train(training), sample)[2])
    assert TreeClassificationCriterion.logging_outputs_can_be_summed()
    at_once = logged(outputs)
    summed = logged([{name: sum(output[name] for output in outputs) for name in outputs[0]}])
    with metrics.aggregate(new_root=True) as aggregated:
        for output in outputs:
            TreeClassificationCriterion.reduce_metrics([output])
    one_by_one = aggregated.get_smoothed_values()
    size = sum(output["sample_size"] for output in outputs)
    expected = {
        "loss": sum(output["loss"] for output in outputs) / size / math.log(2),
        "node_accuracy": 100 * sum(output["node_correct"] for output in outputs) / size,
        "accuracy": 100 * sum(output["correct"] for output in outputs) / 16,
    }
    for values in (at_once, summed, one_by_one):
        assert ("macro_f1" in values) == (not training)
        assert {name: float(values[name]) for name in expected} == pytest.approx(
            {name: float(value) for name, value in expected.items()}, abs=0.006
        )


def test_half_precision_is_summed_in_single():
    model, sample = drawn(2)
    loss, _, _ = criterion(False)(model, sample)
    half, _, _ = criterion(False)(model.to(torch.bfloat16), sample)
    assert half.dtype == torch.float32
    torch.testing.assert_close(half.double(), loss, rtol=0.02, atol=0.02)
