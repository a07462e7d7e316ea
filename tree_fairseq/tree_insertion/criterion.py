"""The loss of insertion-based decoding: divergence of the predicted from the target distribution of each slot."""

import math
from collections import Counter
from dataclasses import dataclass
from typing import Optional

import torch
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from torch import Tensor

from tree_fairseq.support.options import option

# Target probabilities of a slot that differ by less are equal.
_TOLERANCE = 1e-6


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class SlotKlDivergenceConfig(FairseqDataclass):
    """The option of the loss."""

    insertion_weight: Optional[float] = option(
        None,
        "weight of slots in which a node may be inserted, because most slots are closed (not in the paper; default: 3 "
        "for models that insert into trees, 1 with --as-published and for sequences)",
    )


@register_criterion("slot_kl_divergence", dataclass=SlotKlDivergenceConfig)
class SlotKlDivergence(FairseqCriterion):
    r"""Sum of :math:`\mathrm{KL}(p_s \| \pi_s) = \sum_y p_s(y) (\log p_s(y) - \log \pi_s(y))` over all slots s.

    The loss is averaged over partial trees. Slots in which a node may be inserted count ``insertion_weight`` times, in
    the paper once. p is the target distribution, π the predicted one (Lukovnikov & Fischer 2021, section 3.3.3,
    equation 6). Targets are sparse: labels of probability 0 are never touched.
    """

    def __init__(self, task, insertion_weight: Optional[float] = None):
        super().__init__(task)
        self.weight = insertion_weight or (3.0 if task.learns_from_trees else 1.0)
        self.keep = task.target_dictionary.keep

    def forward(self, model, sample, reduce: bool = True):
        """Returns the loss summed over a batch of partial trees or sequences, the number of these, and the log."""
        target, output = sample["slot_target"], model(**sample["net_input"])
        divergence, is_right = slot_divergence(output["slot"], output["logits"], target)
        is_kept = target["label"] == self.keep
        loss = torch.where(is_kept, divergence, self.weight * divergence).sum()
        states = sample["partial_states"]
        logging_output = {
            "slots": output["slot"].numel(),
            "right": is_right.sum(),
            "kept": is_kept.sum(),
            "right_kept": (is_right & is_kept).sum(),
            "slot_loss": divergence.sum().detach(),
            "loss": loss.detach(),
            "ntokens": sample["ntokens"],
            "nsentences": sample["nsentences"],
            "sample_size": states,
        }
        return loss, states, logging_output

    @classmethod
    def reduce_metrics(cls, logging_outputs) -> None:
        """Logs ``loss`` (bits a sentence), ``slot_loss`` (bits a slot), and accuracies in percent.

        A slot is right if its most likely label has the largest target probability. ``keep_accuracy`` is over the slots
        in which nothing may be inserted, ``insert_accuracy`` over the others.
        """
        total: Counter[str] = Counter()
        for output in logging_outputs:
            total.update({name: float(value) for name, value in output.items()})
        accuracies = {
            "slot_accuracy": (total["right"], total["slots"]),
            "keep_accuracy": (total["right_kept"], total["kept"]),
            "insert_accuracy": (total["right"] - total["right_kept"], total["slots"] - total["kept"]),
        }
        for name, whole, digits in (("loss", "sample_size", 3), ("slot_loss", "slots", 4)):
            mean = total[name] / total[whole] if total[whole] else 0.0
            metrics.log_scalar(name, mean / math.log(2), total[whole], round=digits)
        for name, (part, whole) in accuracies.items():
            if whole:
                metrics.log_scalar(name, 100 * part / whole, whole, round=2)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True


def slot_divergence(slot: Tensor, logits: Tensor, target: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Computes the terms of the Kullback-Leibler divergence, and finds the labels that are predicted rightly.

    Args:
        slot: ``[Z]`` int64, the ascending numbers of the slots
        logits: ``[Z, V]``, of the labels for each slot
        target: Q labels with their probabilities, see :func:`tree_fairseq.tree_insertion.dataset.collate_slots`

    Returns:
        - ``[Q]`` float32 or float64; the sum over the labels of a slot is its divergence
        - ``[Q]`` bool, true for the most likely label of a slot if no other label has a larger target probability
    """
    if logits.dtype in (torch.float16, torch.bfloat16):
        logits = logits.float()
    place = torch.searchsorted(slot, target["slot"])  # Q
    label, probability = target["label"], target["probability"].to(logits.dtype)
    log_probability = logits[place, label] - logits.logsumexp(dim=-1)[place]
    # A probability that half precision cannot represent is 0, whose term is 0.
    divergence = torch.xlogy(probability, probability) - probability * log_probability
    largest = torch.zeros_like(logits[:, 0]).scatter_reduce_(0, place, probability, "amax").detach()  # Z
    is_right = (logits.argmax(dim=-1)[place] == label) & (probability > largest[place] - _TOLERANCE)
    return divergence, is_right
