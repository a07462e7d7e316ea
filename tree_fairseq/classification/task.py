"""The base of both tasks that classify, and ``tree_classification``, of sentences and documents with trees."""

import functools
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Optional

import numpy as np
import torch
from fairseq import utils
from fairseq.criterions.cross_entropy import CrossEntropyCriterion
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import get_available_dataset_impl
from fairseq.dataclass import ChoiceEnum
from fairseq.tasks import register_task
from omegaconf import II
from torch import Tensor

from tree_fairseq.classification.classifier import ClassPredictor, ClassTask, TreeClassifier, class_probabilities
from tree_fairseq.classification.dataset import DocumentDataset, SentenceTreeReader, TextDataset, document_lengths
from tree_fairseq.classification.examples import LineTrees
from tree_fairseq.classification.folder import CLASS, TASK, TEXT, ClassificationRecord, ExampleFiles, open_split
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.text_record import with_folder_model
from tree_fairseq.data_bin.token_files import load_dictionary
from tree_fairseq.data_bin.tree_store import load_label_dictionary
from tree_fairseq.errors import DataFolderError, InputError
from tree_fairseq.nn.tree_batch import TreeReader, as_stored
from tree_fairseq.parsing.trust import options_for_new_text, require_read_by_parser
from tree_fairseq.support.options import option
from tree_fairseq.tasks.pair_dataset import NewLines, first_line_of
from tree_fairseq.tasks.same_data import require_same_folders
from tree_fairseq.tasks.tree_task import NewTextConfig, TreeTask, TreeTaskConfig
from tree_fairseq.tasks.unknown_tokens import count_typed
from tree_fairseq.trees.spans import decode
from tree_fairseq.trees.tree import Forest

logger = logging.getLogger(__name__)

INPUT = "input"  # stands for the file in messages about new lines


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class ClassificationConfig(TreeTaskConfig):
    """Options of both tasks."""

    data: Optional[str] = option(
        None,
        "folder that fairseq-preprocess made with the same --task; of several, separated by colons, every "
        "epoch trains on another one, and other splits are those of the first",
    )
    train_subset: str = II("dataset.train_subset")
    dataset_impl: Optional[ChoiceEnum(get_available_dataset_impl())] = II("dataset.dataset_impl")


class ClassificationTask(ClassTask, TreeTask):
    """Predicts the class of an example. Subclasses read the examples, with trees or without."""

    cfg: ClassificationConfig
    tree_inputs = ("sentence_trees",)
    name: str  # the name of the task, as it is registered

    def __init__(self, cfg: ClassificationConfig):
        super().__init__(cfg)
        self.folder = Path(utils.split_paths(cfg.data)[0])
        self.manifest = Manifest.load(self.folder)
        require_same_folders(cfg.data)
        self.record = self.manifest.verify_section(ClassificationRecord, self.folder, [])
        if self.record.task != self.name:
            made_for = f"{self.folder} was preprocessed with --task {self.record.task}"
            raise DataFolderError(f"{made_for}, this is --task {self.name}")
        self.src_dict, self.tgt_dict = load_dictionary(self.folder, TEXT), load_dictionary(self.folder, CLASS)
        self.num_classes = len(self.classes)

    @classmethod
    def setup_task(cls, cfg, **kwargs):
        """Reads the dictionaries from the folder."""
        return cls(cfg)

    @property
    def source_dictionary(self) -> Dictionary:
        return self.src_dict

    @property
    def target_dictionary(self) -> Dictionary:
        """The dictionary of the classes, or of the characters of numbers."""
        return self.tgt_dict

    @property
    def classes(self) -> list[str]:
        """The names of the classes, after fairseq's special symbols."""
        return self.tgt_dict.symbols[self.tgt_dict.nspecial :]

    def max_positions(self) -> int:
        return self.cfg.max_source_positions

    # Data sets

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs):
        """Loads a split. Of several folders, every epoch trains on another one; the first has all other splits."""
        folder = self.folder_of(split, epoch)
        manifest = self.manifest if folder == self.folder else Manifest.load(folder)
        impl = None if self.cfg.dataset_impl is None else str(self.cfg.dataset_impl)
        files = open_split(folder, manifest, split, combine, self.src_dict, self.tgt_dict, impl)
        self.datasets[split] = dataset = self.make_dataset(files, split)
        logger.info("[%s] %d examples, %d tokens", split, len(dataset), int(dataset.sizes.sum()))

    def make_dataset(self, files: ExampleFiles, split: str) -> TextDataset:
        """Makes the data set of a split, whose examples are within ``--max-source-positions``."""
        raise NotImplementedError

    # New text: fairseq-interactive and the hub

    def encode_words(self, words: Sequence[str], append_eos: bool = False) -> Tensor:
        """Returns the tokens of words, int64."""
        return self.src_dict.encode_line(" ".join(words), add_if_not_exist=False, append_eos=append_eos).long()

    def read_lines(self, lines: Sequence[str], encode_fn: Callable[[str], str], first_line: int = 1) -> NewLines:
        """Makes token tensors of new lines, and their trees, exactly as those of the training data were made.

        ``encode_fn`` tokenises a text and splits it into subwords. Errors count lines from ``first_line``.
        """
        raise NotImplementedError

    def source_forests(self, lines: list[str], encode_fn: Callable[[str], str]) -> list[Forest]:
        """Returns the trees of each line, as they are read; a line without trees has an empty forest."""
        return [() for _ in lines]

    def get_interactive_tokens_and_lengths(self, lines, encode_fn):
        """Returns token tensors of the next lines of the interactive command, and their lengths."""
        read = self.read_lines(lines, encode_fn, first_line_of(lines))
        count_typed(self, read.words)
        return read, read.lengths.tolist()

    # Predictions

    def build_generator(self, models, args, seq_gen_cls=None, extra_gen_cls_kwargs=None, **kwargs):
        """Returns the predictor that ranks the classes, in place of a search."""
        return ClassPredictor(self.tgt_dict)

    def target_tokens(self, target: Tensor) -> Tensor:
        """Writes targets ``[B]`` as lines of tokens ``[B, T]``."""
        return torch.stack([target + self.tgt_dict.nspecial, torch.full_like(target, self.tgt_dict.eos())], dim=1)

    def generate(self, generator, models, sample, prefix_tokens=None, constraints=None):
        """Ranks the classes of a batch. Its targets become lines of tokens, as fairseq's commands print them.

        ``constraints`` carry trees to a batch that the interactive command rebuilt.
        """
        sample["net_input"].update(constraints or {})
        hypotheses = super().generate(generator, models, sample)
        target = sample.get("target")
        if target is not None and target.dim() == 1:
            sample["target"] = self.target_tokens(target)
        return hypotheses

    def facts_of(self, hypotheses: list[dict]) -> dict[str, Any]:
        """Returns the probabilities of all classes, the most probable first."""
        return {} if self.regression else {"probabilities": class_probabilities(hypotheses, self.tgt_dict)}

    def build_criterion(self, cfg, **options):
        """Builds the loss. Raises InputError for losses of tokens, which would take the second class for padding."""
        criterion = super().build_criterion(cfg, **options)
        if isinstance(criterion, (CrossEntropyCriterion, LabelSmoothedCrossEntropyCriterion)):
            fitting = "tree_regression" if self.regression else "tree_classification"
            raise InputError(
                f"--criterion {cfg._name} is for tokens: it would ignore all examples of the second class",
                hint=f"Use --criterion {fitting}.",
            )
        return criterion

    def checkpoint_facts(self) -> dict[str, Any]:
        """Returns the classes."""
        return {"classification": {"classes": list(self.classes)}}

    def require_same_data(self, checkpoint: dict, fine_tuning: bool = False) -> None:
        """Compares the data as :meth:`TreeTask.require_same_data` does; fine-tuning on other classes is a warning."""
        theirs = checkpoint.get("classification", {})
        if fine_tuning and theirs.get("classes", self.classes) != self.classes:
            logger.warning(
                "the checkpoint's classes are %s, and these are %s: the weights of the output start as those of the "
                "checkpoint's classes",
                *(", ".join(map(str, classes)) for classes in (theirs["classes"], self.classes)),
            )
            checkpoint = {**checkpoint, "classification": {**theirs, "classes": self.classes}}
        super().require_same_data(checkpoint, fine_tuning)


@dataclass
class TreeClassificationConfig(ClassificationConfig, NewTextConfig):
    """Options of the task."""

    label_nodes: ChoiceEnum(["auto", "all", "root"]) = option(
        "auto",
        "all: train on the class of every node and leaf that has one; root: on that of the example alone; "
        "auto: all, if nodes have classes and the model has states of nodes",
    )
    max_source_positions: int = option(
        1024, "leaves that a document may have; of a longer one, the sentences are read that end within them"
    )


@register_task(TASK, dataclass=TreeClassificationConfig)
class TreeClassificationTask(ClassificationTask):
    """Predicts the class of a sentence or a document; models that read no trees train on the same folder, too."""

    cfg: TreeClassificationConfig
    name = TASK

    def __init__(self, cfg: TreeClassificationConfig):
        super().__init__(cfg)
        self.trees = self.manifest.side(TEXT)
        require_read_by_parser(self.record.text_options if self.record.node_labels else self.trees.options, cfg)
        self.label_dictionary = load_label_dictionary(self.folder / self.trees.labels)
        for name, dictionary in (("text", self.src_dict), ("label", self.label_dictionary), ("class", self.tgt_dict)):
            logger.info("%s dictionary: %d types", name, len(dictionary))
        if str(cfg.label_nodes) == "all" and not self.record.node_labels:
            raise DataFolderError(f"--label-nodes all: {self.folder} has classes of examples only, not of nodes")
        self.labels_all_nodes = self.record.node_labels and str(cfg.label_nodes) != "root"
        self.read_tree = TreeReader(self.label_dictionary, cfg.keep_unary)
        # Of all members of an ensemble. Models are built before data sets are loaded.
        self.completions: set[Callable[[dict[str, Any], int], dict[str, Any]]] = set()

    def make_dataset(self, files: ExampleFiles, split: str) -> DocumentDataset:
        """Cuts documents beyond ``--max-source-positions`` at a sentence."""
        lengths = document_lengths(files.trees, files.lengths, self.cfg.max_source_positions, split)
        reader = SentenceTreeReader(self.read_tree, self.record.node_labels)
        is_train = split == self.cfg.train_subset
        texts = files.tokens, lengths, self.src_dict, files.targets, self.tgt_dict
        return DocumentDataset(files.trees, reader, *texts, shuffle=is_train, completions=self.completions)

    @functools.cached_property
    def line_trees(self) -> LineTrees:
        """Makes the trees of new lines."""
        options = with_folder_model(self.trees.options, self.folder, TEXT)
        return LineTrees(self.record, options, lambda own: options_for_new_text(own, self.folder, self.cfg))

    def source_forests(self, lines, encode_fn) -> list[Forest]:
        """Parses lines, or reads their trees."""
        return [decode(tree) for tree in self.line_trees.read(lines, encode_fn, path=INPUT)]

    def read_lines(self, lines, encode_fn, first_line: int = 1) -> NewLines:
        """Cuts lines beyond ``--max-source-positions`` at a sentence."""
        forests = self.line_trees.read(lines, encode_fn, first_line, INPUT)
        trees = [as_stored(forest, self.label_dictionary) for forest in forests]
        leaves = np.array([tree.num_leaves for tree in trees], np.int64)
        kept = document_lengths(trees, leaves, self.cfg.max_source_positions, INPUT, first_line)
        words = [forest.leaves[:length] for forest, length in zip(forests, kept.tolist())]
        return NewLines([self.encode_words(own) for own in words], trees, words)

    def build_dataset_for_inference(self, src_tokens, src_lengths, constraints=None) -> DocumentDataset:
        """Parses token tensors without trees by their words."""
        lines = src_tokens
        if not isinstance(lines, NewLines):
            lines = self.read_lines([self.src_dict.string(tokens) for tokens in lines], lambda line: line)
        reader = SentenceTreeReader(self.read_tree)
        return DocumentDataset(lines.trees, reader, lines, lines.lengths, self.src_dict, is_typed=True)

    def build_model(self, cfg, from_checkpoint: bool = False):
        """Builds any model of classes; one that reads no trees never gets them, and never trains on nodes."""
        model = super().build_model(cfg, from_checkpoint)
        reads_trees = isinstance(model, TreeClassifier)
        if reads_trees and model.complete_trees is not None:
            self.completions.add(model.complete_trees)
        if str(self.cfg.label_nodes) == "all" and not reads_trees:
            raise InputError(
                f"--label-nodes all trains the states of nodes, and {type(model).__name__} reads sequences",
                hint="Use --label-nodes root.",
            )
        self.labels_all_nodes = self.record.node_labels and reads_trees and str(self.cfg.label_nodes) != "root"
        return model

    def checkpoint_facts(self) -> dict[str, Any]:
        """Adds the labels of nodes."""
        facts = super().checkpoint_facts()["classification"]
        read = {"labels": list(self.label_dictionary.symbols), "keep_unary": self.cfg.keep_unary}
        return {"classification": {**facts, **read}}

    def parses(self) -> dict[str, Any]:
        """Returns what decided the trees of the texts."""
        return {"source": self.trees.identity}

    def state_dict(self) -> dict:
        """Leaves out the labels of trees if no model reads trees."""
        state = super().state_dict()
        if not self.trees_of_models:
            state["classification"] = super().checkpoint_facts()["classification"]
        return state
