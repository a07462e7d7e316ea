"""The base of both tasks: dictionaries, data sets, predictions, the output of fairseq's commands, checkpoints."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import torch
from fairseq import utils
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import get_available_dataset_impl
from fairseq.dataclass import ChoiceEnum
from fairseq.logging import metrics
from omegaconf import II
from torch import Tensor

from tree_fairseq.classification.dataset import TextDataset
from tree_fairseq.classification.folder import CLASS, TEXT, ClassificationRecord, ExampleFiles, open_split
from tree_fairseq.classification.metrics import confusion_line
from tree_fairseq.classification.prediction import ClassLines, ClassPredictor
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.token_files import load_dictionary
from tree_fairseq.errors import DataFolderError, DictionaryMismatchError
from tree_fairseq.nn.pair_dataset import NewLines
from tree_fairseq.nn.tree_task import TreeTask, TreeTaskConfig


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class ClassificationConfig(TreeTaskConfig):
    """Options of both tasks."""

    data: Optional[str] = field(
        default=None,
        metadata={
            "help": "folder that fairseq-preprocess made with the same --task; of several, separated by colons, every "
            "epoch trains on another one, and other splits are those of the first"
        },
    )
    train_subset: str = II("dataset.train_subset")
    dataset_impl: Optional[ChoiceEnum(get_available_dataset_impl())] = II("dataset.dataset_impl")


class ClassificationTask(TreeTask):
    """Predicts the class of an example. Subclasses read the examples, with trees or without.

    Args:
        cfg: with ``max_source_positions``

    Attributes:
        num_classes: C
        record: the kind of examples in the folder
    """

    cfg: ClassificationConfig
    tree_inputs = ("sentence_trees",)
    name: str
    """The name of the task, as it is registered."""
    labels_all_nodes = False
    """Whether the classes of nodes are trained on, too."""

    def __init__(self, cfg: ClassificationConfig):
        super().__init__(cfg)
        folder = Path(utils.split_paths(cfg.data)[0])
        self.record = Manifest.load(folder).verify_section(ClassificationRecord, folder, [])
        if self.record.task != self.name:
            raise DataFolderError(
                f"{folder} was preprocessed with --task {self.record.task}, this is --task {self.name}"
            )
        self.src_dict, self.tgt_dict = load_dictionary(folder, TEXT), load_dictionary(folder, CLASS)
        self.num_classes = len(self.classes)
        self.class_lines = ClassLines(self.tgt_dict)
        self._lines_read = 0

    @classmethod
    def setup_task(cls, cfg, **kwargs):
        """Makes the task over a folder, which also has to hold the dictionaries.

        Raises:
            MissingTreesError: it is not a folder for classification
            DataFolderError: it is a folder for the other task
        """
        return cls(cfg)

    @property
    def source_dictionary(self) -> Dictionary:
        """The dictionary of the texts."""
        return self.src_dict

    @property
    def target_dictionary(self) -> Dictionary:
        """The dictionary of the classes, after fairseq's special symbols."""
        return self.tgt_dict

    @property
    def classes(self) -> list[str]:
        """The names of the classes."""
        return self.tgt_dict.symbols[self.tgt_dict.nspecial :]

    def max_positions(self) -> int:
        """Returns the largest number of tokens of an example."""
        return self.cfg.max_source_positions

    # Data sets

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs):
        """Loads a split. Of several folders, every epoch trains on another one; the first has all other splits.

        Raises:
            MissingTreesError: the folder does not have the split
            CorruptFileError: its files do not belong together
            DictionaryMismatchError: the folder has other dictionaries than the first
            LongSentenceError: an example is longer than ``--max-source-positions`` (of documents, their first sentence)
        """
        folder, first = self.folder_of(split, epoch), utils.split_paths(self.cfg.data)[0]
        if folder != Path(first) and (different := self.differences(folder, Manifest.load(folder))):
            raise DictionaryMismatchError(
                f"{folder} has other {' and '.join(different)} than {first}; preprocess it in the same way, with "
                "--srcdict and --tgtdict of the first folder, which takes its labels along"
            )
        impl = None if self.cfg.dataset_impl is None else str(self.cfg.dataset_impl)
        files = open_split(folder, split, combine, self.src_dict, self.tgt_dict, impl)
        self.datasets[split] = self.make_dataset(files, split)

    def make_dataset(self, files: ExampleFiles, split: str) -> TextDataset:
        """Makes the data set of a split."""
        raise NotImplementedError

    def differences(self, folder: Path, manifest: Manifest) -> list[str]:
        """Names what differs between another folder and the first."""
        manifest.verify_section(ClassificationRecord, folder, [])
        names = (
            ("texts", load_dictionary(folder, TEXT) == self.src_dict),
            ("classes", load_dictionary(folder, CLASS) == self.tgt_dict),
        )
        return [name for name, is_same in names if not is_same]

    # New text: fairseq-interactive and the hub

    def read_lines(self, lines, encode_fn, first_line: int = 1) -> NewLines:
        """Makes token tensors of new lines exactly as those of the training data were made."""
        raise NotImplementedError

    def get_interactive_tokens_and_lengths(self, lines, encode_fn):
        """Returns token tensors of the next lines of the interactive command, and their lengths."""
        read = self.read_lines(lines, encode_fn, self._lines_read + 1)
        self._lines_read += len(lines)
        return read, read.lengths.tolist()

    def build_dataset_for_inference(self, src_tokens, src_lengths, constraints: Optional[Tensor] = None):
        """Makes a data set of lines to classify, as :meth:`new_dataset` does; constraints are refused."""
        if constraints is not None:
            raise DataFolderError("--constraints are for translations; a class has none")
        return self.new_dataset(src_tokens)

    def new_dataset(self, lines) -> TextDataset:
        """Makes a data set of token tensors, which may be :class:`NewLines`."""
        raise NotImplementedError

    # Predictions

    def build_generator(self, models, args, seq_gen_cls=None, extra_gen_cls_kwargs=None, **kwargs):
        """Returns the predictor that ranks the classes, in place of a search."""
        return ClassPredictor(self.tgt_dict)

    def example_numbers(self, sample: dict, constraints: Optional[Tensor]) -> Optional[Tensor]:
        """Returns the numbers of a batch's examples, ``[B]``, under which they are printed."""
        return sample.get("id")

    def target_tokens(self, target: Tensor) -> Tensor:
        """Writes targets ``[B]`` as lines of tokens ``[B, T]``."""
        return torch.stack([target + self.tgt_dict.nspecial, torch.full_like(target, self.tgt_dict.eos())], dim=1)

    def inference_step(self, generator, models, sample, prefix_tokens=None, constraints=None):
        """Ranks the classes of a batch and prepares the lines that fairseq's commands print of them.

        The targets become lines of tokens, as the commands print them.
        """
        numbers = self.example_numbers(sample, constraints)
        hypotheses = super().inference_step(generator, models, sample)
        if numbers is not None:
            self.class_lines.expect(numbers.tolist(), hypotheses)
        target = sample.get("target")
        if target is not None and target.dim() == 1:
            sample["target"] = self.target_tokens(target)
        return hypotheses

    def reduce_metrics(self, logging_outputs, criterion):
        """Logs the metrics of the criterion and, in validation, the confusion matrix."""
        super().reduce_metrics(logging_outputs, criterion)
        if any("_confusion" in log for log in logging_outputs):
            metrics.log_derived(
                "confusion", lambda meters: confusion_line(meters["_confusion"].sum, self.classes), priority=1000
            )

    # Checkpoints

    def checkpoint_facts(self) -> dict[str, Any]:
        """Returns what models depend on, for checkpoints: the classes."""
        return {"classification": {"classes": list(self.classes)}}
