"""The loss of insertion-based tree decoding: how far the answers of slots are from those that they should give."""

import math
from dataclasses import dataclass, field

import torch
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from torch import Tensor
from torch.nn import functional

from tree_fairseq.errors import InputError

# Shares of a slot that are closer than this are the same.
_SAME = 1e-6


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class SlotKlDivergenceConfig(FairseqDataclass):
    """Options of the loss."""

    deletion_weight: float = field(
        default=1.0, metadata={"help": "weight of the cross-entropy of nodes to be deleted, for models that delete"}
    )


@register_criterion("slot_kl_divergence", dataclass=SlotKlDivergenceConfig)
class SlotKlDivergence(FairseqCriterion):
    r"""Sum over slots s of :math:`\mathrm{KL}(p_s \| \pi_s) = \sum_y p_s(y) (\log p_s(y) - \log \pi_s(y))`, mean over sentences.

    p is what a slot should get, π what the model says (Lukovnikov & Fischer 2021, Section 4.3). Targets are sparse: what has no share
    is never touched. Where partial trees have wrong nodes, the binary cross-entropy of deleting each node is added, the root left out.

    Args:
        task: of insertions
        deletion_weight: of that cross-entropy
    """

    def __init__(self, task, deletion_weight: float = 1.0):
        super().__init__(task)
        self.deletion_weight = deletion_weight
        self.keep = task.target_dictionary.keep
        self.pad = task.target_dictionary.pad()

    def forward(self, model, sample, reduce: bool = True):
        """The loss of a batch of :class:`tree_fairseq.tree_insertion.dataset.TreeInsertionDataset`, or of
        :class:`tree_fairseq.tree_insertion.sequence_dataset.SequenceInsertionDataset`.

        Returns:
            loss summed over the batch, number of sentences, what is to be logged

        Raises:
            InputError: the batch has wrong nodes, and the model does not delete
        """
        output = model(**sample["net_input"])
        target = sample["slot_target"]
        divergence, right = slot_divergence(output["slot"], output["logits"], target)
        is_kept = target["label"] == self.keep
        logging_output = {
            "slots": output["slot"].numel(), "right": right.sum(), "kept": is_kept.sum(), "right_kept": (right & is_kept).sum(),
        }  # fmt: skip
        loss = divergence.sum()
        logging_output["slot_loss"] = loss.detach()
        if "delete" in sample:
            if output.get("delete") is None:
                raise InputError(
                    "partial trees have nodes to be deleted, and the model deletes none: train it with --deletion, or without"
                )
            deletion, counts = self._deletion(
                output["delete"], sample["delete"], sample["net_input"]["partial_tree"]["labels"]
            )
            loss = loss + self.deletion_weight * deletion
            logging_output |= {"delete_loss": deletion.detach(), **counts}
        partial = sample["net_input"].get("partial_tree")
        sentences = len(sample["net_input"]["partial_sequence"] if partial is None else partial["labels"])
        logging_output |= {
            "loss": loss.detach(),
            "ntokens": sample["ntokens"],
            "nsentences": sentences,
            "sample_size": sentences,
        }
        return loss, sentences, logging_output

    def _deletion(self, logits: Tensor, wrong: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        is_node = labels != self.pad
        is_node[:, 0] = False
        logits, wrong = logits[is_node].float(), wrong[is_node].bool()
        said = logits > 0
        counts = {"deleted": said.sum(), "wrong": wrong.sum(), "rightly_deleted": (said & wrong).sum()}
        return functional.binary_cross_entropy_with_logits(logits, wrong.float(), reduction="sum"), counts

    @classmethod
    def reduce_metrics(cls, logging_outputs) -> None:
        """Logs ``loss`` (bits a sentence), ``slot_loss`` (bits a slot), accuracies in percent, and F1 of deleted nodes.

        A slot is right if its most likely answer is one of those that the target gives the largest share; ``keep_accuracy`` is that
        of slots that are to be left as they are, ``insert_accuracy`` that of the others.
        """
        total = {name: sum(float(output.get(name, 0)) for output in logging_outputs) for name in _SUMMED}
        metrics.log_scalar(
            "loss", _ratio(total["loss"], total["sample_size"]) / math.log(2), total["sample_size"], round=3
        )
        metrics.log_scalar(
            "slot_loss", _ratio(total["slot_loss"], total["slots"]) / math.log(2), total["slots"], round=4
        )
        inserted = total["slots"] - total["kept"]
        shares = {
            "slot_accuracy": (total["right"], total["slots"]),
            "keep_accuracy": (total["right_kept"], total["kept"]),
            "insert_accuracy": (total["right"] - total["right_kept"], inserted),
        }
        if any("delete_loss" in output for output in logging_outputs):
            metrics.log_scalar(
                "delete_loss",
                _ratio(total["delete_loss"], total["sample_size"]) / math.log(2),
                total["sample_size"],
                round=3,
            )
            shares["delete_f1"] = (2 * total["rightly_deleted"], total["deleted"] + total["wrong"])
        for name, (part, whole) in shares.items():
            if whole:
                metrics.log_scalar(name, 100 * part / whole, whole, round=2)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """All that is logged is counts and sums."""
        return True


_SUMMED = (
    *("loss", "sample_size", "slot_loss", "slots", "right", "kept", "right_kept"),
    *("delete_loss", "deleted", "wrong", "rightly_deleted"),
)


def slot_divergence(slot: Tensor, logits: Tensor, target: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """The terms of the Kullback-Leibler divergence, and which answers are right.

    Args:
        slot: ``[Z]`` int64 numbers of the slots, ascending
        logits: ``[Z, V]`` of their answers
        target: ``slot``, ``label`` and ``probability`` ``[E]``, as :func:`tree_fairseq.tree_insertion.dataset.collate_slots` makes them

    Returns:
        ``[E]`` float32 or float64, whose sum over a slot is its divergence; ``[E]`` bool, true for the most likely answer of its
        slot where no other should have a larger share: at most one a slot
    """
    if logits.dtype in (torch.float16, torch.bfloat16):
        logits = logits.float()
    place = torch.searchsorted(slot, target["slot"])  # E
    label, probability = target["label"], target["probability"].to(logits.dtype)
    log_probability = logits[place, label] - logits.logsumexp(dim=-1)[place]
    divergence = probability * (probability.log() - log_probability)
    largest = torch.zeros_like(logits[:, 0]).scatter_reduce_(0, place, probability, "amax").detach()  # Z
    right = (logits.argmax(dim=-1)[place] == label) & (probability > largest[place] - _SAME)
    return divergence, right


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
