"""The loss of insertion-based decoding: divergence of the predicted from the target distribution of each slot."""

import math
from collections import Counter
from dataclasses import dataclass

import torch
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.logging import metrics
from torch import Tensor
from torch.nn import functional

from tree_fairseq.errors import InputError
from tree_fairseq.nn.rdrop import RDropConfig, agreement, checked_alpha
from tree_fairseq.support.options import option

# Target probabilities of a slot that differ by less are equal.
_TOLERANCE = 1e-6


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class SlotKlDivergenceConfig(RDropConfig):
    """Options of :class:`SlotKlDivergence`."""

    deletion_weight: float = option(1.0, "weight of the cross-entropy of deleting nodes, for models that delete")
    label_smoothing: float = option(0.0, "share of the divergence from the uniform distribution in the loss of a slot")


@register_criterion("slot_kl_divergence", dataclass=SlotKlDivergenceConfig)
class SlotKlDivergence(FairseqCriterion):
    r"""Sum of :math:`\mathrm{KL}(p_s \| \pi_s) = \sum_y p_s(y) (\log p_s(y) - \log \pi_s(y))` over all slots s.

    The loss is averaged over partial trees. p is the target distribution, π the predicted one (Lukovnikov & Fischer
    2021, section 4.3). Targets are sparse: labels of probability 0 are never touched. If partial trees have wrong
    nodes, the binary cross-entropy of deleting each node except the root is added, times ``deletion_weight``.

    With ``label_smoothing`` ε, the loss of a slot is :math:`(1 - ε) \mathrm{KL}(p_s \| \pi_s) + ε \mathrm{KL}(u \|
    \pi_s)`, where u gives all labels the same probability. ``slot_loss`` is the divergence from the target alone. With
    ``rdrop_alpha``, training batches pass twice, and the distributions of each slot have to agree
    (:mod:`tree_fairseq.nn.rdrop`).
    """

    def __init__(self, task, deletion_weight: float = 1.0, label_smoothing: float = 0.0, rdrop_alpha: float = 0.0):
        super().__init__(task)
        self.rdrop_alpha = checked_alpha(rdrop_alpha) if rdrop_alpha else 0.0
        self.deletion_weight = deletion_weight
        self.label_smoothing = label_smoothing
        self.keep = task.target_dictionary.keep
        self.pad = task.target_dictionary.pad()

    def forward(self, model, sample, reduce: bool = True):
        """Returns the loss summed over a batch of partial trees or sequences, the number of these, and the log.

        Counts in the log are those of the first pass.
        """
        target, net_input = sample["slot_target"], sample["net_input"]
        outputs = [model(**net_input)]
        if model.training and self.rdrop_alpha:
            outputs.append(model(**net_input))
        output = outputs[0]
        (divergence, is_right), *others = (slot_divergence(each["slot"], each["logits"], target) for each in outputs)
        is_kept = target["label"] == self.keep
        loss = torch.stack([divergence.sum(), *(other.sum() for other, _ in others)]).mean()
        logging_output = {
            "slots": output["slot"].numel(), "right": is_right.sum(),
            "kept": is_kept.sum(), "right_kept": (is_right & is_kept).sum(), "slot_loss": loss.detach(),
        }  # fmt: skip
        if self.label_smoothing:
            smoothing = self.label_smoothing
            uniform = torch.stack([divergence_from_uniform(each["logits"]).sum() for each in outputs]).mean()
            loss = (1 - smoothing) * loss + smoothing * uniform
        if others:
            predicted = (_full_precision(each["logits"]).log_softmax(dim=-1) for each in outputs)
            loss = loss + self.rdrop_alpha / 4 * agreement(*predicted).sum()
        if "delete" in sample:
            if output.get("delete") is None:
                raise InputError(
                    "partial trees have nodes to be deleted, and the model cannot delete: train it with --deletion"
                )
            labels = net_input["partial_tree"]["labels"]
            (deletion, counts), *others = (self._deletion(each["delete"], sample["delete"], labels) for each in outputs)
            deletion = torch.stack([deletion, *(other for other, _ in others)]).mean()
            loss = loss + self.deletion_weight * deletion
            logging_output |= {"delete_loss": deletion.detach(), **counts}
        states = sample["partial_states"]
        logging_output |= {
            "loss": loss.detach(), "ntokens": sample["ntokens"],
            "nsentences": sample["nsentences"], "sample_size": states,
        }  # fmt: skip
        return loss, states, logging_output

    def _deletion(self, logits: Tensor, wrong: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Sums the cross-entropy over nodes, all ``[B, M]``; counts nodes that are deleted, wrong, and both."""
        counts_here = labels != self.pad
        counts_here[:, 0] = False
        wrong = wrong.bool() & counts_here
        deleted = (logits > 0) & counts_here
        counts = {"deleted": deleted.sum(), "wrong": wrong.sum(), "rightly_deleted": (deleted & wrong).sum()}
        terms = functional.binary_cross_entropy_with_logits(logits.float(), wrong.float(), reduction="none")
        return terms.masked_fill(~counts_here, 0.0).sum(), counts

    @classmethod
    def reduce_metrics(cls, logging_outputs) -> None:
        """Logs ``loss`` (bits a sentence), ``slot_loss`` (bits a slot), accuracies in percent, and F1 of deleted nodes.

        A slot is right if its most likely label has the largest target probability; nothing is to be inserted in slots
        of ``keep_accuracy``.
        """
        total: Counter[str] = Counter()
        for output in logging_outputs:
            total.update({name: float(value) for name, value in output.items()})
        losses = [("loss", "sample_size", 3), ("slot_loss", "slots", 4)]
        accuracies = {
            "slot_accuracy": (total["right"], total["slots"]),
            "keep_accuracy": (total["right_kept"], total["kept"]),
            "insert_accuracy": (total["right"] - total["right_kept"], total["slots"] - total["kept"]),
        }
        if "delete_loss" in total:
            losses.append(("delete_loss", "sample_size", 3))
            accuracies["delete_f1"] = (2 * total["rightly_deleted"], total["deleted"] + total["wrong"])
        for name, whole, digits in losses:
            mean = total[name] / total[whole] if total[whole] else 0.0
            metrics.log_scalar(name, mean / math.log(2), total[whole], round=digits)
        for name, (part, whole) in accuracies.items():
            if whole:
                metrics.log_scalar(name, 100 * part / whole, whole, round=2)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True


def slot_divergence(slot: Tensor, logits: Tensor, target: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Computes the terms of the Kullback-Leibler divergence, and which of the target's labels are predicted.

    ``slot`` ``[Z]`` int64 are the numbers of the slots, ascending, ``logits`` ``[Z, V]`` those of their labels;
    ``target`` is that of :func:`tree_fairseq.tree_insertion.dataset.collate_slots`.

    Returns ``[Q]`` float32 or float64, whose sum over a slot is its divergence; and ``[Q]`` bool, true for the most
    likely label of a slot if no other label has a larger target probability: at most one a slot.
    """
    logits = _full_precision(logits)
    place = torch.searchsorted(slot, target["slot"])  # Q
    label, probability = target["label"], target["probability"].to(logits.dtype)
    log_probability = logits[place, label] - logits.logsumexp(dim=-1)[place]
    # A probability that half precision cannot represent is 0, whose term is 0.
    divergence = torch.xlogy(probability, probability) - probability * log_probability
    largest = torch.zeros_like(logits[:, 0]).scatter_reduce_(0, place, probability, "amax").detach()  # Z
    is_right = (logits.argmax(dim=-1)[place] == label) & (probability > largest[place] - _TOLERANCE)
    return divergence, is_right


def divergence_from_uniform(logits: Tensor) -> Tensor:
    """Computes the divergence of each slot's distribution from the uniform one: ``[Z, V]`` to ``[Z]``."""
    log_probability = _full_precision(logits).log_softmax(dim=-1)
    return -math.log(logits.size(-1)) - log_probability.mean(dim=-1)


def _full_precision(logits: Tensor) -> Tensor:
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
