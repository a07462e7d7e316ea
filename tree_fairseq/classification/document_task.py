"""The task ``tree_classification``: sentences and documents are classified by their trees."""

import functools
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Optional

from fairseq import utils
from fairseq.dataclass import ChoiceEnum
from fairseq.tasks import register_task
from torch import Tensor

from tree_fairseq.classification.base_task import ClassificationConfig, ClassificationTask
from tree_fairseq.classification.class_trees import ClassNodes
from tree_fairseq.classification.dataset import DocumentDataset, document_lengths
from tree_fairseq.classification.folder import TEXT, ClassificationRecord, ExampleFiles
from tree_fairseq.classification.new_lines import DocumentReader, tree_reader
from tree_fairseq.classification.sentence_trees import SentenceTreeReader, from_constraints
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.tree_store import load_label_dictionary
from tree_fairseq.errors import DataFolderError, InputError
from tree_fairseq.nn.pair_dataset import NewLines
from tree_fairseq.nn.tree_batch import TreeReader
from tree_fairseq.nn.tree_task import trees_read
from tree_fairseq.trees.spans import decode
from tree_fairseq.trees.tree import Forest

logger = logging.getLogger(__name__)


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreeClassificationConfig(ClassificationConfig):
    """Options of the task."""

    label_nodes: ChoiceEnum(["auto", "all", "root"]) = field(
        default="auto",
        metadata={
            "help": "all: train on the class of every node and leaf that has one; root: on that of the example alone; "
            "auto: all, if nodes have classes and the model has states of nodes"
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
        default=None, metadata={"help": "folder of the parser's model for new text, if it is not where tree.json says"}
    )


@register_task("tree_classification", dataclass=TreeClassificationConfig)
class TreeClassificationTask(ClassificationTask):
    """Predicts the class of a sentence or a document.

    Models that read no trees train on the same folder under this task, too.

    Args:
        cfg (TreeClassificationConfig): options

    Attributes:
        num_classes: C
        label_dictionary: labels of the nodes that are read
        labels_all_nodes: whether the model that was built last is trained on the classes of all nodes
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

    def make_dataset(self, files: ExampleFiles, split: str) -> DocumentDataset:
        """Makes the data set of a split; documents beyond ``--max-source-positions`` are cut at a sentence."""
        lengths = document_lengths(files.trees, files.lengths, self.cfg.max_source_positions, files.place, split)
        logger.info("[%s] %d examples, %d tokens", split, len(files.tokens), int(lengths.sum()))
        return DocumentDataset(
            files.tokens,
            lengths,
            self.src_dict,
            files.trees,
            SentenceTreeReader(self.read_tree, ClassNodes(self.label_dictionary) if self.record.node_labels else None),
            self.label_dictionary.pad(),
            files.targets,
            self.tgt_dict,
            shuffle=split == self.cfg.train_subset,
        )

    def differences(self, folder: Path, manifest: Manifest) -> list[str]:
        """Names what differs between another folder and the first, labels of nodes among it."""
        found = super().differences(folder, manifest)
        ours, theirs = self.record, manifest.section(ClassificationRecord)
        names = (
            ("labels", load_label_dictionary(folder / manifest.side(TEXT).labels) == self.label_dictionary),
            ("nodes", (ours.node_labels, ours.node_symbols) == (theirs.node_labels, theirs.node_symbols)),
        )
        return found + [name for name, is_same in names if not is_same]

    @functools.cached_property
    def read_lines(self) -> DocumentReader:
        """Makes token tensors and trees of new lines exactly as those of the training data were made."""
        reader = tree_reader(self.record, self.trees.options, self.cfg.parser_dir)
        return DocumentReader(reader, self.src_dict, self.label_dictionary, self.cfg.max_source_positions)

    def source_forests(self, lines: list[str], encode_fn: Callable[[str], str]) -> list[Forest]:
        """Returns the trees of each line, as they are read."""
        return [decode(tree) for tree in self.read_lines.trees(lines, encode_fn)]

    def new_dataset(self, lines) -> DocumentDataset:
        """Makes a data set of lines to classify; token tensors without trees are parsed by their words."""
        if not isinstance(lines, NewLines):
            lines = self.read_lines([self.src_dict.string(tokens) for tokens in lines], lambda line: line)
        read = SentenceTreeReader(self.read_tree)
        pad = self.label_dictionary.pad()
        return DocumentDataset(lines, lines.lengths, self.src_dict, lines.trees, read, pad, first_line=lines.first)

    def example_numbers(self, sample: dict, constraints: Optional[Tensor]) -> Optional[Tensor]:
        """Returns the numbers of a batch's documents, and moves trees from the constraints to the input of models."""
        if constraints is None or "sentence_trees" in sample["net_input"]:
            return super().example_numbers(sample, constraints)
        sample["net_input"]["sentence_trees"], numbers = from_constraints(constraints)
        return numbers

    def build_model(self, cfg, from_checkpoint: bool = False):
        """Builds any model of classes; one that reads no trees never gets them.

        Raises:
            InputError: the classes of nodes are to be trained on, and the model has no states of nodes
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

    def checkpoint_facts(self) -> dict[str, Any]:
        """Returns the classes, the labels of nodes and the reading of unary chains."""
        facts = super().checkpoint_facts()["classification"]
        trees = {"labels": list(self.label_dictionary.symbols), "unary_chains": str(self.cfg.unary_chains)}
        return {"classification": {**facts, **trees}}

    def state_dict(self) -> dict:
        """Returns what a checkpoint keeps of the task; the labels of trees only if its model reads trees."""
        state = super().state_dict()
        if not self.trees_of_models:
            state["classification"] = super().checkpoint_facts()["classification"]
        return state
