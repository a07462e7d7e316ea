"""The task of insertion-based tree decoding and its baselines: data sets, models, criteria, checkpoints."""

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
    refuse_flags,
)
from tree_fairseq.nn.sides import CONSTITUENCY, SEQUENCE, SYMBOLS
from tree_fairseq.tree_insertion.criterion import SlotKlDivergence
from tree_fairseq.tree_insertion.dataset import (
    PartialTreeSampler,
    TargetDistribution,
    TargetTreeDataset,
    TreeInsertionDataset,
)
from tree_fairseq.tree_insertion.dictionary import InsertionDictionary, require_labels
from tree_fairseq.tree_insertion.folder import ORACLES, STORE_SUFFIX, InsertionRecord
from tree_fairseq.tree_insertion.generation import TreeGenerationConfig, TreeGenerationTask, decoding_of
from tree_fairseq.tree_insertion.model import LEFT_TO_RIGHT, TREE_INSERTION
from tree_fairseq.tree_insertion.sequence_dataset import (
    BracketedTargetDataset,
    PartialSequenceSampler,
    SequenceInsertionDataset,
)
from tree_fairseq.tree_insertion.sequence_models import TreeSequenceModel
from tree_fairseq.tree_insertion.store import InsertionStore, open_store
from tree_fairseq.trees.notations import notation_named

logger = logging.getLogger(__name__)


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreeInsertionConfig(TreeGenerationConfig):
    """The options of generation, and those of supervision."""

    insertion_oracle: ChoiceEnum(list(ORACLES)) = field(
        default="centrality",
        metadata={
            "help": "oracle of the trajectories to learn from: central nodes first (the paper's), or the fewest steps"
        },
    )
    target_distribution: ChoiceEnum(["rank", "optimal"]) = field(
        default="rank",
        metadata={
            "help": "target distribution of a slot: a softmax over the negative ranks of the nodes allowed there, or "
            "the same probability for each of the best nodes (only with --insertion-oracle exact)"
        },
    )
    target_temperature: float = field(
        default=0.1,
        metadata={"help": "temperature of --target-distribution rank, and of --sequence-supervision binary"},
    )
    sequence_supervision: ChoiceEnum(["binary", "uniform"]) = field(
        default="binary",
        metadata={
            "help": "target distribution of a slot between tokens, for models that insert into sequences: a softmax "
            "over the negative distances of the missing tokens from their centre, or the same probability for each "
            "different token"
        },
    )
    trajectories: Optional[int] = field(
        default=None,
        metadata={"help": "draw from this number of trajectories of every tree (default: all that are stored)"},
    )
    deletion: bool = field(
        default=False, metadata={"help": "learn to delete nodes: in training, partial trees get wrong nodes"}
    )
    wrong_nodes: float = field(
        default=0.1,
        metadata={"help": "with --deletion, the probability that a slot of a partial tree gets a wrong node"},
    )
    seed: int = II("common.seed")


@register_task("tree_insertion", dataclass=TreeInsertionConfig)
class TreeInsertionTask(TreeGenerationTask):
    """Generates the target trees of ``fairseq-preprocess --task tree_insertion`` from sentences, parsed or not.

    ``decoding`` is the kind of decoding of the model that was built, which decides on the data sets; ``sequences`` is
    the dictionary of labels and brackets, if the model generates sequences.
    """

    cfg: TreeInsertionConfig
    source_modalities = (SYMBOLS, CONSTITUENCY, SEQUENCE)
    decoding = TREE_INSERTION
    sequences = None

    def __init__(self, cfg: TreeInsertionConfig, src_dict, tgt_dict):
        folder = Path(utils.split_paths(cfg.data)[0])
        self.insertion = Manifest.load(folder).verify_section(InsertionRecord, folder, [])
        if self.insertion.lang != cfg.target_lang:
            raise DataFolderError(
                f"{folder} has trees for {self.insertion.lang}, not for {cfg.target_lang}: see --source-lang and "
                "--target-lang"
            )
        require_labels(tgt_dict, self.insertion.words, str(folder / f"dict.{cfg.target_lang}.txt"))
        tgt_dict = InsertionDictionary(tgt_dict, self.insertion.words, notation_named(self.insertion.notation))
        super().__init__(cfg, src_dict, tgt_dict)
        self.sampler = self._sampler()

    def _sampler(self) -> PartialTreeSampler:
        cfg, record = self.cfg, self.insertion
        if cfg.insertion_oracle not in record.oracles:
            raise MissingTreesError(
                f"{cfg.data} has no trajectories of --insertion-oracle {cfg.insertion_oracle}, it has those of "
                + ", ".join(record.oracles)
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
        """Loads a split as the stock task does, with the trajectories of its targets.

        Every epoch of training draws other partial trees, or sequences; the other splits always have the same ones.
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
        """Returns a data set of the kind that the model learns from."""
        cfg, labels = self.cfg, self.target_dictionary
        if self.decoding == TREE_INSERTION:
            return TreeInsertionDataset(pairs, stored, labels, sampler=self.sampler, **options)
        options["sequences"] = self.sequences
        if self.decoding == LEFT_TO_RIGHT:
            return BracketedTargetDataset(pairs, stored, labels, **options)
        distribution = TargetDistribution(cfg.sequence_supervision, cfg.target_temperature)
        sampler = PartialSequenceSampler(distribution, cfg.seed)
        return SequenceInsertionDataset(pairs, stored, labels, sampler=sampler, **options)

    def _load_stores(self, folder: Path, split: str, combine: bool) -> list[InsertionStore]:
        """Opens the trajectories of a split in the order of its lines."""
        source, target = self.cfg.source_lang, self.cfg.target_lang
        manifest = Manifest.load(folder)
        prefixes = side_prefixes(folder, split, source, target, target, STORE_SUFFIX, combine)
        record = manifest.verify_section(InsertionRecord, folder, prefixes or [split])
        first = utils.split_paths(self.cfg.data)[0]
        if differences := self.insertion.differences(record):
            raise DictionaryMismatchError(
                f"{folder} was preprocessed differently from {first} ({'; '.join(differences)}): use the same options"
            )
        name = f"dict.{target}.txt"
        if manifest.files[name] != Manifest.load(first).files[name]:
            raise DictionaryMismatchError(
                f"{folder} has other labels than {first}: preprocess it with --srcdict and --tgtdict of that"
            )
        return [open_store(prefix, record.trajectory_count) for prefix in prefixes.values()]

    # Training

    def build_model(self, cfg, from_checkpoint: bool = False):
        """Builds any architecture that generates trees; one that reads no trees of sources never sees them."""
        model = super().build_model(cfg, from_checkpoint)
        decoding = decoding_of(model)
        if isinstance(model, FairseqEncoderDecoderModel) and decoding is None:
            raise InputError(
                f"--arch {getattr(cfg, '_name', None) or cfg.arch} does not generate trees",
                hint="Use insertion_left_to_right, or --task translation, which takes the labels alone for the target.",
            )
        self.decoding = decoding or TREE_INSERTION
        self.sequences = model.sequences if isinstance(model, TreeSequenceModel) else None
        refuse_flags({"--deletion": self.cfg.deletion and self.sequences is not None}, "models of sequences")
        return model

    def build_criterion(self, cfg, from_checkpoint: bool = False):
        """Builds the loss; refuses one for slots if the model has none, and the reverse."""
        criterion = super().build_criterion(cfg, from_checkpoint)
        predicts_tokens = self.decoding == LEFT_TO_RIGHT
        fitting = "label_smoothed_cross_entropy" if predicts_tokens else "slot_kl_divergence"
        is_wrong = self.sequences is not None and isinstance(criterion, SlotKlDivergence) == predicts_tokens
        refuse_flags({f"--criterion {cfg._name}": is_wrong}, "the model", advice=f"use {fitting}")
        return criterion

    def checkpoint_facts(self) -> dict:
        """Also returns the labels that the model inserts."""
        return {**super().checkpoint_facts(), "insertion_labels": list(self.target_dictionary.symbols)}
