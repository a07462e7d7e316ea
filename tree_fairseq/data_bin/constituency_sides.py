"""Sides of a folder with constituency trees: from a text file to the label dictionary and the tree files of a split.

A split is encoded in one pass (:func:`encode_split`): its leaves become the text that stock fairseq binarizes, and its
trees a store whose labels are numbered as they come. When all training trees are encoded, the label dictionary is
made, and :func:`write_side` puts its numbers into the stores.
"""

from __future__ import annotations

import contextlib
import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from fairseq.data import Dictionary

from tree_fairseq.data_bin.encode import ChunkTask, EncodedChunk, ReadLine, encode_chunks
from tree_fairseq.data_bin.inputs import Chunk, TextInput
from tree_fairseq.data_bin.label_dictionary import (
    build_label_dictionary,
    label_dictionary_name,
    load_label_dictionary,
    save_label_dictionary,
)
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.records import SideRecord, SplitRecord
from tree_fairseq.data_bin.staging import PARSED, Staging
from tree_fairseq.data_bin.token_files import found_impl, require_equal_lengths, token_file_names, token_prefix
from tree_fairseq.data_bin.tree_store import (
    TreeBlock,
    TreeStore,
    TreeStoreWriter,
    relabel,
    store_bytes,
    tree_file_paths,
)
from tree_fairseq.errors import InputError
from tree_fairseq.files import require_room
from tree_fairseq.parsing.arguments import check_failures
from tree_fairseq.parsing.cache import ParseCache
from tree_fairseq.parsing.corpus import parse_corpus
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import FLAT_LABEL, FLAT_TAG, ParserOptions, is_expensive
from tree_fairseq.parsing.processes import ProcessPool
from tree_fairseq.trees.subwords import SUBWORD_SUFFIX

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TreeSide:
    """A side that gets constituency trees.

    Attributes:
        side: ``source`` or ``target``
        lang: its language, the suffix of its files
        options: how its text is parsed
    """

    side: str
    lang: str
    options: ParserOptions

    def record(self) -> SideRecord:
        """Returns the side's entry in the manifest, still without splits."""
        return SideRecord(
            side=self.side,
            parser=self.options.to_json(),
            identity=LineParser(self.options).identity(),
            labels=label_dictionary_name(self.lang),
        )

    def known_labels(self, cache: Path) -> tuple[list[str], list[str]]:
        """Returns all labels that trees of new text can have, and those of them that can stand directly above words.

        Args:
            cache: folder of the parse cache, which remembers the labels of a parser
        """
        with contextlib.ExitStack() as stack:
            known = stack.enter_context(ParseCache(cache)) if is_expensive(self.options.name) else None
            parser = LineParser(self.options, cache=known)
            return parser.inventory(), parser.tags()

    def line_reader(self, split: str) -> ReadLine | None:
        """Returns a function that reads the lines of a split instead of the parser; None for the parser."""
        return None

    @property
    def leaves_are_tokens(self) -> bool:
        """Whether the leaves of a line's trees are the tokens of the line, so that the text itself can be binarized."""
        options = self.options
        return options.name != "brackets" and options.tokenize == "pretokenized" and options.subword_model is None


@dataclass
class SplitTrees:
    """The encoded trees of a split.

    Attributes:
        failed: numbers of the lines, from 1, in which a sentence has a flat tree because it could not be parsed
        lines: number of lines
        leaves: leaves of all lines
        nodes: nodes of all lines
        labels: how often each label occurs; the position of a label is its number in the store
        chains: how often each unary chain over two or more leaves occurs, from the top down
    """

    failed: list[int] = field(default_factory=list)
    lines: int = 0
    leaves: int = 0
    nodes: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    chains: Counter[tuple[str, ...]] = field(default_factory=Counter)
    _numbers: dict[str, int] = field(default_factory=dict)

    def add(self, chunk: EncodedChunk) -> TreeBlock:
        """Counts a chunk and returns its trees with the split's numbers of labels."""
        self.failed += chunk.failed
        self.lines += len(chunk.trees.leaf_counts)
        self.leaves += int(chunk.trees.leaf_counts.sum(dtype=np.int64))
        self.nodes += len(chunk.trees.rows)
        self.chains.update(chunk.chains)
        for label, count in zip(chunk.labels, chunk.label_counts):
            self.labels[label] += count
        numbers = [self._numbers.setdefault(label, len(self._numbers)) for label in chunk.labels]
        chunk.trees.rows[:, 0] = np.array(numbers, np.int32)[chunk.trees.rows[:, 0]]
        return chunk.trees


def encode_split(
    text: TextInput,
    options: ParserOptions,
    staging: Staging,
    name: str,
    *,
    pool: ProcessPool,
    cache: Path,
    store: Path | None,
    leaves: Path | None,
    read: ReadLine | None = None,
) -> SplitTrees:
    """Parses a text file and encodes its trees.

    An expensive parser parses into shards, which the next attempt finds when this one is stopped. Work
    that costs no more than reading is done again.

    Args:
        text: the file
        options: the parser's
        staging: keeps the shards between attempts
        name: of this file among those of the command
        pool: processes of the command
        cache: folder of the parse cache
        store: path of the tree files to write, without ``.bin`` and ``.idx``; None to count only
        leaves: file for the leaves, one line for each line; None if they are not needed
        read: reads each line in place of the parser

    Raises:
        TooManyParseFailuresError: more sentences failed than the options allow.
        TreeFormatError, LeafMismatchError: a line is malformed or could not be parsed, and the options say to stop.
        DiskFullError, WorkerDiedError: the disk is full; a process was killed.
    """
    trees = SplitTrees()
    if is_expensive(options.name):
        summary = parse_corpus(text.path, staging.folder(f"{PARSED}/{name}"), options, pool=pool, cache=cache)
        trees.failed += summary.failed
        shards = [Path(shard) for shard in summary.shards]
        tasks = [ChunkTask(shard, Chunk(0, shard.stat().st_size, 1), None) for shard in shards]
    else:
        tasks = [ChunkTask(text.path, chunk, options, read) for chunk in text.chunks]
    sentences = failed_sentences = 0
    with contextlib.ExitStack() as stack:
        writer = None if store is None else stack.enter_context(TreeStoreWriter(store))
        file = None if leaves is None else stack.enter_context(open(leaves, "wb"))
        for chunk in encode_chunks(tasks, pool):
            sentences, failed_sentences = sentences + chunk.sentences, failed_sentences + chunk.failed_sentences
            block = trees.add(chunk)
            if file is not None:
                file.write(chunk.text)
            if writer is not None and store is not None:
                needed = store_bytes(len(block.leaf_counts), len(block.rows))
                require_room(store.parent, needed, f"the trees of {store.name.removesuffix('.tree')}")
                writer.add(block)
    if failed_sentences:
        check_failures(options.max_parse_failures, failed_sentences, sentences, trees.failed, str(text.path))
    return trees


def bytes_needed(size: int, is_bracketed: bool) -> int:
    """Returns about how many bytes the trees of a text take while they are made and when they are done.

    A token of six bytes has some two nodes of sixteen bytes, and its brackets in a shard; bracketed text has its
    brackets already.

    Args:
        size: bytes of the text
        is_bracketed: whether the text is trees
    """
    return size * (4 if is_bracketed else 12)


def make_label_dictionary(
    side: TreeSide, trees: Mapping[str, SplitTrees], reused: Path | None, cache: Path
) -> Dictionary:
    """Returns the label dictionary of a side.

    It is a given one, or it has the parser's inventory and the labels of the training trees.

    Args:
        side: the side
        trees: its trees, by split
        reused: a label dictionary to be used again
        cache: folder of the parse cache, which remembers the labels of a parser

    Raises:
        InputError: no labels are known.
    """
    if reused is not None:
        logger.info("[trees] labels of %s: from %s", side.lang, reused)
        return load_label_dictionary(reused)
    inventory, tags = side.known_labels(cache)
    if "train" not in trees and set(inventory) <= {FLAT_LABEL, FLAT_TAG}:
        raise InputError(
            f"the labels of {side.lang} are not known: {side.options.name} does not name its labels "
            "and there is no train split",
            hint="Give --trainpref, or a dictionary (--srcdict, --tgtdict) that lies beside a label dictionary.",
        )
    train = trees.get("train", SplitTrees())
    labels = set(inventory)
    if any(label.endswith(SUBWORD_SUFFIX) for label in train.labels):
        # Other words will be split in other text, so their pieces can have a label for each tag.
        labels |= {tag + SUBWORD_SUFFIX for tag in tags}
    dictionary = build_label_dictionary(labels, train.labels, train.chains)
    logger.info("[trees] labels of %s: %d types", side.lang, len(dictionary))
    return dictionary


def write_side(
    manifest: Manifest,
    side: TreeSide,
    trees: Mapping[str, SplitTrees],
    dictionary: Dictionary,
    output: Path,
    token_folder: Path,
) -> None:
    """Writes the label dictionary of a side, completes its tree files and enters them into the manifest.

    Args:
        manifest: with the side's entry
        side: the side
        trees: the encoded trees of each split whose token files exist
        dictionary: label dictionary
        output: folder of the tree files
        token_folder: folder of the token files

    Raises:
        LeafMismatchError: a line has another number of leaves than tokens.
    """
    record = manifest.sides[side.lang]
    save_label_dictionary(dictionary, output / record.labels)
    manifest.enter_dictionary(output / record.labels, in_use=bool(record.splits))
    for name, split in trees.items():
        prefix = token_prefix(name, manifest.source_lang, manifest.target_lang, side.lang)
        record.splits[name] = _finish_split(split, dictionary, output / f"{prefix}.tree", token_folder / prefix)
        manifest.enter_files(tree_file_paths(output / f"{prefix}.tree"))


def _finish_split(split: SplitTrees, dictionary: Dictionary, store: Path, tokens: Path) -> SplitRecord:
    """Puts the numbers of the dictionary into a store, compares it with its token files, and returns its record."""
    relabel(store, np.array([dictionary.index(label) for label in split.labels], np.int32))
    unknown = Counter(
        {label: count for label, count in split.labels.items() if dictionary.index(label) == dictionary.unk()}
    )
    if unknown:
        most = ", ".join(f"{label} ({count})" for label, count in unknown.most_common(10))
        logger.warning(
            "[trees] %s: %d nodes are labelled <unk>, for the label dictionary lacks %s",
            tokens.name,
            unknown.total(),
            most,
        )
    require_equal_lengths(TreeStore(store), tokens)
    logger.info(
        "[trees] %s: %d lines, %d leaves, %d nodes; %d lines with a flat tree",
        tokens.name,
        split.lines,
        split.leaves,
        split.nodes,
        len(split.failed),
    )
    return SplitRecord(
        prefix=tokens.name,
        lines=split.lines,
        leaves=split.leaves,
        nodes=split.nodes,
        failed=split.failed,
        unknown_labels=unknown.total(),
        files=token_file_names(tokens, found_impl(tokens)) + [path.name for path in tree_file_paths(store)],
    )


def start_sides(manifest: Manifest, sides: Iterable[TreeSide], rewritten: Mapping[str, Iterable[str]]) -> None:
    """Enters sides into a manifest, with the splits that stay.

    Args:
        manifest: of the folder
        sides: the sides that get trees
        rewritten: names of the splits that will be written, by language

    Raises:
        DataFolderError: splits that stay were parsed differently, and interactive translation could not parse like
            both.
    """
    for side in sides:
        new = side.record()
        manifest.keep_splits(manifest.sides.get(side.lang), new, rewritten[side.lang], f"trees of {side.lang}")
        manifest.sides[side.lang] = new
