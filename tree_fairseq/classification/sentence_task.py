"""Classification and rating of single sentences, or of pairs of them, by models that need no trees."""

import functools
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from fairseq.data.indexed_dataset import get_available_dataset_impl
from fairseq.dataclass import ChoiceEnum
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY
from fairseq.tasks import register_task
from omegaconf import II
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from tree_fairseq.classification.folder import ClassificationRecord
from tree_fairseq.classification.numbers import NumberDictionary, NumberPredictor
from tree_fairseq.classification.sentences import NewSentences, NewTexts, SentenceReader, load_sentences
from tree_fairseq.classification.task import ClassTask
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.errors import DataFolderError, InputError, LongSentenceError
from tree_fairseq.nn.tasks import TreeTaskConfig, trees_read
from tree_fairseq.trees.tree import Forest

logger = logging.getLogger(__name__)


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreeSentenceClassificationConfig(TreeTaskConfig):
    """Options of the task."""

    data: Optional[str] = field(
        default=None,
        metadata={
            "help": "folder that fairseq-preprocess --task tree_sentence_classification made; of several, separated by colons, every "
            "epoch trains on another one, and other splits are those of the first"
        },
    )
    max_source_positions: int = field(
        default=512,
        metadata={"help": "tokens that an example may have, the ends of its sentences among them; more is an error"},
    )
    train_subset: str = II("dataset.train_subset")
    dataset_impl: Optional[ChoiceEnum(get_available_dataset_impl())] = II("dataset.dataset_impl")


@register_task("tree_sentence_classification", dataclass=TreeSentenceClassificationConfig)
class TreeSentenceClassificationTask(ClassTask):
    """Tells the class of a sentence or of a pair of sentences, or a number in its place (regression).

    Args:
        cfg (TreeSentenceClassificationConfig): options

    Attributes:
        num_classes: C, 1 where a number is to be told
        regression: whether that is so
    """

    cfg: TreeSentenceClassificationConfig
    name = "tree_sentence_classification"

    def __init__(self, cfg: TreeSentenceClassificationConfig):
        super().__init__(cfg)
        self.regression = self.record.regression
        if self.regression:
            self.tgt_dict = NumberDictionary.of_characters()
            self.num_classes = 1
        told = "a number" if self.regression else f"one of {self.num_classes} classes"
        logger.info(
            "text dictionary: %d types; to be told of each %s: %s", len(self.src_dict), self.record.input_format, told
        )

    # Data sets

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs):
        """Loads the texts of a split, and their classes or numbers.

        Raises:
            MissingTreesError: the folder has none for the split
            CorruptFileError: they do not belong together
            DictionaryMismatchError: the folder has other words or classes than the first
            LongSentenceError: an example is longer than ``--max-source-positions``
        """
        folder = self.folder_of(split, epoch)
        self.require_same_kind(folder)
        impl = None if self.cfg.dataset_impl is None else str(self.cfg.dataset_impl)
        is_train = split == self.cfg.train_subset
        texts = load_sentences(
            folder, split, combine, self.src_dict, self.tgt_dict, impl, self.cfg.max_source_positions, is_train
        )
        logger.info("[%s] %d examples, %d tokens", split, len(texts), int(texts.sizes.sum()))
        self.datasets[split] = texts

    def filter_indices_by_size(self, indices, dataset, max_positions=None, ignore_invalid_inputs=False):
        """fairseq's, which leaves out of training what is too long for a model; here it is an error.

        Raises:
            LongSentenceError: an example is longer than the model reads, as pretrained ones may, or than a batch
        """
        too_long = [] if max_positions is None else indices[dataset.sizes[indices] > max_positions]
        is_train = dataset is self.datasets.get(self.cfg.train_subset)
        if len(too_long) and (is_train or not ignore_invalid_inputs):
            first = int(min(too_long))
            raise LongSentenceError(
                f"example {first + 1} of {'those to train on' if is_train else 'a split'} has {dataset.size(first)} tokens, the ends of sentences among "
                f"them, and the model reads (and --max-tokens allows) {max_positions}; there are {len(too_long)} such examples",
                hint="Preprocess without them, or cut them.",
            )
        return super().filter_indices_by_size(indices, dataset, max_positions, ignore_invalid_inputs)

    def differences(self, folder: Path, manifest: Manifest) -> list[str]:
        """What is not in another folder as it is in the first, the kind of examples among it."""
        found = super().differences(folder, manifest)
        ours, theirs = self.record, manifest.section(ClassificationRecord)
        is_same = (ours.input_format, ours.regression) == (theirs.input_format, theirs.regression)
        return found if is_same else [*found, "kinds of examples"]

    # New text: fairseq-interactive and the hub

    @functools.cached_property
    def read_documents(self) -> SentenceReader:
        """Makes token tensors of new lines; a pair has a tab between its sentences."""
        return SentenceReader(self.record.input_format == "pair", self.src_dict, self.cfg.max_source_positions)

    def source_forests(self, lines, encode_fn) -> list[Forest]:
        """No trees: none are read."""
        return [() for _ in lines]

    def build_dataset_for_inference(self, src_tokens, src_lengths, constraints: Optional[Tensor] = None):
        """A data set of lines to classify."""
        if constraints is not None:
            raise DataFolderError("--constraints are for translations; a class has none")
        lines = src_tokens if isinstance(src_tokens, NewSentences) else NewSentences(src_tokens)
        return NewTexts(lines, self.src_dict)

    def build_generator(self, models, args, seq_gen_cls=None, extra_gen_cls_kwargs=None, **kwargs):
        """What ranks the classes, or predicts numbers, in the place of a search."""
        return NumberPredictor(self.tgt_dict) if self.regression else super().build_generator(models, args)

    def numbers(self, sample: dict, constraints: Optional[Tensor]) -> Optional[Tensor]:
        """The numbers of a batch's examples; None where there are no classes whose probabilities could be printed."""
        if self.regression:
            return None
        return super().numbers(sample, constraints) if constraints is None else constraints[:, 0]

    def target_tokens(self, target: Tensor) -> Tensor:
        """Classes, or the digits of numbers, as lines of tokens."""
        if not self.regression:
            return super().target_tokens(target)
        lines = [self.tgt_dict.tokens(value).long() for value in target.tolist()]
        return pad_sequence(lines, batch_first=True, padding_value=self.tgt_dict.pad()).to(target.device)

    # Training

    def build_model(self, cfg, from_checkpoint: bool = False):
        """Builds any model of classes that reads no trees.

        Raises:
            InputError: it reads some
        """
        arch = getattr(cfg, "_name", None) or getattr(cfg, "arch", None)
        model = ARCH_MODEL_REGISTRY.get(arch) or MODEL_REGISTRY.get(arch)
        if trees_read(model):
            raise InputError(
                f"--arch {arch} reads trees, and --task {self.name} has none", hint="Use --task tree_classification."
            )
        return super().build_model(cfg, from_checkpoint)
