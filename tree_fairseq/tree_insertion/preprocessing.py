"""``fairseq-preprocess --task tree_insertion``: labels as stock token files, trajectories beside them.

The targets are read and judged first, and the trajectories of all different trees are found. Then the lines of labels, in the staging folder,
take the place of the trees, and all is as in translation; in the end every split gets the trajectories of its lines.
"""

from __future__ import annotations

import logging
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from fairseq.data import Dictionary

from tree_fairseq.data_bin.folder_trees import enter_files
from tree_fairseq.data_bin.inputs import TextInput, inspect_text
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.staging import Staging
from tree_fairseq.data_bin.symbol_sides import modality
from tree_fairseq.data_bin.token_files import found_impl, token_file_names, token_prefix
from tree_fairseq.data_bin.tree_store import tree_file_paths
from tree_fairseq.errors import DataFolderError, InputError
from tree_fairseq.files import require_room
from tree_fairseq.preprocessing.hook import Preprocessing, register_preprocessing
from tree_fairseq.preprocessing.plan import PreprocessPlan
from tree_fairseq.preprocessing.run import run_plan
from tree_fairseq.tree_insertion.dictionary import build_insertion_dictionary, require_labels
from tree_fairseq.tree_insertion.folder import ORACLES, STORE_SUFFIX, TASK, InsertionRecord, InsertionSplitRecord
from tree_fairseq.tree_insertion.lines import (
    InsertionText,
    LineReader,
    TrajectorySampler,
    TreeRegistry,
    store_distinct,
    write_lines,
)
from tree_fairseq.tree_insertion.store import InsertionStore
from tree_fairseq.trees.notations import notation_named

# FROM preprocessing/insertion_arguments: The arguments of ``fairseq-preprocess --task tree_insertion``.

# Flags and what they are where they are not given.
_DEFAULTS = {
    "numbered_labels": "yes",
    "insertion_oracle": "both",
    "trajectories": 5,
    "trajectory_seed": 1,
    "max_target_nodes": 500,
}


def add_insertion_arguments(parser: ArgumentParser) -> None:
    """Adds the group of arguments about insertion-based decoding."""
    group = parser.add_argument_group(
        "insertion-based tree decoding",
        f"with --task {TASK}: every target line is a tree in --target-notation, which grows node by node",
    )

    def say(name: str, text: str) -> str:
        return f"{text} (default: {_DEFAULTS[name]})"

    group.add_argument(
        "--numbered-labels",
        choices=("yes", "no"),
        help=say(
            "numbered_labels", "write the k-th node of a label as LABEL::k, so that equal labels can be told apart"
        ),
    )
    group.add_argument(
        "--insertion-oracle",
        choices=(*ORACLES, "both"),
        help=say(
            "insertion_oracle", "whose trajectories are stored: those of the most central nodes, or of the fewest steps"
        ),
    )
    group.add_argument(
        "--trajectories", type=int, metavar="K", help=say("trajectories", "how many of each oracle for every tree")
    )
    group.add_argument(
        "--trajectory-seed",
        type=int,
        metavar="N",
        help=say("trajectory_seed", "of the choice between equally good nodes"),
    )
    group.add_argument(
        "--max-target-nodes",
        type=int,
        metavar="N",
        help=say(
            "max_target_nodes",
            "a larger tree is an error: the oracles' time and memory grow with the square of its nodes, and faster",
        ),
    )


def is_insertion(args: Namespace) -> bool:
    """Whether targets are to be decoded by insertions; a caller from Python may have made its arguments without our parser.

    Raises:
        InputError: they are not, and there is an argument that says how.
    """
    if getattr(args, "task", None) == TASK:
        return True
    if given := [name for name in _DEFAULTS if getattr(args, name, None) is not None]:
        raise InputError(f"--{given[0].replace('_', '-')} goes with --task {TASK} only")
    return False


def settled_arguments(args: Namespace) -> Namespace:
    """The arguments with every choice made.

    Raises:
        InputError: they do not go together.
    """
    given = {name: getattr(args, name) for name in _DEFAULTS if getattr(args, name, None) is not None}
    settled = Namespace(**{**vars(args), **_DEFAULTS, **given})
    _check(settled)
    return settled


def _check(args: Namespace) -> None:
    for side in ("source", "target"):
        if (kind := modality(args, side)) != "sequence":
            raise InputError(f"--{side}-modality {kind} does not go with --task {TASK}, whose targets are trees anyway")
    refused = {
        "--only-source": args.only_source,
        "--joined-dictionary": args.joined_dictionary,
        "--align-suffix": args.align_suffix,
        "--alignfile": args.alignfile,
        "--tree-sides target": args.tree_parser is not None and "target" in args.tree_sides,
    }
    if given := [name for name, is_given in refused.items() if is_given]:
        raise InputError(f"{given[0]} does not go with --task {TASK}")
    for name in ("trajectories", "max_target_nodes"):
        if getattr(args, name) < 1:
            raise InputError(f"--{name.replace('_', '-')} is at least 1, not {getattr(args, name)}")
    if args.trajectory_seed < 0:
        raise InputError(f"--trajectory-seed is at least 0, not {args.trajectory_seed}")


logger = logging.getLogger(__name__)

Inputs = dict[tuple[str, str], TextInput]

_FOLDER = "insertion"


def preprocess_insertion(args: Namespace, stock_main: Callable[[Namespace], None]) -> None:
    """Does what ``fairseq-preprocess --task tree_insertion`` does.

    Args:
        args: of ``fairseq-preprocess``, among them ours
        stock_main: fairseq's own ``main``

    Raises:
        TreeFairseqError: of the class that says what is wrong.
    """
    run_plan(InsertionPlan.from_arguments(args), stock_main)


@dataclass
class StagedTargets:
    """What was made of the targets so far.

    Attributes:
        texts: the trees of each split
        distinct: trajectories of all different trees; None where only dictionaries are asked for
        dictionary: of labels
    """

    texts: dict[str, InsertionText] = field(default_factory=dict)
    distinct: InsertionStore | None = None
    dictionary: Dictionary | None = None


@dataclass(frozen=True)
class InsertionPlan(PreprocessPlan):
    """What is to be done with sources and the trees that are to grow from them.

    Attributes:
        targets: the trees, as far as they were looked at
    """

    targets: StagedTargets = field(default_factory=StagedTargets)

    @classmethod
    def from_arguments(cls, args: Namespace) -> InsertionPlan:
        """Understands the arguments.

        Raises:
            InputError: they do not go together.
        """
        plan = PreprocessPlan.from_arguments(settled_arguments(args))
        return cls(plan.args, plan.languages, plan.splits, plan.sides)

    def new_record(self) -> InsertionRecord:
        """What is asked for, as yet without splits."""
        args = self.args
        oracles = list(ORACLES) if args.insertion_oracle == "both" else [args.insertion_oracle]
        return InsertionRecord(
            args.target_lang,
            args.target_notation,
            args.numbered_labels == "yes",
            oracles,
            args.trajectories,
            args.trajectory_seed,
        )

    def begin(self, manifest: Manifest) -> None:
        """Makes the record of the targets, or takes over the splits of the folder that stay.

        Raises:
            DataFolderError: they were made in another way.
        """
        record, old = self.new_record(), manifest.section(InsertionRecord)
        if old is not None:
            for name in old.splits.keys() & set(self.written_splits):
                manifest.forget_split(old.lang, name)
            if old.splits and (differences := old.differences(record)):
                raise DataFolderError(
                    f"{', '.join(old.splits)} of the folder were made in another way than is asked for now ({'; '.join(differences)}): "
                    "ask for the same, or choose another destination"
                )
            record.splits = old.splits
        manifest.set_section(record)

    def stage(self, inputs: Inputs, staging: Staging, cache: Path) -> Inputs:
        """Reads the targets, finds their trajectories, and puts lines of labels in their place.

        Raises:
            SymbolTreeError: a line is no tree, or one that cannot be stored; it names the file and the line
        """
        args, record, lang = self.args, self.new_record(), self.args.target_lang
        folder = staging.folder(_FOLDER)
        reader = LineReader(notation_named(record.notation), record.words, args.max_target_nodes)
        registry = TreeRegistry()
        staged = dict(inputs)
        for split in self.splits:
            path = folder / f"{split.name}.{lang}"
            self.targets.texts[split.name] = registry.read(inputs[split.name, lang], reader, path, args.workers)
            staged[split.name, lang] = inspect_text(path)
        if self.written_splits:
            made = TrajectorySampler.of(record)
            self.targets.distinct = store_distinct(list(registry.numbers), made, folder / "distinct", args.workers)
        return staged

    def own_dictionaries(self, staging: Staging) -> Namespace:
        """The dictionary of labels, which begins with that of the root.

        Raises:
            DictionaryMismatchError: the one that was given is none of labels in this form
            InputError: there is nothing to make one of
        """
        args, lang = self.args, self.args.target_lang
        path = args.tgtdict
        if not path:
            if "train" not in self.targets.texts:
                raise InputError("--trainpref must be set if the dictionary of the trees is not given with --tgtdict")
            train = self.targets.texts["train"]
            dictionary = build_insertion_dictionary(
                train.counts,
                len(train.lines),
                threshold=args.thresholdtgt,
                nwords=args.nwordstgt,
                padding_factor=args.padding_factor,
            )
            path = str(staging.folder(_FOLDER) / f"dict.{lang}.txt")
            dictionary.save(path)
        self.targets.dictionary = Dictionary.load(path)
        require_labels(self.targets.dictionary, self.new_record().words, path)
        return Namespace(tgtdict=path)

    def enter(self, manifest: Manifest, output: Path) -> None:
        """Writes the trajectories of every split and completes the record."""
        for split in self.written_splits:
            text = self.targets.texts[split]
            prefix = token_prefix(split, manifest.source_lang, manifest.target_lang, self.args.target_lang)
            needed = sum(4 * len(self.targets.distinct.item(number)) for number in set(text.lines)) + 12 * len(
                text.lines
            )
            require_room(output, needed, f"the trajectories of {prefix}")
            store = output / f"{prefix}.{STORE_SUFFIX}"
            write_lines(self.targets.distinct, text.lines, store)
            files = tree_file_paths(store)
            enter_files(manifest, files)
            manifest.section(InsertionRecord).splits[split] = InsertionSplitRecord(
                prefix,
                len(text.lines),
                len(set(text.lines)),
                text.nodes,
                text.largest,
                self._count_unknown(split),
                [*token_file_names(output / prefix, found_impl(output / prefix)), *(path.name for path in files)],
            )

    def _count_unknown(self, split: str) -> int:
        """Nodes whose label the dictionary does not have."""
        counts = self.targets.texts[split].counts
        unknown = Counter({word: count for word, count in counts.items() if word not in self.targets.dictionary})
        if unknown:
            most = ", ".join(f"{word} ({count})" for word, count in unknown.most_common(10))
            logger.warning(
                "[insertion] %s: %d labels are not in the dictionary and become %s: %s",
                split,
                unknown.total(),
                self.targets.dictionary.unk_word,
                most,
            )
        return unknown.total()


register_preprocessing("insertion", Preprocessing(add_insertion_arguments, is_insertion, preprocess_insertion))
