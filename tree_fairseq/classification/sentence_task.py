"""The task ``tree_sentence_classification``: models without trees predict a class or a number of a sentence or a pair.

A pair is one line of tokens: the first sentence, EOS, the second; every line ends with EOS, as all lines of fairseq do.
So EOS separates sentences as the separator of pretrained encoders does, and needs no symbol of its own.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY
from fairseq.tasks import register_task
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from tree_fairseq.classification.classifier import Predictor, hypothesis
from tree_fairseq.classification.dataset import TextDataset, refuse_long_text
from tree_fairseq.classification.examples import joined_sentences, placed
from tree_fairseq.classification.folder import SENTENCE_TASK, ExampleFiles, NumberDictionary
from tree_fairseq.classification.task import INPUT, ClassificationConfig, ClassificationTask
from tree_fairseq.errors import InputError
from tree_fairseq.support.options import option
from tree_fairseq.tasks.pair_dataset import NewLines
from tree_fairseq.tasks.unread_trees import trees_read

logger = logging.getLogger(__name__)


class NumberPredictor(Predictor):
    """Makes a number, written digit by digit, the only hypothesis.

    The number of an ensemble is the mean of those of its members.
    """

    dictionary: NumberDictionary

    def predict(self, models: Sequence[nn.Module], net_input: dict) -> list[list[dict]]:
        """Returns a number for each example: ``tokens`` are the digits and EOS, ``score`` is always 0."""
        predicted = torch.stack([model(**net_input)["logits"].squeeze(1).float() for model in models]).mean(0)
        return [[hypothesis(self.dictionary.tokens(value).long(), 0.0)] for value in predicted.tolist()]


def _refuse_text(num_tokens: int, limit: int, path: str, line: int) -> None:
    refuse_long_text(f"a text of {num_tokens} tokens, the ends of sentences among them", limit, path, line)


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreeSentenceClassificationConfig(ClassificationConfig):
    """Options of the task."""

    max_source_positions: int = option(
        512, "tokens that an example may have, the ends of its sentences among them; more is an error"
    )


@register_task(SENTENCE_TASK, dataclass=TreeSentenceClassificationConfig)
class TreeSentenceClassificationTask(ClassificationTask):
    """Predicts the class of a sentence or of a pair of sentences, or a number instead (regression)."""

    cfg: TreeSentenceClassificationConfig
    name = SENTENCE_TASK

    def __init__(self, cfg: TreeSentenceClassificationConfig):
        super().__init__(cfg)
        self.regression = self.record.regression
        if self.regression:
            self.tgt_dict = NumberDictionary.of_characters()
            self.num_classes = 1
        target = "a number" if self.regression else f"one of {self.num_classes} classes"
        logger.info(
            "text dictionary: %d types; predicted for each %s: %s", len(self.src_dict), self.record.input_format, target
        )

    def make_dataset(self, files: ExampleFiles, split: str) -> TextDataset:
        """Refuses examples beyond ``--max-source-positions``."""
        limit = self.cfg.max_source_positions
        for index in np.flatnonzero(files.lengths > limit)[:1].tolist():
            _refuse_text(files.lengths[index], limit, split, index + 1)
        is_train = split == self.cfg.train_subset
        return TextDataset(files.tokens, files.lengths, self.src_dict, files.targets, self.tgt_dict, is_train)

    def read_lines(self, lines, encode_fn, first_line: int = 1) -> NewLines:
        """Refuses lines beyond ``--max-source-positions``; a pair has a tab between its sentences."""
        limit, words = self.cfg.max_source_positions, []
        for number, line in enumerate(lines, start=first_line):
            sentences = [encode_fn(sentence) for sentence in line.split("\t")]
            with placed(INPUT, number):
                words.append(joined_sentences(sentences, self.record.input_format == "pair").split())
            if len(words[-1]) >= limit:
                _refuse_text(len(words[-1]) + 1, limit, INPUT, number)
        return NewLines([self.encode_words(own, append_eos=True) for own in words], words=words)

    def build_dataset_for_inference(self, src_tokens, src_lengths, constraints=None) -> TextDataset:
        """Makes a data set without trees."""
        lines = src_tokens if isinstance(src_tokens, NewLines) else NewLines(src_tokens)
        return TextDataset(lines, lines.lengths, self.src_dict, is_typed=True)

    def build_generator(self, models, args, seq_gen_cls=None, extra_gen_cls_kwargs=None, **kwargs):
        """Returns the predictor of classes or numbers."""
        ranking = super().build_generator(models, args)
        return NumberPredictor(self.tgt_dict) if self.regression else ranking

    def target_tokens(self, target: Tensor) -> Tensor:
        """Writes classes, or the digits of numbers."""
        if not self.regression:
            return super().target_tokens(target)
        lines = [self.tgt_dict.tokens(value).long() for value in target.tolist()]
        return pad_sequence(lines, batch_first=True, padding_value=self.tgt_dict.pad()).to(target.device)

    def build_model(self, cfg, from_checkpoint: bool = False):
        """Builds any model of classes that reads no trees."""
        arch = getattr(cfg, "_name", None) or getattr(cfg, "arch", None)
        if trees_read(ARCH_MODEL_REGISTRY.get(arch) or MODEL_REGISTRY.get(arch)):
            problem = f"--arch {arch} reads trees, and --task {self.name} has none"
            raise InputError(problem, hint="Use --task tree_classification.")
        return super().build_model(cfg, from_checkpoint)
