"""Criteria: cross-entropy of the classes of examples or of all nodes and leaves, and mean squared error of numbers."""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from torch import Tensor
from torch.nn import functional

from tree_fairseq.classification.classifier import ClassTask
from tree_fairseq.classification.folder import IGNORE
from tree_fairseq.errors import InputError
from tree_fairseq.support.options import option


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreeClassificationCriterionConfig(FairseqDataclass):
    """Options of the criterion."""

    label_smoothing: float = option(0.0, "share of the probability that the targets give to all classes alike")


@register_criterion("tree_classification", dataclass=TreeClassificationCriterionConfig)
class TreeClassificationCriterion(FairseqCriterion):
    """The mean cross-entropy over examples or, if the task ``labels_all_nodes``, over labelled nodes and leaves."""

    def __init__(self, task, label_smoothing: float):
        super().__init__(task)
        if isinstance(task, ClassTask) and task.regression:
            raise InputError(
                "--criterion tree_classification is for classes, and these examples have numbers",
                hint="Use --criterion tree_regression.",
            )
        self.label_smoothing = label_smoothing

    def forward(self, model, sample: dict, reduce: bool = True):
        """Returns the sum over all targets, their number, and sums to log.

        The model returns ``logits`` ``[B, C]`` and, on request, ``node_logits`` ``[R, M, C]`` and ``leaf_logits``
        ``[R, N, C]``.
        """
        all_nodes = self.task.labels_all_nodes
        # Models that read sequences do not know the argument.
        output = model(**sample["net_input"], **({"node_logits": True} if all_nodes else {}))
        logits, targets = output["logits"], sample["target"]
        if all_nodes:
            # (R, M, C) and (R, N, C) -> (R M + R N, C)
            logits = torch.cat([output["node_logits"].flatten(0, 1), output["leaf_logits"].flatten(0, 1)])
            targets = torch.cat([sample["node_target"].flatten(), sample["leaf_target"].flatten()])
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))

        options = {"ignore_index": IGNORE, "reduction": "sum"}
        loss = nll_loss = functional.cross_entropy(logits, targets, **options)
        if self.label_smoothing:
            loss = functional.cross_entropy(logits, targets, label_smoothing=self.label_smoothing, **options)
        sample_size = sample["num_targets"] if all_nodes else len(targets)
        predicted = output["logits"].detach().argmax(dim=1)
        logging_output = {
            "loss": loss.detach(),
            "nll_loss": nll_loss.detach(),
            "ntokens": sample["ntokens"],
            "nsentences": sample["nsentences"],
            "sample_size": sample_size,
            "correct": (predicted == sample["target"]).sum(),
        }
        if not model.training:
            logging_output["_confusion"] = confusion_counts(sample["target"], predicted, output["logits"].size(1))
        if all_nodes:
            logging_output["node_correct"] = (logits.detach().argmax(dim=1) == targets).sum()
        return loss, sample_size, logging_output

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict]) -> None:
        """Logs means over batches and processes and, in validation, :func:`class_figures` of the examples."""
        total = {name: sum(log[name] for log in logging_outputs) for name in logging_outputs[0]}
        size, examples = total["sample_size"], total["nsentences"]
        for name in ("loss", "nll_loss"):
            metrics.log_scalar(name, total[name] / size / math.log(2), size, round=3)
        if "node_correct" in total:
            metrics.log_scalar("node_accuracy", 100 * total["node_correct"] / size, size, round=2)
        if "_confusion" not in total:
            metrics.log_scalar("accuracy", 100 * total["correct"] / examples, examples, round=2)
            return
        counts = np.asarray(total["_confusion"].cpu())
        metrics.log_scalar_sum("_confusion", counts)
        for name in class_figures(counts):
            metrics.log_derived(name, partial(_logged_figure, name))

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True


def _logged_figure(name: str, meters: dict) -> float:
    """A metric of all batches of a validation; a plain float, as checkpoints keep the best."""
    return round(float(class_figures(meters["_confusion"].sum)[name]), 2)


_NO_VARIANCE = 1e-12  # a variance below this share of the squares is that of equal numbers, and comes from rounding


@register_criterion("tree_regression", dataclass=FairseqDataclass)
class TreeRegressionCriterion(FairseqCriterion):
    """The mean squared error over examples."""

    def __init__(self, task):
        super().__init__(task)
        if not (isinstance(task, ClassTask) and task.regression):
            raise InputError(
                "--criterion tree_regression is for numbers, and these examples have classes",
                hint="Use --criterion tree_classification.",
            )

    def forward(self, model, sample: dict, reduce: bool = True):
        """Returns the sum over examples, their number, and sums to log; the model returns ``logits`` ``[B, 1]``."""
        logits = model(**sample["net_input"])["logits"].squeeze(1)
        predicted = logits.to(torch.promote_types(logits.dtype, torch.float32))
        target = sample["target"].to(predicted.dtype)
        loss = functional.mse_loss(predicted, target, reduction="sum")
        logging_output = {
            "loss": loss.detach(),
            "ntokens": sample["ntokens"],
            "nsentences": sample["nsentences"],
            "sample_size": len(target),
        }
        if not model.training:
            logging_output["_moments"] = moments(predicted.detach().double(), target.double()).sum(0)
        return loss, len(target), logging_output

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict]) -> None:
        """Logs the mean squared error and, in validation, Pearson's correlation in percent."""
        size = sum(log["sample_size"] for log in logging_outputs)
        metrics.log_scalar("loss", sum(log["loss"] for log in logging_outputs) / size, size, round=4)
        if "_moments" in logging_outputs[0]:
            metrics.log_scalar_sum("_moments", sum(log["_moments"] for log in logging_outputs).cpu().numpy())
            metrics.log_derived("pearson", lambda meters: round(float(pearson(meters["_moments"].sum)), 2))

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True


def confusion_counts(target: Tensor, predicted: Tensor, num_classes: int) -> Tensor:
    """Counts pairs of right and predicted classes, each ``[B]`` int64: ``[C, C]`` int64, a row for each right class."""
    return torch.bincount(target * num_classes + predicted, minlength=num_classes**2).view(num_classes, num_classes)


def class_figures(counts: np.ndarray) -> dict[str, np.ndarray]:
    """Computes the metrics of confusion matrices ``[..., C, C]``, each ``[...]``, in percent.

    They are ``accuracy``; ``macro_f1``, the mean of F1 over the classes that occur, right or predicted; ``matthews``,
    Matthews' correlation, which is 0 if all right or all predicted classes are the same; and, of two classes, ``f1``,
    that of the second.
    """
    counts = np.asarray(counts, np.float64)
    both, right, predicted = counts.diagonal(axis1=-2, axis2=-1), counts.sum(axis=-1), counts.sum(axis=-2)
    occurs, size = right + predicted > 0, right.sum(axis=-1)
    f1 = np.divide(2 * both, right + predicted, out=np.zeros_like(both), where=occurs)
    # Covariances of classes as indicators (Gorodkin 2004), times the square of the number of examples.
    covariance = both.sum(axis=-1) * size - (right * predicted).sum(axis=-1)
    variances = (size**2 - (right**2).sum(axis=-1)) * (size**2 - (predicted**2).sum(axis=-1))
    figures = {
        "accuracy": 100 * both.sum(axis=-1) / size,
        "macro_f1": 100 * f1.sum(axis=-1) / occurs.sum(axis=-1),
        "matthews": 100 * covariance / np.sqrt(np.where(variances > 0, variances, np.inf)),
    }
    return {**figures, "f1": 100 * f1[..., 1]} if f1.shape[-1] == 2 else figures


def moments(predicted: Tensor, right: Tensor) -> Tensor:
    """Numbers of which :func:`pearson` needs the sums, ``[B, 6]``: one, both numbers, their squares and product."""
    return torch.stack([torch.ones_like(right), predicted, right, predicted**2, right**2, predicted * right], dim=1)


def pearson(sums: np.ndarray) -> np.ndarray:
    """Computes Pearson's correlation in percent from sums of :func:`moments`, ``[..., 6]``; 0 if a side is constant."""
    size, ours, theirs, ours_squared, theirs_squared, product = np.moveaxis(np.asarray(sums), -1, 0)
    variances = ours_squared - ours**2 / size, theirs_squared - theirs**2 / size
    varies = (variances[0] > _NO_VARIANCE * ours_squared) & (variances[1] > _NO_VARIANCE * theirs_squared)
    return 100 * (product - ours * theirs / size) / np.sqrt(np.where(varies, variances[0] * variances[1], np.inf))
