"""Validation by greedy generation: the share of targets that are generated exactly."""

from argparse import Namespace
from dataclasses import dataclass

from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from fairseq.tasks import FairseqTask

from tree_fairseq.support.options import option


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class ValidationAccuracyConfig(FairseqDataclass):
    """Options of validating by generating."""

    eval_accuracy: bool = option(
        False, "validate by greedy generation, and report as accuracy the share of targets that are generated exactly"
    )


class ValidationAccuracyTask(FairseqTask):
    """The part of a task that validates by generating; comes before fairseq's own task among the bases of a class."""

    cfg: ValidationAccuracyConfig

    def build_model(self, cfg, from_checkpoint: bool = False):
        """Builds any architecture, and with ``--eval-accuracy`` the generator that validates it."""
        model = super().build_model(cfg, from_checkpoint)
        if self.cfg.eval_accuracy:
            self.validation_generator = self.build_generator([model], Namespace(beam=1))
        return model

    def valid_step(self, sample, model, criterion):
        """Does the step of fairseq; ``--eval-accuracy`` also counts the targets that are generated exactly."""
        loss, sample_size, logging_output = super().valid_step(sample, model, criterion)
        if self.cfg.eval_accuracy:
            hypotheses = self.inference_step(self.validation_generator, [model], sample)
            logging_output["_accurate"] = self.count_accurate(sample, hypotheses)
            logging_output["_generated"] = len(sample["target"])
        return loss, sample_size, logging_output

    def count_accurate(self, sample: dict, hypotheses: list[list[dict]]) -> int:
        """Counts the targets of a batch that are generated exactly; hypotheses come best first, if there are any."""
        raise NotImplementedError

    def reduce_metrics(self, logging_outputs, criterion):
        """Logs the metrics of fairseq; ``--eval-accuracy`` adds ``accuracy`` in percent."""
        super().reduce_metrics(logging_outputs, criterion)
        total = sum(int(output.get("_generated", 0)) for output in logging_outputs)
        if self.cfg.eval_accuracy and total:
            accurate = sum(int(output.get("_accurate", 0)) for output in logging_outputs)
            metrics.log_scalar("accuracy", 100 * accurate / total, total, round=2)
