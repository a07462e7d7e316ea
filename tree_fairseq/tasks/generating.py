"""Generation under fairseq's commands: trees in brackets, validation by generating."""

import functools
import json
from argparse import Namespace
from dataclasses import dataclass
from typing import Optional

from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from fairseq.tasks import FairseqTask

from tree_fairseq.data_bin.symbol_dictionary import TreeDictionary
from tree_fairseq.errors import SymbolTreeError
from tree_fairseq.repairs.compat import print_after
from tree_fairseq.support.options import option
from tree_fairseq.trees.notations import notation_named


def in_brackets(text: str, dictionary: TreeDictionary) -> Optional[str]:
    """A tree that is written in the notation of its dictionary, in brackets; None for text that is not a tree."""
    try:
        return notation_named("bracket").write(dictionary.notation.read(text))
    except SymbolTreeError:
        return None


def bracketed_line(line: str, dictionary: TreeDictionary) -> Optional[str]:
    """The ``B-`` line of an ``H-`` line, its tree in brackets; None for other lines and hypotheses."""
    fields = line.split("\t", 2)
    if not line.startswith("H-") or len(fields) != 3:
        return None
    brackets = in_brackets(fields[2], dictionary)
    return None if brackets is None else f"B-{fields[0][2:]}\t{brackets}"


def print_brackets(dictionary: TreeDictionary) -> None:
    """Makes ``fairseq-interactive`` print brackets from now on, if that is what runs; again is harmless."""
    print_after(["fairseq_cli.interactive"], functools.partial(bracketed_line, dictionary=dictionary))


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class ValidationAccuracyConfig(FairseqDataclass):
    """Options of validating by generating."""

    eval_accuracy: bool = option(
        False, "validate by generating, and report as accuracy the share of targets that are generated exactly"
    )
    eval_accuracy_args: str = option(
        '{"beam": 1}', "how to generate when validating, as JSON: options of fairseq-generate"
    )


class ValidationAccuracyTask(FairseqTask):
    """The part of a task that validates by generating; comes before fairseq's own task among the bases of a class."""

    cfg: ValidationAccuracyConfig

    def build_model(self, cfg, from_checkpoint: bool = False):
        """Builds any architecture, and with ``--eval-accuracy`` the generator that validates it."""
        model = super().build_model(cfg, from_checkpoint)
        if self.cfg.eval_accuracy:
            options = Namespace(**json.loads(self.cfg.eval_accuracy_args))
            self.validation_generator = self.build_generator([model], options)
        return model

    def valid_step(self, sample, model, criterion):
        """The stock step; with ``--eval-accuracy`` it also counts the targets that are generated exactly."""
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
        """The stock metrics, and ``accuracy`` in percent with ``--eval-accuracy``."""
        super().reduce_metrics(logging_outputs, criterion)
        total = sum(int(output.get("_generated", 0)) for output in logging_outputs)
        if self.cfg.eval_accuracy and total:
            accurate = sum(int(output.get("_accurate", 0)) for output in logging_outputs)
            metrics.log_scalar("accuracy", 100 * accurate / total, total, round=2)
