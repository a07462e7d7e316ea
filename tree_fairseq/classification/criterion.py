"""Cross-entropy of classes: of examples, or of every node and leaf that has a class."""

import math
from dataclasses import dataclass, field

import numpy as np
import torch
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from torch import Tensor
from torch.nn import functional
from torch.nn import functional as F

from tree_fairseq.classification.metrics import class_figures, confusion_counts, pearson, spearman
from tree_fairseq.classification.rows import IGNORE
from tree_fairseq.errors import DataFolderError, InputError


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreeClassificationCriterionConfig(FairseqDataclass):
    """Options of the criterion."""

    label_smoothing: float = field(
        default=0.0, metadata={"help": "share of the probability that the targets give to all classes alike"}
    )


@register_criterion("tree_classification", dataclass=TreeClassificationCriterionConfig)
class TreeClassificationCriterion(FairseqCriterion):
    """The mean cross-entropy over all labelled nodes and leaves, or over examples, as the task has it.

    Args:
        task: says with ``labels_all_nodes`` which
        label_smoothing: share of a target's probability that goes to all C classes alike

    Raises:
        InputError: numbers are to be told, not classes
    """

    def __init__(self, task, label_smoothing: float):
        super().__init__(task)
        if getattr(task, "regression", False):
            raise InputError(
                "--criterion tree_classification is for classes, and these examples have numbers",
                hint="Use --criterion tree_regression.",
            )
        self.label_smoothing = label_smoothing

    def forward(self, model, sample: dict, reduce: bool = True):
        """The loss of a batch.

        Args:
            model: gives ``logits`` ``[B, C]``, and if asked for ``node_logits`` ``[R, M, C]`` and ``leaf_logits`` ``[R, N, C]``
            sample: a batch of :class:`tree_fairseq.classification.dataset.ClassificationDataset`
            reduce: unread; fairseq passes it

        Returns:
            the sum over all targets, their number, and sums to log

        Raises:
            DataFolderError: the examples have no classes
        """
        if sample["target"] is None:
            raise DataFolderError(
                "these examples have no classes, as they were preprocessed with --only-source; they can only be classified"
            )
        all_nodes = self.task.labels_all_nodes
        # Sequence models, which have no states of nodes, are never asked for them.
        output = model(**sample["net_input"], **({"node_logits": True} if all_nodes else {}))
        if all_nodes:
            parts = ("node", "leaf")
            logits = torch.cat([output[f"{part}_logits"].flatten(0, 1) for part in parts])
            targets = torch.cat([sample[f"{part}_target"].flatten() for part in parts])
        else:
            logits, targets = output["logits"], sample["target"]
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        nll_loss = F.cross_entropy(logits, targets, ignore_index=IGNORE, reduction="sum")
        loss = nll_loss
        if self.label_smoothing:
            loss = F.cross_entropy(
                logits, targets, ignore_index=IGNORE, reduction="sum", label_smoothing=self.label_smoothing
            )
        sample_size = int((targets != IGNORE).sum())
        logging_output = {
            "loss": loss.detach(),
            "nll_loss": nll_loss.detach(),
            "ntokens": sample["ntokens"],
            "nsentences": sample["nsentences"],
            "sample_size": sample_size,
            **self._counts(output["logits"].detach(), sample["target"], model.training),
        }
        if all_nodes:
            logging_output["node_correct"] = (logits.detach().argmax(dim=1) == targets).sum()
        return loss, sample_size, logging_output

    @staticmethod
    def _counts(logits: Tensor, target: Tensor, training: bool) -> dict[str, Tensor]:
        """Right answers, and when validating all confusions."""
        predicted = logits.argmax(dim=1)
        counts = {"correct": (predicted == target).sum()}
        if not training:
            counts["_confusion"] = confusion_counts(target, predicted, logits.size(1))
        return counts

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict]) -> None:
        """Logs means over batches and processes; when validating ``accuracy``, ``macro_f1``, ``matthews`` and, of two classes, ``f1``
        are those of examples, in percent."""
        total = {name: sum(log[name] for log in logging_outputs) for name in logging_outputs[0]}
        size, examples = total["sample_size"], total["nsentences"]
        for name in ("loss", "nll_loss"):
            metrics.log_scalar(name, total[name] / size / math.log(2), size, round=3)
        if "node_correct" in total:
            metrics.log_scalar("node_accuracy", 100 * total["node_correct"] / size, size, round=2)
        if "_confusion" not in total:
            metrics.log_scalar("accuracy", 100 * total["correct"] / examples, examples, round=2)
            return
        metrics.log_scalar_sum("_confusion", np.asarray(total["_confusion"].cpu()))
        for name in class_figures(np.asarray(total["_confusion"].cpu())):
            metrics.log_derived(name, lambda meters, name=name: round(class_figures(meters["_confusion"].sum)[name], 2))

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """They are sums."""
        return True


# FROM criterions/tree_regression: Mean squared error of predicted numbers, and how they correlate with the right ones.


@register_criterion("tree_regression", dataclass=FairseqDataclass)
class TreeRegressionCriterion(FairseqCriterion):
    """The mean squared error over examples.

    Args:
        task: with numbers for targets

    Raises:
        InputError: its targets are classes
    """

    def __init__(self, task):
        super().__init__(task)
        if not getattr(task, "regression", False):
            raise InputError(
                "--criterion tree_regression is for numbers, and these examples have classes",
                hint="Use --criterion tree_classification.",
            )

    def forward(self, model, sample: dict, reduce: bool = True):
        """The loss of a batch.

        Args:
            model: gives ``logits`` ``[B, 1]``
            sample: a batch of :class:`tree_fairseq.classification.dataset.LabelledTexts`
            reduce: unread; fairseq passes it

        Returns:
            the sum over examples, their number, and what is to be logged
        """
        logits = model(**sample["net_input"])["logits"].squeeze(1)
        predicted = logits.to(torch.promote_types(logits.dtype, torch.float32))
        target = sample["target"].to(predicted.dtype)
        loss = functional.mse_loss(predicted, target, reduction="sum")
        logging_output = {
            "loss": loss.detach(), "ntokens": sample["ntokens"], "nsentences": sample["nsentences"], "sample_size": len(target),
        }  # fmt: skip
        if not model.training:
            logging_output["_pairs"] = torch.stack([predicted.detach(), target], dim=1).cpu()
        return loss, len(target), logging_output

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict]) -> None:
        """Logs the mean squared error, and when validating Pearson's and Spearman's correlation, in percent."""
        size = sum(log["sample_size"] for log in logging_outputs)
        metrics.log_scalar("loss", sum(log["loss"] for log in logging_outputs) / size, size, round=4)
        if "_pairs" not in logging_outputs[0]:
            return
        metrics.log_concat_tensor("_pairs", torch.cat([log["_pairs"] for log in logging_outputs]))
        for name, measure in (("pearson", pearson), ("spearman", spearman)):
            metrics.log_derived(
                name, lambda meters, measure=measure: round(measure(*meters["_pairs"].tensor.t().tolist()), 2)
            )

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """Ranks are of all predictions together."""
        return False
