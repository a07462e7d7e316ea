r"""R-Drop (Liang et al. 2021): a batch passes twice with different dropout, and both predictions have to agree.

The loss of a target, half of the paper's Equation 4, so that a training without R-Drop has a loss to compare with, is

.. math:: \frac12 (L_1 + L_2) + \frac\alpha4 (\mathrm{KL}(p_1 \| p_2) + \mathrm{KL}(p_2 \| p_1)).

It is summed over targets and divided by their number, as every loss of fairseq. Validation passes once and has the
plain loss.

fairseq's main branch has a criterion ``label_smoothed_cross_entropy_with_rdrop``, and fairseq 0.12.2 has none. That one
doubles the tensors of a batch, but no trees, and its loss is twice as large, also in validation.
"""

from dataclasses import dataclass

from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)
from fairseq.dataclass import FairseqDataclass
from torch import Tensor

from tree_fairseq.errors import InputError
from tree_fairseq.support.options import option

_HELP = "R-Drop: weight of the divergence between two passes of a batch with different dropout"


def agreement(first: Tensor, second: Tensor) -> Tensor:
    """Computes KL(p‖q) + KL(q‖p) from logarithms of probabilities ``[..., V]``: ``[...]``, with gradients in both."""
    return ((first.exp() - second.exp()) * (first - second)).sum(dim=-1)


def checked_alpha(alpha: float) -> float:
    """Returns the weight; raises InputError unless it is finite and not negative."""
    if not 0 <= alpha < float("inf"):
        raise InputError(f"--rdrop-alpha {alpha}: give a number that is not negative", hint="The paper has 5, and 1.")
    return alpha


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class RDropConfig(FairseqDataclass):
    """The option of other criteria that can do R-Drop."""

    rdrop_alpha: float = option(0.0, f"{_HELP} (Liang et al. 2021); 0: a batch passes once")


@dataclass
class RDropCrossEntropyConfig(LabelSmoothedCrossEntropyCriterionConfig):
    """The options of fairseq's cross-entropy, and the weight."""

    rdrop_alpha: float = option(5.0, f"{_HELP} (Liang et al. 2021, who have 5 for translation)")


@register_criterion("rdrop_cross_entropy", dataclass=RDropCrossEntropyConfig)
class RDropCrossEntropy(LabelSmoothedCrossEntropyCriterion):
    """fairseq's label-smoothed cross-entropy with R-Drop, for every model that fairseq's criterion trains."""

    # fairseq reads the names of the arguments.
    def __init__(
        self,
        task,
        sentence_avg: bool,
        label_smoothing: float,
        ignore_prefix_size: int = 0,
        report_accuracy: bool = False,
        rdrop_alpha: float = 5.0,
    ):
        super().__init__(task, sentence_avg, label_smoothing, ignore_prefix_size, report_accuracy)
        self.rdrop_alpha = checked_alpha(rdrop_alpha)

    def compute_loss(self, model, net_output, sample: dict, reduce: bool = True) -> tuple[Tensor, Tensor]:
        """Returns the loss and the negative log-likelihood of the targets, ``[]`` or, not reduced, ``[B T, 1]``.

        ``net_output`` is that of the first pass.
        """
        losses = super().compute_loss(model, net_output, sample, reduce=reduce)
        if not (model.training and self.rdrop_alpha):
            return losses
        again = model(**sample["net_input"])
        others = super().compute_loss(model, again, sample, reduce=reduce)
        first, target = self.get_lprobs_and_target(model, net_output, sample)
        second, _ = self.get_lprobs_and_target(model, again, sample)
        divergence = agreement(first, second).masked_fill(target.eq(self.padding_idx), 0.0).unsqueeze(1)
        loss, nll_loss = ((own + other) / 2 for own, other in zip(losses, others))
        return loss + self.rdrop_alpha / 4 * (divergence.sum() if reduce else divergence), nll_loss
