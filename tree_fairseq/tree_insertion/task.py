"""The task of insertion-based tree decoding and its baselines: options, data sets, models, criteria, generation."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Optional

import numpy as np
from fairseq import utils
from fairseq.dataclass import ChoiceEnum
from fairseq.models import FairseqEncoderDecoderModel
from fairseq.tasks import register_task
from omegaconf import II

from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.token_files import joined, side_prefixes
from tree_fairseq.errors import DataFolderError, InputError, MissingTreesError, StructuralSearchError, SymbolTreeError
from tree_fairseq.nn.modalities import CONSTITUENCY, SEQUENCE, SYMBOLS
from tree_fairseq.support.options import changed_options, given_flags, option, refuse_flags, refuse_unread
from tree_fairseq.tasks import INVALID
from tree_fairseq.tasks.translation import TranslationWithTreesConfig, TranslationWithTreesTask
from tree_fairseq.tasks.validation_accuracy import ValidationAccuracyConfig, ValidationAccuracyTask
from tree_fairseq.tree_insertion import PARTIAL, dataset
from tree_fairseq.tree_insertion.criterion import SlotKlDivergence
from tree_fairseq.tree_insertion.dictionary import InsertionDictionary, require_labels
from tree_fairseq.tree_insertion.folder import STORE_SUFFIX, InsertionRecord, insertion_trees, open_store
from tree_fairseq.tree_insertion.model import Decoding
from tree_fairseq.tree_insertion.parallel_search import InsertionLimits
from tree_fairseq.tree_insertion.program_outputs import ProgramOutputs
from tree_fairseq.tree_insertion.search import InsertionGenerator
from tree_fairseq.tree_insertion.sequences import LeftToRightGenerator, SequenceInsertionGenerator, TreeSequenceModel
from tree_fairseq.tree_insertion.store import ORACLES
from tree_fairseq.tree_insertion.target import ROOT_LABEL
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.symbols import exact_matches
from tree_fairseq.trees.tree import Tree


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreeInsertionConfig(ValidationAccuracyConfig, TranslationWithTreesConfig):
    """The options of generation, of validating by generating, and of supervision."""

    seed: int = II("common.seed")
    eval_unordered: Optional[str] = option(
        None, "with --eval-accuracy, labels whose children may be in any order, separated by blanks"
    )
    insertion_oracle: ChoiceEnum(list(ORACLES)) = option(
        "centrality",
        "oracle of the trajectories to learn from, that of the folder; centrality is the paper's, with its program's "
        "edges between siblings",
    )
    target_distribution: ChoiceEnum(["rank", "uniform"]) = option(
        "rank",
        "target distribution of a slot: a softmax over the negative ranks of the nodes allowed there, or the same "
        "probability for all. The ranks of tokens, for models that insert into sequences, are their distances from the "
        "centre of the slot",
    )
    target_temperature: float = option(0.1, "temperature of --target-distribution rank")
    trajectories: Optional[int] = option(
        None, "draw from this number of trajectories of every tree (default: all that are stored)"
    )
    partial_states: Optional[int] = option(
        None,
        "partial trees or sequences of each target in a training update, spread evenly over a trajectory; the source "
        "is encoded once for all. A number above the steps of a trajectory takes all of it (default: 4 partial trees, "
        "1 with --as-published; 1 sequence)",
    )
    grammar: ChoiceEnum(["none", "language"]) = option(
        "none", "language: an output that the parser of the programming language refuses becomes the nearest program"
    )
    schema: Optional[str] = option(
        None,
        "with --grammar language and SQL: the nearest query that runs on this schema, an SQLite file or a file of "
        "CREATE TABLE statements",
    )


def sampler_of(cfg: TreeInsertionConfig, record: InsertionRecord) -> dataset.PartialTreeSampler:
    """Returns the sampler of the options of supervision; raises an error about one that does not fit the folder."""
    # The oracle that older folders have beside another one comes second.
    if cfg.insertion_oracle != record.oracles[0]:
        raise MissingTreesError(
            f"{cfg.data} has no trajectories of --insertion-oracle {cfg.insertion_oracle}, it has those of "
            f"{record.oracles[0]}: preprocess again with --insertion-oracle {cfg.insertion_oracle}"
        )
    count = record.trajectories if cfg.trajectories is None else cfg.trajectories
    if not 1 <= count <= record.trajectories:
        raise InputError(f"--trajectories is {count}, and {cfg.data} has {record.trajectories} of each tree")
    distribution = dataset.TargetDistribution(cfg.target_distribution, cfg.target_temperature)
    return dataset.PartialTreeSampler(count, distribution, cfg.seed)


_DATASETS = {
    Decoding.TREE_INSERTION: dataset.TreeInsertionDataset,
    Decoding.SEQUENCE_INSERTION: dataset.SequenceInsertionDataset,
    Decoding.LEFT_TO_RIGHT: dataset.BracketedTargetDataset,
}
# The options of supervision that models do not read.
_UNREAD = {
    Decoding.SEQUENCE_INSERTION: ("trajectories",),
    Decoding.LEFT_TO_RIGHT: ("target_distribution", "target_temperature", "trajectories", "partial_states"),
}

# Options of fairseq-generate that the generators of trees do not read.
_REFUSED = ("constraints", "lm_path", "prefix_size", "print_alignment", "replace_unk", "score_reference")


@register_task("tree_insertion", dataclass=TreeInsertionConfig)
class TreeInsertionTask(ValidationAccuracyTask, TranslationWithTreesTask):
    """Generates the target trees of ``fairseq-preprocess --task tree_insertion`` from sentences, parsed or not.

    The task takes ``decoding``, ``sequences`` (the dictionary of a model of sequences), ``counts_brackets`` and
    ``learns_from_trees`` (in our setting, not the paper's) from the model that it builds. They decide on the data sets
    and the loss.
    """

    cfg: TreeInsertionConfig
    source_modalities = (SYMBOLS, CONSTITUENCY, SEQUENCE)
    decoding = Decoding.TREE_INSERTION
    sequences = None
    counts_brackets = False
    learns_from_trees = False
    programs: Optional[ProgramOutputs] = None
    nbest = 1  # hypotheses of a sentence that are printed

    def __init__(self, cfg: TreeInsertionConfig, src_dict, tgt_dict):
        folder = Path(utils.split_paths(cfg.data)[0])
        self.insertion = Manifest.load(folder).verify_section(InsertionRecord, folder, [])
        if self.insertion.lang != cfg.target_lang:
            raise DataFolderError(
                f"{folder} has trees for {self.insertion.lang}, not for {cfg.target_lang}: see --source-lang and "
                "--target-lang"
            )
        if not self.insertion.numbered:
            raise DataFolderError(f"{folder} was made with --numbered-labels no, which is gone: preprocess again")
        require_labels(tgt_dict, str(folder / f"dict.{cfg.target_lang}.txt"))
        tgt_dict = InsertionDictionary(tgt_dict, notation_named(self.insertion.notation))
        super().__init__(cfg, src_dict, tgt_dict)
        self.sampler = sampler_of(cfg, self.insertion)

    # Data sets

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs):
        """Loads a split with the trajectories of its targets; only epochs of training draw anew."""
        folder = self.folder_of(split, epoch)
        source, target = self.cfg.source_lang, self.cfg.target_lang
        prefixes = side_prefixes(folder, split, source, target, target, STORE_SUFFIX, combine)
        record = Manifest.load(folder).verify_section(InsertionRecord, folder, prefixes or [split])
        stores = [open_store(prefix.with_suffix(""), record.trajectory_count) for prefix in prefixes.values()]
        super().load_dataset(split, epoch=epoch, combine=combine, **kwargs)
        stored: Any = joined(stores, self.cfg.upsample_primary)
        sampler: Any = self.sampler
        if self.decoding == Decoding.SEQUENCE_INSERTION:
            # Of equal tokens in a slot, the one that is closest to its centre counts.
            sampler = dataset.PartialSequenceSampler(replace(sampler.distribution, merge=np.maximum), self.cfg.seed)
        is_training = split == self.cfg.train_subset
        if is_training:
            sampler = replace(sampler, states=self.cfg.partial_states or (4 if self.learns_from_trees else 1))
        # A test set is translated to its last line.
        options = {"every_epoch": is_training, "keep_remainder": not is_training}
        options["counts_brackets"] = self.counts_brackets
        pairs, learns_from = self.datasets[split], _DATASETS[self.decoding]
        self.datasets[split] = learns_from(pairs, stored, self.target_dictionary, sampler, self.sequences, **options)

    # Training

    def build_model(self, cfg, from_checkpoint: bool = False):
        """Builds any architecture that generates trees; one that reads no trees of sources never sees them."""
        model = super().build_model(cfg, from_checkpoint)
        decoding = getattr(model, "decoding", None)  # that of models of trees
        if isinstance(model, FairseqEncoderDecoderModel) and decoding is None:
            raise InputError(
                f"--arch {getattr(cfg, '_name', None) or cfg.arch} does not generate trees",
                hint="Use insertion_left_to_right, or --task translation, which takes the labels alone for the target.",
            )
        self.decoding = decoding or Decoding.TREE_INSERTION
        self.sequences = model.sequences if isinstance(model, TreeSequenceModel) else None
        self.counts_brackets = decoding is not None and model.longest_target is not None
        self.learns_from_trees = decoding == Decoding.TREE_INSERTION and not getattr(cfg, "as_published", False)
        return model

    def refuse_unread_flags(self, model, cfg) -> None:
        super().refuse_unread_flags(model, cfg)
        unread = dict.fromkeys(_UNREAD.get(getattr(model, "decoding", None), ()), "the model learns from sequences")
        if self.cfg.target_distribution == "uniform":
            unread.setdefault("target_temperature", "it goes with --target-distribution rank")
        if not self.cfg.eval_accuracy:
            unread["eval_unordered"] = "it goes with --eval-accuracy"
        refuse_unread(changed_options(self.cfg, TreeInsertionConfig), unread)

    def build_criterion(self, cfg, **options):
        """Builds the loss; refuses one for slots if the model has none, and the reverse."""
        criterion = super().build_criterion(cfg, **options)
        predicts_tokens = self.decoding == Decoding.LEFT_TO_RIGHT
        fitting = "label_smoothed_cross_entropy" if predicts_tokens else "slot_kl_divergence"
        is_wrong = isinstance(criterion, SlotKlDivergence) == predicts_tokens
        refuse_flags({f"--criterion {cfg._name}": is_wrong}, "the model", advice=f"use {fitting}")
        return criterion

    def checkpoint_facts(self) -> dict:
        return {**super().checkpoint_facts(), "insertion_labels": list(self.target_dictionary.symbols)}

    # Generation

    def build_generator(self, models, args, seq_gen_cls=None, extra_gen_cls_kwargs=None, **kwargs):
        """Builds the generator of models of trees; fairseq's for others.

        ``fairseq-generate`` then prints ``I-`` lines (:mod:`tree_fairseq.tree_insertion`), as with ``--print-step``.
        """
        kinds = {getattr(model, "decoding", None) for model in models}
        if seq_gen_cls is not None or kinds == {None}:
            return super().build_generator(models, args, seq_gen_cls, extra_gen_cls_kwargs, **kwargs)
        if len(kinds) > 1:
            raise StructuralSearchError("models that insert nodes and other models cannot be in an ensemble")
        [decoding] = kinds
        inserts_nodes = decoding == Decoding.TREE_INSERTION
        refused = given_flags(args, *_REFUSED)
        if decoding != Decoding.LEFT_TO_RIGHT:
            refused |= given_flags(args, "sampling")
            refused["--nbest"] = getattr(args, "nbest", 1) > 1
            refused["--lenpen"] = getattr(args, "lenpen", 1) != 1
        if not inserts_nodes:  # fairseq-generate would look for steps that are not kept
            refused |= given_flags(args, "retain_iter_history")
        refuse_flags(refused, "insertions" if inserts_nodes else "sequences of trees", StructuralSearchError)
        # fairseq-generate looks at its arguments again after this.
        args.print_step = True
        self.programs, self.nbest = self._program_outputs(), getattr(args, "nbest", 1)
        if decoding == Decoding.LEFT_TO_RIGHT:
            return super().build_generator(models, args, LeftToRightGenerator, extra_gen_cls_kwargs, **kwargs)
        limits, normalize_scores = self._limits(models), not getattr(args, "unnormalized", False)
        if decoding == Decoding.SEQUENCE_INSERTION:
            return SequenceInsertionGenerator(models, limits, normalize_scores)
        keep_history = getattr(args, "retain_iter_history", False)
        return InsertionGenerator(models, self.target_dictionary, limits, normalize_scores, keep_history)

    def _program_outputs(self) -> Optional[ProgramOutputs]:
        if self.cfg.grammar == "none":
            given = changed_options(self.cfg, TreeInsertionConfig)
            refuse_unread(given, {"schema": "it goes with --grammar language"})
            return None
        programs = insertion_trees(self.folder_of("train", 1), "train")
        return ProgramOutputs(self.target_dictionary, programs, self.cfg.schema)

    def _limits(self, models) -> InsertionLimits:
        """Allows twice the nodes of the largest training tree."""
        limits, train = InsertionLimits(), self.insertion.splits.get("train")
        nodes = limits.nodes if train is None else 2 * train.largest
        # A decoder with positions reads M nodes, the root included, as at most 3 M - 2 labels and brackets.
        lengths = [model.decoder.max_positions() for model in models if model.decoder.embed_positions is not None]
        return replace(limits, nodes=min([nodes, *((length + 2) // 3 - 1 for length in lengths)]))

    def generate(self, generator, models, sample, prefix_tokens=None, constraints=None):
        """Generates, makes programs of the outputs with ``--grammar language``, and marks those that are none."""
        found = super().generate(generator, models, sample, prefix_tokens=prefix_tokens, constraints=constraints)
        for ranked in found:
            for hypothesis in ranked[: self.nbest]:
                self._mark(hypothesis)
        return found

    def count_accurate(self, sample: dict, hypotheses: list[list[dict]]) -> int:
        """Counts the right trees of a batch; labels in ``--eval-unordered`` may have children in any order."""
        outputs = [self.tree_of(ranked[0]) if ranked else None for ranked in hypotheses]
        references = [self.target_dictionary.tree(target) for target in sample["target"].tolist()]
        return sum(exact_matches(outputs, references, (self.cfg.eval_unordered or "").split()))

    def tree_of(self, hypothesis: dict) -> Optional[Tree]:
        """Returns the tree of a hypothesis, None if it is not one tree."""
        try:
            tree = self.target_dictionary.tree(hypothesis["tokens"].tolist())
        except SymbolTreeError:
            return None
        # The sequence keeps the root that decoding begins with if that has no child or several.
        return None if tree.label == ROOT_LABEL else tree

    def _mark(self, hypothesis: dict) -> None:
        """Adds marks to the number of steps, as fairseq-generate prints it."""
        tree = self.tree_of(hypothesis)
        if self.programs is None:
            marks = [] if tree is not None and self.target_dictionary.notation.accepts(tree) else [INVALID]
        else:
            marks = self.programs.complete(hypothesis, tree)
        partial = [] if hypothesis.get("is_complete", True) else [PARTIAL]
        hypothesis["steps"] = " ".join([str(hypothesis["steps"]), *partial, *marks])
