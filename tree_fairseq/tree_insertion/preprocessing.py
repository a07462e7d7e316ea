"""``fairseq-preprocess --task tree_insertion``: labels become stock token files, with trajectories beside them.

The targets are read and verified first, many lines at a time in several processes. Lines of labels then take their
place, in the staging folder, and fairseq binarizes these as in translation. At the end the trajectories of each split
are drawn and written.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from fairseq.data import Dictionary

from tree_fairseq.data_bin.index_files import data_and_index
from tree_fairseq.data_bin.staging import Staging, Work
from tree_fairseq.data_bin.token_files import found_impl, load_dictionary, most_frequent, token_file_names, token_prefix
from tree_fairseq.errors import InputError, SymbolTreeError
from tree_fairseq.preprocessing.hook import Preprocessing, register_preprocessing
from tree_fairseq.preprocessing.plan import (
    Inputs,
    PreprocessPlan,
    StockMain,
    command_of,
    inspect_inputs,
    make_plan,
    start_manifest,
)
from tree_fairseq.preprocessing.run import LOG, building, bytes_needed, write_folder
from tree_fairseq.support.files import require_room
from tree_fairseq.support.options import flag_of, given_flags, refuse_flags
from tree_fairseq.support.processes import ProcessPool
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.tree_insertion.dictionary import LabelWords, build_insertion_dictionary, require_labels
from tree_fairseq.tree_insertion.folder import (
    ORACLES,
    STORE_SUFFIX,
    TASK,
    InsertionRecord,
    InsertionSplitRecord,
    InsertionStore,
    encode_item,
    write_store,
)
from tree_fairseq.tree_insertion.oracles import CentralityOracle, ExactOracle
from tree_fairseq.tree_insertion.target import ROOT_LABEL, TargetTree
from tree_fairseq.tree_insertion.trajectories import trajectories
from tree_fairseq.trees.notations import Notation, notation_named
from tree_fairseq.trees.text import Chunk, TextInput, chunk_lines, inspect_text
from tree_fairseq.trees.tree import Tree

logger = logging.getLogger(__name__)

_ORACLES = {"centrality": CentralityOracle, "exact": ExactOracle}
_TREES_AT_A_TIME = 64


class EncodedTree(NamedTuple):
    """A target tree as it is stored; two of them are equal if and only if their trees are.

    ``words`` are those of its labels in preorder, separated by blanks; ``parents`` the indices of the parents, under
    the root that decoding begins with, as bytes of ``[M]`` int32.
    """

    words: str
    parents: bytes

    @classmethod
    def of(cls, tree: Tree, words: LabelWords) -> EncodedTree:
        """Encodes a tree; raises ReservedMarkError if a label cannot be a word."""
        return cls(" ".join(words.encode(tree)), np.array(TargetTree.of(tree).parents, np.int32).tobytes())

    @property
    def nodes(self) -> int:
        """Number of nodes, without the root that decoding begins with."""
        return len(self.parents) // 4 - 1

    def target(self, words: LabelWords) -> TargetTree:
        """Returns the tree under the root that decoding begins with."""
        labels = [ROOT_LABEL, *map(words.label, self.words.split(" "))]
        return TargetTree(labels, np.frombuffer(self.parents, np.int32).tolist())


@dataclass(frozen=True)
class LineReader:
    """Reads lines in a notation as trees of at most ``max_nodes`` nodes."""

    notation: Notation
    words: LabelWords
    max_nodes: int

    def chunk(self, path: Path, chunk: Chunk) -> list[EncodedTree]:
        """Reads consecutive lines. The error of a line that is not a tree that can be stored names file and line."""
        found = []
        for number, line in chunk_lines(path, chunk):
            tree = self.notation.read(line, path=path, line_number=number)
            try:
                found.append(EncodedTree.of(tree, self.words))
            except InputError as error:
                raise error.at(path, number) from None
            if (nodes := found[-1].nodes) > self.max_nodes:
                hint = "Leave the line and its parallel line out, or raise --max-target-nodes, which is "
                raise SymbolTreeError(f"a tree of {nodes} nodes", path, number, hint=f"{hint}{self.max_nodes}.")
        return found


@dataclass
class EncodedText:
    """The trees of one file, line by line, and how often each word occurs."""

    lines: list[EncodedTree] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    @classmethod
    def read(cls, text: TextInput, reader: LineReader, path: Path, pool: ProcessPool) -> EncodedText:
        """Reads the trees of a file, and writes the words of each as a line of the file ``path``."""
        found = cls()
        known: dict[EncodedTree, EncodedTree] = {}
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            read = partial(reader.chunk, text.path)
            for trees in pool.map(read, text.chunks, f"read {text.path}"):
                for tree in trees:
                    file.write(tree.words + "\n")
                    found.counts.update(tree.words.split(" "))
                    # Equal trees share one object.
                    found.lines.append(known.setdefault(tree, tree))
        counts = len(found.lines), len(known), sum(found.counts.values()), found.largest
        message = "[insertion] %s: %d trees, %d of them different, %d nodes, at most %d in a tree"
        logger.info(message, text.path, *counts)
        return found

    @property
    def largest(self) -> int:
        """The number of nodes of the largest tree; 0 without trees."""
        return max((tree.nodes for tree in self.lines), default=0)


@dataclass(frozen=True)
class TrajectorySampler:
    """Draws the trajectories of trees, ``count`` of each oracle. They depend on the tree and the seed alone."""

    words: LabelWords
    oracles: tuple[str, ...]
    count: int
    seed: int

    def item(self, tree: EncodedTree) -> np.ndarray:
        """Returns a tree with its trajectories as they are stored; those of the first oracle come first."""
        digest = hashlib.sha256(tree.words.encode() + b"\0" + tree.parents).digest()
        generator = np.random.default_rng([self.seed, int.from_bytes(digest[:8], "big")])
        target = tree.target(self.words)
        drawn = [trajectories(_ORACLES[name](target), self.count, generator) for name in self.oracles]
        return encode_item(target.parents, list(itertools.chain(*drawn)))

    def items(self, trees: Sequence[EncodedTree]) -> list[np.ndarray]:
        """Returns the items of several trees, a task for one process."""
        return [self.item(tree) for tree in trees]


def write_stores(texts: Mapping[Path, Sequence[EncodedTree]], sampler: TrajectorySampler, pool: ProcessPool) -> None:
    """Writes the store of each split under its prefix; the trajectories of a tree in several splits are drawn once."""
    begun = time.perf_counter()
    trees = list(dict.fromkeys(itertools.chain(*texts.values())))
    groups = [trees[first : first + _TREES_AT_A_TIME] for first in range(0, len(trees), _TREES_AT_A_TIME)]
    new_items = itertools.chain.from_iterable(pool.map(sampler.items, groups, "looked for trajectories"))
    written: dict[EncodedTree, tuple[InsertionStore, int]] = {}
    for prefix, lines in texts.items():
        numbers = {tree: number for number, tree in enumerate(dict.fromkeys(lines))}
        # New items come in the order in which their trees occur here.
        items = (written[tree][0].item(written[tree][1]) if tree in written else next(new_items) for tree in numbers)
        write_store(prefix, items, [numbers[tree] for tree in lines])
        store = InsertionStore(prefix)
        written |= {tree: (store, line) for tree, line in zip_equal(numbers, store.distinct.tolist())}
    seconds, count = time.perf_counter() - begun, sampler.count * len(sampler.oracles)
    message = "[insertion] %d trajectories of each of %d trees in %.1f s, %.2f ms a tree"
    logger.info(message, count, len(trees), seconds, 1000 * seconds / max(1, len(trees)))


_FOLDER = "insertion"  # in the staging folder

_NUMBERED = "write the k-th node of a label as LABEL::k, so that equal labels can be told apart"
_WHICH = "centrality inserts the most central nodes first, exact takes the fewest steps"
_LARGE = "a larger tree is an error: the oracles' time and memory grow with the square of its nodes, or faster"
_NUMBER = {"type": int, "metavar": "N"}
_OPTIONS: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "numbered_labels": ("yes", _NUMBERED, {"choices": ("yes", "no")}),
    "insertion_oracle": ("both", f"whose trajectories are stored: {_WHICH}", {"choices": (*ORACLES, "both")}),
    "trajectories": (5, "how many trajectories of each oracle every tree gets", {"type": int, "metavar": "K"}),
    "trajectory_seed": (1, "seed of the choice between equally good nodes", _NUMBER),
    "max_target_nodes": (500, _LARGE, _NUMBER),
}
_FLAGS = {
    flag_of(name): {"help": f"{text} (default: {default})", **settings}
    for name, (default, text, settings) in _OPTIONS.items()
}


def _with_defaults(args: Namespace) -> Namespace:
    """The arguments with all defaults; raises InputError if they do not go together."""
    given = {name: getattr(args, name) for name in _OPTIONS if getattr(args, name, None) is not None}
    args = Namespace(**{**vars(args), **{name: default for name, (default, *_) in _OPTIONS.items()}, **given})
    task = f"--task {TASK}"
    refuse_flags(given_flags(args, "source_modality", "target_modality"), task, advice="the targets are trees anyway")
    refused = given_flags(args, "joined_dictionary")
    refused["--tree-sides target"] = args.tree_parser is not None and "target" in args.tree_sides
    refuse_flags(refused, task)
    return args


def preprocess_insertion(args: Namespace, stock_main: StockMain) -> None:
    """Does the work of ``fairseq-preprocess --task tree_insertion``, given its arguments and fairseq's own ``main``."""
    args = _with_defaults(args)
    plan = make_plan(args, texts={"source": args.source_lang})
    inputs = inspect_inputs(plan)
    staging = Staging(plan.destination, command_of(plan, inputs), args.parse_cache)
    if staging.publish_earlier():
        return
    manifest = start_manifest(plan)
    record, old = _new_record(args), manifest.section(InsertionRecord)
    manifest.keep_splits(old, record, plan.written_splits, record.contents)
    manifest.set_section(record)
    with building(staging, manifest, args.workers, bytes_needed(plan, inputs), log=LOG) as work:
        targets = _read_targets(plan, record, inputs, work)
        labels = {(split, record.lang): inspect_text(_labels_file(split, record, work)) for split in targets}
        dictionary = args.tgtdict or _make_dictionary(plan, targets, work)
        require_labels(Dictionary.load(dictionary), record.words, dictionary)
        write_folder(plan, {**inputs, **labels}, work, stock_main, {"tgtdict": dictionary})
        written = {split: targets[split] for split in plan.written_splits}
        if written:
            _write_trajectories(written, record, work)


def _new_record(args: Namespace) -> InsertionRecord:
    """Makes the record of a new folder, without splits."""
    return InsertionRecord(
        lang=args.target_lang,
        notation=args.target_notation,
        numbered=args.numbered_labels == "yes",
        oracles=list(ORACLES) if args.insertion_oracle == "both" else [args.insertion_oracle],
        trajectories=args.trajectories,
        seed=args.trajectory_seed,
    )


def _read_targets(plan: PreprocessPlan, record: InsertionRecord, inputs: Inputs, work: Work) -> dict[str, EncodedText]:
    """Reads the target trees of each split and writes them as lines of labels."""
    reader = LineReader(notation_named(record.notation), record.words, plan.args.max_target_nodes)
    texts = {split.name: inputs[split.name, record.lang] for split in plan.splits}
    return {
        split: EncodedText.read(text, reader, _labels_file(split, record, work), work.pool)
        for split, text in texts.items()
    }


def _labels_file(split: str, record: InsertionRecord, work: Work) -> Path:
    return work.staging.folder(_FOLDER) / f"{split}.{record.lang}"


def _make_dictionary(plan: PreprocessPlan, targets: Mapping[str, EncodedText], work: Work) -> str:
    """Makes the dictionary of labels, which begins with that of the root, and returns its path."""
    args = plan.args
    if "train" not in targets:
        raise InputError("--trainpref must be set if the dictionary of the trees is not given with --tgtdict")
    train = targets["train"]
    size = {"threshold": args.thresholdtgt, "nwords": args.nwordstgt, "padding_factor": args.padding_factor}
    path = str(work.staging.folder(_FOLDER) / f"dict.{args.target_lang}.txt")
    build_insertion_dictionary(train.counts, len(train.lines), **size).save(path)
    return path


def _write_trajectories(targets: Mapping[str, EncodedText], record: InsertionRecord, work: Work) -> None:
    """Writes the trajectories of every split and completes the record."""
    manifest, output = work.manifest, work.output
    languages = (manifest.source_lang, manifest.target_lang, record.lang)
    prefixes = {split: output / token_prefix(split, *languages) for split in targets}
    stores = {split: Path(f"{prefix}.{STORE_SUFFIX}") for split, prefix in prefixes.items()}
    lines = {store: targets[split].lines for split, store in stores.items()}
    # Of M nodes, parents take M numbers and a trajectory at least 4 M; lines take twelve bytes in the index.
    nodes = {store: sum(tree.nodes for tree in set(trees)) for store, trees in lines.items()}
    least = sum(4 * nodes[store] * (1 + 4 * record.trajectory_count) + 12 * len(lines[store]) for store in lines)
    require_room(output, least, f"the trajectories of {', '.join(store.stem for store in lines)}")
    sampler = TrajectorySampler(record.words, tuple(record.oracles), record.trajectories, record.seed)
    write_stores(lines, sampler, work.pool)
    dictionary = load_dictionary(output, record.lang)
    for split, prefix in prefixes.items():
        text, files = targets[split], data_and_index(stores[split])
        manifest.enter_files(files)
        record.splits[split] = InsertionSplitRecord(
            prefix=prefix.name,
            lines=len(text.lines),
            distinct=len(set(text.lines)),
            nodes=sum(text.counts.values()),
            largest=text.largest,
            unknown=_count_unknown(split, text, dictionary),
            files=[*token_file_names(prefix, found_impl(prefix)), *(path.name for path in files)],
        )


def _count_unknown(split: str, text: EncodedText, dictionary: Dictionary) -> int:
    """Counts the nodes whose label is not in the dictionary, and logs the most frequent of these labels."""
    unknown = Counter({word: count for word, count in text.counts.items() if word not in dictionary})
    if unknown:
        message = "[insertion] %s: %d labels are not in the dictionary and become %s: %s"
        logger.warning(message, split, sum(unknown.values()), dictionary.unk_word, most_frequent(unknown))
    return sum(unknown.values())


register_preprocessing(
    "insertion",
    Preprocessing(
        [TASK],
        "insertion-based tree decoding",
        f"with --task {TASK}: every target line is a tree in --target-notation, which is decoded node by node",
        _FLAGS,
        preprocess_insertion,
    ),
)
