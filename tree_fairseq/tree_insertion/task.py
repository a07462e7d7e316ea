"""Insertion-based tree decoding: from sentences to trees that grow from their root, all slots at once."""

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from fairseq import utils
from fairseq.dataclass import ChoiceEnum
from fairseq.models import FairseqEncoderDecoderModel
from fairseq.tasks import register_task
from omegaconf import II

from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.token_files import joined, side_prefixes
from tree_fairseq.errors import (
    CorruptFileError,
    DataFolderError,
    DictionaryMismatchError,
    InputError,
    MissingTreesError,
)
from tree_fairseq.tree_insertion.criterion import SlotKlDivergence
from tree_fairseq.tree_insertion.dataset import (
    PartialTreeSampler,
    TargetDistribution,
    TargetTreeDataset,
    TreeInsertionDataset,
)
from tree_fairseq.tree_insertion.dictionary import InsertionDictionary, require_labels
from tree_fairseq.tree_insertion.folder import ORACLES, STORE_SUFFIX, InsertionRecord
from tree_fairseq.tree_insertion.inference import InsertionInferenceConfig, InsertionInferenceTask, way_of
from tree_fairseq.tree_insertion.sequence_dataset import (
    BracketedTargetDataset,
    SequenceInsertionDataset,
    SequenceSupervision,
)
from tree_fairseq.tree_insertion.sequence_model import LEFT_TO_RIGHT
from tree_fairseq.tree_insertion.store import InsertionStore, open_store
from tree_fairseq.trees.notations import notation_named

logger = logging.getLogger(__name__)


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreeInsertionConfig(InsertionInferenceConfig):
    """fairseq's translation options, those of source trees, and those of insertions."""

    insertion_oracle: ChoiceEnum(list(ORACLES)) = field(
        default="centrality",
        metadata={
            "help": "whose trajectories are learned: those of the most central nodes (the paper's), or of the fewest steps"
        },
    )
    target_distribution: ChoiceEnum(["rank", "optimal"]) = field(
        default="rank",
        metadata={
            "help": "what a slot should get: of the nodes allowed there a softmax over their negative ranks, or each that is best with "
            "the same probability (only with --insertion-oracle exact)"
        },
    )
    target_temperature: float = field(
        default=0.1,
        metadata={"help": "temperature of --target-distribution rank, and of --sequence-supervision binary"},
    )
    sequence_supervision: ChoiceEnum(["binary", "uniform"]) = field(
        default="binary",
        metadata={
            "help": "what a slot between tokens should get, for models that insert into sequences: of the tokens missing there a softmax "
            "over their negative distances from the centre, or each different one with the same probability"
        },
    )
    trajectories: Optional[int] = field(
        default=None,
        metadata={"help": "draw from the first so many trajectories of every tree (default: all that are stored)"},
    )
    deletion: bool = field(
        default=False, metadata={"help": "learn to delete nodes: partial trees of the training get wrong ones"}
    )
    wrong_nodes: float = field(
        default=0.1,
        metadata={"help": "with --deletion, the probability that a slot of a partial tree gets a wrong node"},
    )
    seed: int = II("common.seed")


@register_task("tree_insertion", dataclass=TreeInsertionConfig)
class TreeInsertionTask(InsertionInferenceTask):
    """Grows the trees of ``fairseq-preprocess --task tree_insertion`` from sentences, with trees of their own or without.

    Args:
        cfg (TreeInsertionConfig): options
        src_dict: source dictionary
        tgt_dict: dictionary of labels

    Attributes:
        insertion: record of the targets
        sequences: labels and brackets of a model that takes trees for sequences; None for one that grows them
        writes: how such a model writes
    """

    cfg: TreeInsertionConfig
    needs_source_trees = False
    sequences = None
    writes = None

    def __init__(self, cfg: TreeInsertionConfig, src_dict, tgt_dict):
        folder = Path(utils.split_paths(cfg.data)[0])
        self.insertion = Manifest.load(folder).verify_section(InsertionRecord, folder, [])
        if self.insertion.lang != cfg.target_lang:
            raise DataFolderError(
                f"{folder} has trees for {self.insertion.lang}, not for {cfg.target_lang}: see --source-lang and --target-lang"
            )
        require_labels(tgt_dict, self.insertion.words, str(folder / f"dict.{cfg.target_lang}.txt"))
        tgt_dict = InsertionDictionary(tgt_dict, self.insertion.words, notation_named(self.insertion.notation))
        super().__init__(cfg, src_dict, tgt_dict)
        self.sampler = self._sampler()

    def _sampler(self) -> PartialTreeSampler:
        """Draws partial trees as the options say.

        Raises:
            MissingTreesError: the folder has no such trajectories
            InputError: options do not go together, or have values that they cannot have
        """
        cfg, record = self.cfg, self.insertion
        if cfg.insertion_oracle not in record.oracles:
            raise MissingTreesError(
                f"{cfg.data} has no trajectories of --insertion-oracle {cfg.insertion_oracle}, it has those of {', '.join(record.oracles)}"
            )
        if cfg.target_distribution == "optimal" and cfg.insertion_oracle != "exact":
            raise InputError(
                "--target-distribution optimal needs --insertion-oracle exact, which knows all optimal insertions"
            )
        count = record.trajectories if cfg.trajectories is None else cfg.trajectories
        if not 1 <= count <= record.trajectories:
            raise InputError(
                f"--trajectories is from 1 to {record.trajectories}, as many as {cfg.data} has of a tree, not {count}"
            )
        if not cfg.target_temperature > 0:
            raise InputError(f"--target-temperature is above 0, not {cfg.target_temperature}")
        if not 0 < cfg.wrong_nodes < 1:
            raise InputError(f"--wrong-nodes is a probability between 0 and 1, not {cfg.wrong_nodes}")
        distribution = TargetDistribution(cfg.target_distribution, cfg.target_temperature)
        wrong_nodes = cfg.wrong_nodes if cfg.deletion else None
        return PartialTreeSampler(record.first_of(cfg.insertion_oracle), count, distribution, wrong_nodes, cfg.seed)

    # Data sets

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs):
        """Loads a split as the stock task does, and trajectories to its targets.

        In training every epoch draws a partial tree, or sequence, for each target, elsewhere it is always the same. Which of these
        there are depends on the model that was built.

        Raises:
            MissingTreesError: the folder has none for the split
            CorruptFileError: trajectories and targets do not belong together
            DictionaryMismatchError: the folder has other labels than the first, or they were changed
        """
        folder = self.folder_of(split, epoch)
        stores = self._load_stores(folder, split, combine)
        super().load_dataset(split, epoch=epoch, combine=combine, **kwargs)
        stored = joined(stores, self.cfg.upsample_primary)
        if len(stored) != len(self.datasets[split]):
            raise CorruptFileError(
                f"{folder}: {len(self.datasets[split])} targets but {len(stored)} lines of trajectories in '{split}'"
            )
        is_training = split == self.cfg.train_subset
        # A test set is translated to its last line.
        options = {"every_epoch": is_training, "keep_remainder": not is_training}
        self.datasets[split] = self._with_targets(self.datasets[split], stored, options)

    def _with_targets(self, pairs, stored, options: dict) -> TargetTreeDataset:
        """Pairs with what the model learns from."""
        if self.sequences is None:
            return TreeInsertionDataset(pairs, stored, self.target_dictionary, sampler=self.sampler, **options)
        options["sequences"] = self.sequences
        if self.writes == LEFT_TO_RIGHT:
            return BracketedTargetDataset(pairs, stored, self.target_dictionary, **options)
        supervision = SequenceSupervision(self.cfg.sequence_supervision, self.cfg.target_temperature, self.cfg.seed)
        return SequenceInsertionDataset(pairs, stored, self.target_dictionary, supervision=supervision, **options)

    def _load_stores(self, folder: Path, split: str, combine: bool) -> list[InsertionStore]:
        """The trajectories of a split in the order of its lines."""
        source, target = self.cfg.source_lang, self.cfg.target_lang
        manifest = Manifest.load(folder)
        prefixes = side_prefixes(folder, split, source, target, target, STORE_SUFFIX, combine)
        record = manifest.verify_section(InsertionRecord, folder, prefixes or [split])
        first = utils.split_paths(self.cfg.data)[0]
        if differences := self.insertion.differences(record):
            raise DictionaryMismatchError(
                f"{folder} was made in another way than {first} ({'; '.join(differences)}): preprocess it with the same options"
            )
        name = f"dict.{target}.txt"
        if manifest.files[name] != Manifest.load(first).files[name]:
            raise DictionaryMismatchError(
                f"{folder} has other labels than {first}: preprocess it with --srcdict and --tgtdict of that"
            )
        return [open_store(prefix, record.trajectory_count) for prefix in prefixes.values()]

    # Training

    def build_model(self, cfg, from_checkpoint: bool = False):
        """Builds any architecture; one that reads no trees of sources never sees them.

        Raises:
            MissingTreesError: it reads them, and the folder has none
            InputError: it writes no trees, or --deletion does not go with it
        """
        model = super().build_model(cfg, from_checkpoint)
        if self.has_tree_model and self.trees is None:
            raise MissingTreesError(
                f"the model reads trees of the source, and {self.cfg.data} has none: preprocess with --tree-parser"
            )
        if isinstance(model, FairseqEncoderDecoderModel) and way_of(model) is None:
            raise InputError(
                f"--arch {getattr(cfg, '_name', None) or cfg.arch} writes no trees",
                hint="Use insertion_left_to_right, or --task translation, which takes the labels alone for the target.",
            )
        self.sequences, self.writes = getattr(model, "sequences", None), getattr(model, "writes", None)
        if self.sequences is not None and self.cfg.deletion:
            raise InputError("--deletion is for trees that grow, and the model writes sequences", hint="Leave it out.")
        return model

    def build_criterion(self, cfg, from_checkpoint: bool = False):
        """Builds the loss.

        Raises:
            InputError: it is of slots, and the model has none; or the other way round
        """
        criterion = super().build_criterion(cfg, from_checkpoint)
        if self.writes is not None and isinstance(criterion, SlotKlDivergence) == (self.writes == LEFT_TO_RIGHT):
            fitting = "label_smoothed_cross_entropy" if self.writes == LEFT_TO_RIGHT else "slot_kl_divergence"
            raise InputError(f"--criterion {cfg._name} does not go with the model", hint=f"Use --criterion {fitting}.")
        return criterion

    def state_dict(self) -> dict:
        """What a checkpoint remembers of the task: the labels that its model inserts."""
        return {**super().state_dict(), "insertion_labels": list(self.target_dictionary.symbols)}

    def load_state_dict(self, state_dict: dict) -> None:
        """Makes sure that a checkpoint, such as a member of an ensemble, was trained with these labels.

        Raises:
            DictionaryMismatchError: it knows others
        """
        state = dict(state_dict)
        labels = state.pop("insertion_labels", None)
        if labels is not None and labels != self.target_dictionary.symbols:
            raise DictionaryMismatchError(
                f"a checkpoint was trained with other labels of targets ({len(labels)}) than those of {self.cfg.data} "
                f"({len(self.target_dictionary)}); use the folder that it was trained on, or one that was preprocessed with its "
                "dictionaries (--srcdict, --tgtdict)"
            )
        super().load_state_dict(state)
