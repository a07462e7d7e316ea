"""What the tasks of classification share: dictionaries, the ranking of classes, what fairseq's commands print, checkpoints."""

from pathlib import Path
from typing import Any

import torch
from fairseq import utils
from fairseq.data import Dictionary
from fairseq.logging import metrics
from torch import Tensor

from tree_fairseq.classification.folder import CLASS, TEXT, ClassificationRecord
from tree_fairseq.classification.metrics import confusion_line
from tree_fairseq.classification.prediction import ClassLines, ClassPredictor
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.token_files import load_dictionary
from tree_fairseq.errors import DataFolderError, DictionaryMismatchError
from tree_fairseq.nn.tasks import TreeTask


class ClassTask(TreeTask):
    """Tells the class of an example. Subclasses read the examples, with trees or without.

    Args:
        cfg: with ``data``, folders separated by colons, and ``max_source_positions``

    Attributes:
        num_classes: C
        record: what the examples of the folder are
    """

    tree_inputs = ("sentence_trees",)
    name: str
    """Of the task, as it is registered."""
    labels_all_nodes = False
    """Whether nodes have classes that are to be trained on, too."""

    def __init__(self, cfg):
        super().__init__(cfg)
        folder = Path(utils.split_paths(cfg.data)[0])
        manifest = Manifest.load(folder)
        self.record = manifest.verify_section(ClassificationRecord, folder, [])
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
        """The task over a folder; dictionaries are among what the folder has to hold.

        Raises:
            MissingTreesError: it is no folder for classification
            DataFolderError: it is one of the other kind
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
        """Tokens that an example may have."""
        return self.cfg.max_source_positions

    def folder_of(self, split: str, epoch: int) -> Path:
        """Where the examples of a split are in an epoch: of several folders, the first has the splits that are not trained on."""
        paths = utils.split_paths(self.cfg.data)
        return Path(paths[(epoch - 1) % len(paths)] if split == self.cfg.train_subset else paths[0])

    def differences(self, folder: Path, manifest: Manifest) -> list[str]:
        """What is not in another folder as it is in the first."""
        manifest.verify_section(ClassificationRecord, folder, [])
        names = (
            ("texts", load_dictionary(folder, TEXT) == self.src_dict),
            ("classes", load_dictionary(folder, CLASS) == self.tgt_dict),
        )
        return [name for name, is_same in names if not is_same]

    def require_same_kind(self, folder: Path) -> None:
        """Makes sure that a folder fits the first one.

        Raises:
            DictionaryMismatchError: otherwise
        """
        first = utils.split_paths(self.cfg.data)[0]
        if folder != Path(first) and (different := self.differences(folder, Manifest.load(folder))):
            raise DictionaryMismatchError(
                f"{folder} has other {' and '.join(different)} than {first}; preprocess it in the same way, with --srcdict and --tgtdict "
                "of the first folder, which takes its labels along"
            )

    def read_documents(self, lines, encode_fn, first_line: int = 1):
        """Token tensors of new lines, made exactly as those of the training data were."""
        raise NotImplementedError

    def get_interactive_tokens_and_lengths(self, lines, encode_fn):
        """The next lines of the interactive command: token tensors, and their lengths."""
        documents = self.read_documents(lines, encode_fn, self._lines_read + 1)
        self._lines_read += len(lines)
        return documents, [len(tokens) for tokens in documents]

    def build_generator(self, models, args, seq_gen_cls=None, extra_gen_cls_kwargs=None, **kwargs):
        """What ranks the classes, in the place of a search."""
        return ClassPredictor(self.tgt_dict)

    def numbers(self, sample: dict, constraints: Tensor | None) -> Tensor | None:
        """The numbers of a batch's examples, ``[B]``, as they will be printed."""
        return sample.get("id")

    def target_tokens(self, target: Tensor) -> Tensor:
        """The lines of tokens ``[B, T]`` that stand for targets ``[B]``."""
        return torch.stack([target + self.tgt_dict.nspecial, torch.full_like(target, self.tgt_dict.eos())], dim=1)

    def inference_step(self, generator, models, sample, prefix_tokens=None, constraints=None):
        """Ranks the classes of a batch, whose probabilities are printed with what fairseq's commands print.

        Targets become lines of tokens, as the commands print them.
        """
        numbers = self.numbers(sample, constraints)
        hypotheses = super().inference_step(generator, models, sample)
        if numbers is not None:
            self.class_lines.expect(numbers.tolist(), hypotheses)
        target = sample.get("target")
        if target is not None and target.dim() == 1:
            sample["target"] = self.target_tokens(target)
        return hypotheses

    def reduce_metrics(self, logging_outputs, criterion):
        """The criterion's metrics, and the matrix of confusions when validating."""
        super().reduce_metrics(logging_outputs, criterion)
        if any("_confusion" in log for log in logging_outputs):
            metrics.log_derived(
                "confusion", lambda meters: confusion_line(meters["_confusion"].sum, self.classes), priority=1000
            )

    @property
    def _described(self) -> dict[str, Any]:
        """What a model depends on, for its checkpoints."""
        return {"classes": list(self.classes)}

    @property
    def _lists(self) -> dict[str, list[str]]:
        """Of that, what has to be the same where a checkpoint is loaded."""
        return {"classes": self.classes}

    def state_dict(self) -> dict:
        """What a checkpoint remembers of the task: the classes, and how examples were read."""
        return {**super().state_dict(), "classification": self._described}

    def load_state_dict(self, state_dict: dict) -> None:
        """Makes sure that a checkpoint, such as a member of an ensemble, was trained on examples like these.

        Raises:
            DictionaryMismatchError: it knows other classes or labels
        """
        state = dict(state_dict)
        theirs = state.pop("classification", {})
        for name, ours in self._lists.items():
            if theirs.get(name, ours) != ours:
                raise DictionaryMismatchError(
                    f"a checkpoint was trained with other {name} ({len(theirs[name])}) than those of {self.cfg.data} ({len(ours)}); use "
                    "the folder that it was trained on, or one that was preprocessed with its dictionaries (--srcdict, --tgtdict)"
                )
        super().load_state_dict(state)
