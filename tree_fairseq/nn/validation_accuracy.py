"""Validating by generating: the share of targets that a model gets right."""

import json
from argparse import Namespace
from dataclasses import dataclass, field

from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from fairseq.tasks import FairseqTask


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class ValidationAccuracyConfig(FairseqDataclass):
    """Options of validating by generating."""

    eval_accuracy: bool = field(
        default=False,
        metadata={"help": "validate by generating, and report the share of targets that are met exactly as accuracy"},
    )
    eval_accuracy_args: str = field(
        default='{"beam": 1}',
        metadata={"help": "how to generate when validating, as JSON: options of fairseq-generate"},
    )


class ValidationAccuracyTask(FairseqTask):
    """The part of a task that validates by generating; stands before fairseq's own task among the bases of a class."""

    cfg: ValidationAccuracyConfig

    def build_model(self, cfg, from_checkpoint: bool = False):
        """Builds any architecture, and the generator that validates it where asked for."""
        model = super().build_model(cfg, from_checkpoint)
        if self.cfg.eval_accuracy:
            self.validation_generator = self.build_generator(
                [model], Namespace(**json.loads(self.cfg.eval_accuracy_args))
            )
        return model

    def valid_step(self, sample, model, criterion):
        """The stock step, with ``--eval-accuracy`` also the number of targets that are met."""
        loss, sample_size, logging_output = super().valid_step(sample, model, criterion)
        if self.cfg.eval_accuracy:
            hypotheses = self.inference_step(self.validation_generator, [model], sample)
            logging_output["_accurate"] = self.count_accurate(sample, hypotheses)
            logging_output["_generated"] = len(sample["target"])
        return loss, sample_size, logging_output

    def count_accurate(self, sample: dict, hypotheses: list[list[dict]]) -> int:
        """How many targets of a batch are met.

        Args:
            sample: fairseq's batch
            hypotheses: of each of its sentences, the best first; none where the search found none
        """
        raise NotImplementedError

    def reduce_metrics(self, logging_outputs, criterion):
        """The stock metrics, and ``accuracy`` in percent with ``--eval-accuracy``."""
        super().reduce_metrics(logging_outputs, criterion)
        total = sum(int(output.get("_generated", 0)) for output in logging_outputs)
        if self.cfg.eval_accuracy and total:
            accurate = sum(int(output.get("_accurate", 0)) for output in logging_outputs)
            metrics.log_scalar("accuracy", 100 * accurate / total, total, round=2)
