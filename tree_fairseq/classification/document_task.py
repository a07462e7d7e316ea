"""Classification of sentences and documents by their trees."""

import functools
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Optional

from fairseq import utils
from fairseq.data.indexed_dataset import get_available_dataset_impl
from fairseq.dataclass import ChoiceEnum
from fairseq.tasks import register_task
from omegaconf import II
from torch import Tensor

from tree_fairseq.classification.class_trees import ClassNodes, line_reader
from tree_fairseq.classification.dataset import ClassificationDataset, DocumentLengths
from tree_fairseq.classification.folder import TEXT, ClassificationRecord, load_split
from tree_fairseq.classification.new_documents import DocumentReader, NewDocuments, ParsedDocuments
from tree_fairseq.classification.rows import RowReader, unpack_rows
from tree_fairseq.classification.task import ClassTask
from tree_fairseq.data_bin.label_dictionary import load_label_dictionary
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.errors import DataFolderError, DictionaryMismatchError, InputError
from tree_fairseq.nn.tasks import TreeTaskConfig, trees_read
from tree_fairseq.nn.tree_batch import TreeReader
from tree_fairseq.trees.tree import Forest

logger = logging.getLogger(__name__)


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreeClassificationConfig(TreeTaskConfig):
    """Options of classification."""

    data: Optional[str] = field(
        default=None,
        metadata={
            "help": "folder that fairseq-preprocess --task tree_classification made; of several, separated by colons, every "
            "epoch trains on another one, and other splits are those of the first"
        },
    )
    label_nodes: ChoiceEnum(["auto", "all", "root"]) = field(
        default="auto",
        metadata={
            "help": "all: train on the class of every node and leaf that has one; root: on that of the example alone; auto: all, "
            "where nodes have classes and the model has states of nodes"
        },
    )
    unary_chains: ChoiceEnum(["lowest", "join"]) = field(
        default="lowest",
        metadata={
            "help": "a chain of constituents over the same words is one node: with the 'lowest' label, or "
            "all labels joined"
        },
    )
    max_source_positions: int = field(
        default=1024,
        metadata={
            "help": "leaves that a document may have; of a longer one, the sentences are read that end within them"
        },
    )
    parser_dir: Optional[str] = field(
        default=None,
        metadata={"help": "folder of the parser's model, where new text is parsed and it is not where tree.json says"},
    )
    train_subset: str = II("dataset.train_subset")
    dataset_impl: Optional[ChoiceEnum(get_available_dataset_impl())] = II("dataset.dataset_impl")


@register_task("tree_classification", dataclass=TreeClassificationConfig)
class TreeClassificationTask(ClassTask):
    """Tells the class of a sentence or a document.

    Models that read no trees train on the same folder under this task too.

    Args:
        cfg (TreeClassificationConfig): options

    Attributes:
        num_classes: C
        label_dictionary: labels of nodes that are read
        labels_all_nodes: whether the model that was built last is to be trained on the classes of all nodes
    """

    cfg: TreeClassificationConfig
    name = "tree_classification"

    def __init__(self, cfg: TreeClassificationConfig):
        super().__init__(cfg)
        folder = Path(utils.split_paths(cfg.data)[0])
        self.trees = Manifest.load(folder).side(TEXT)
        self.label_dictionary = load_label_dictionary(folder / self.trees.labels)
        for name, count in (
            ("text", len(self.src_dict)),
            ("label", len(self.label_dictionary)),
            ("class", len(self.tgt_dict)),
        ):
            logger.info("%s dictionary: %d types", name, count)
        if str(cfg.label_nodes) == "all" and not self.record.node_labels:
            raise DataFolderError(f"--label-nodes all: {folder} has classes of examples only, not of nodes")
        self.labels_all_nodes = self.record.node_labels and str(cfg.label_nodes) != "root"
        self.read_tree = TreeReader(self.label_dictionary, cfg.unary_chains)

    # Data sets

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs):
        """Loads the texts, trees and classes of a split.

        Raises:
            MissingTreesError: the folder has none for the split
            CorruptFileError: they do not belong together
            DictionaryMismatchError: the folder has other labels or classes than the first
            LongSentenceError: a document cannot be cut to ``--max-source-positions``
        """
        folder = self.folder_of(split, epoch)
        self.require_same_kind(folder)
        impl = None if self.cfg.dataset_impl is None else str(self.cfg.dataset_impl)
        files = load_split(folder, split, combine, self.src_dict, self.tgt_dict, impl)
        lengths = DocumentLengths(files.trees, files.leaves, self.cfg.max_source_positions, files.place)
        if lengths.cut:
            logger.warning("[%s] %s", split, lengths.message(self.cfg.max_source_positions))
        logger.info("[%s] %d examples, %d tokens", split, len(files.tokens), int(lengths.kept.sum()))
        self.datasets[split] = ClassificationDataset(
            files.tokens,
            files.trees,
            lengths.kept,
            RowReader(self.read_tree, ClassNodes(self.label_dictionary) if self.record.node_labels else None),
            self.src_dict,
            self.label_dictionary.pad(),
            files.classes,
            self.tgt_dict,
            shuffle=split == self.cfg.train_subset,
        )

    def differences(self, folder: Path, manifest: Manifest) -> list[str]:
        """What is not in another folder as it is in the first, labels of nodes among it."""
        found = super().differences(folder, manifest)
        ours, theirs = self.record, manifest.section(ClassificationRecord)
        names = (
            ("labels", load_label_dictionary(folder / manifest.side(TEXT).labels) == self.label_dictionary),
            ("nodes", (ours.node_labels, ours.node_symbols) == (theirs.node_labels, theirs.node_symbols)),
        )
        return found + [name for name, is_same in names if not is_same]

    # New text: fairseq-interactive and the hub

    @functools.cached_property
    def read_documents(self) -> DocumentReader:
        """Makes documents of new lines exactly as those of the training data were made."""
        read_lines = line_reader(self.record, self.trees.options, self.cfg.parser_dir)
        return DocumentReader(read_lines, self.src_dict, self.label_dictionary, self.cfg.max_source_positions)

    def source_forests(self, lines: list[str], encode_fn: Callable[[str], str]) -> list[Forest]:
        """The trees of each line, as they are read."""
        return [line.forest for line in self.read_documents.parse(lines, encode_fn)]

    def build_dataset_for_inference(self, src_tokens, src_lengths, constraints: Optional[Tensor] = None):
        """A data set of lines to classify; token tensors without trees are parsed by their words."""
        if constraints is not None:
            raise DataFolderError("--constraints are for translations; a class has none")
        if not isinstance(src_tokens, ParsedDocuments):
            src_tokens = self.read_documents([self.src_dict.string(tokens) for tokens in src_tokens], lambda line: line)
        rows = RowReader(self.read_tree)
        return NewDocuments(src_tokens, read_rows=rows, dictionary=self.src_dict, label_pad=self.label_dictionary.pad())

    def numbers(self, sample: dict, constraints: Optional[Tensor]) -> Optional[Tensor]:
        """The numbers of a batch's documents. Trees that came packed as constraints are put back where models expect them."""
        if constraints is None or "sentence_trees" in sample["net_input"]:
            return super().numbers(sample, constraints)
        sample["net_input"]["sentence_trees"], numbers = unpack_rows(constraints)
        return numbers

    # Training

    def build_model(self, cfg, from_checkpoint: bool = False):
        """Builds any model of classes; one that reads no trees never sees them.

        Raises:
            InputError: it is to be trained on the classes of nodes, and has no states of nodes
        """
        model = super().build_model(cfg, from_checkpoint)
        reads_trees = bool(trees_read(model))
        if str(self.cfg.label_nodes) == "all" and not reads_trees:
            raise InputError(
                f"--label-nodes all trains the states of nodes, and {type(model).__name__} reads sequences",
                hint="Use --label-nodes root.",
            )
        self.labels_all_nodes = self.record.node_labels and reads_trees and str(self.cfg.label_nodes) != "root"
        return model

    @property
    def _described(self) -> dict:
        described = super()._described
        if self.has_tree_model:
            described |= {"labels": list(self.label_dictionary.symbols), "unary_chains": str(self.cfg.unary_chains)}
        return described

    @property
    def _lists(self) -> dict:
        return {**super()._lists, "labels": self.label_dictionary.symbols}

    def load_state_dict(self, state_dict: dict) -> None:
        """As :class:`ClassTask` has it; trees have to be read in the same way, too.

        Raises:
            DictionaryMismatchError: it knows other classes or labels, or read unary chains in another way
        """
        theirs = state_dict.get("classification", {})
        super().load_state_dict(state_dict)
        ours = str(self.cfg.unary_chains)
        if theirs.get("unary_chains", ours) != ours:
            raise DictionaryMismatchError(
                f"a checkpoint was trained with --unary-chains {theirs['unary_chains']}, this is --unary-chains {ours}"
            )
