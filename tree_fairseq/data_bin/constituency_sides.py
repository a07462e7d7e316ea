"""Sides of a folder with constituency trees: from a text file to the label dictionary and the tree files of a split.

A split is encoded in one pass (:func:`encode_split`), a chunk of lines at a time, in several processes: its leaves
become the text that stock fairseq binarizes, and its trees a store whose labels are numbered as they come. Chunks are
cut by the numbers of their lines alone, so the files do not depend on the number of processes. When all training trees
are encoded, the label dictionary is made, and :func:`write_side` puts its numbers into the stores.
"""

from __future__ import annotations

import contextlib
import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from fairseq.data import Dictionary

from tree_fairseq.data_bin.index_files import data_and_index
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.records import SideRecord, SplitRecord
from tree_fairseq.data_bin.staging import Staging
from tree_fairseq.data_bin.token_files import (
    found_impl,
    most_frequent,
    require_equal_lengths,
    token_file_names,
    token_prefix,
)
from tree_fairseq.data_bin.tree_chunks import ChunkTask, EncodedChunk, ReadLine, encode_chunks, encode_parsed, numbering
from tree_fairseq.data_bin.tree_store import (
    TreeBlock,
    TreeStore,
    TreeStoreWriter,
    build_label_dictionary,
    label_dictionary_name,
    load_label_dictionary,
    relabel,
    save_label_dictionary,
    store_bytes,
)
from tree_fairseq.errors import InputError
from tree_fairseq.parsing.cache import ParseCache
from tree_fairseq.parsing.corpus import parse_in_order
from tree_fairseq.parsing.corpus_run import Progress
from tree_fairseq.parsing.line_parser import LineParser, ParsedLine
from tree_fairseq.parsing.parsers import FLAT_LABEL, FLAT_TAG, ParserOptions, check_failures, registered_parser
from tree_fairseq.support.files import require_room
from tree_fairseq.support.processes import ProcessPool
from tree_fairseq.trees.subwords import SUBWORD_SUFFIX
from tree_fairseq.trees.text import TextInput

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TreeSide:
    """A side that gets constituency trees: ``source`` or ``target``, its language, and how its text is parsed."""

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

        The parse cache in the folder ``cache`` remembers the labels of a parser.
        """
        parser = LineParser(self.options)
        if not registered_parser(self.options.name).expensive:
            return parser.inventory(), parser.tags()
        with ParseCache(cache) as known:
            return parser.inventory(known), parser.tags(known)

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
        lines, leaves, nodes, sentences, failed_sentences: their numbers
        labels: how often each label occurs; the position of a label is its number in the store
        chains: how often each unary chain over two or more leaves occurs, from the top down
    """

    failed: list[int] = field(default_factory=list)
    lines: int = 0
    leaves: int = 0
    nodes: int = 0
    sentences: int = 0
    failed_sentences: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    chains: Counter[tuple[str, ...]] = field(default_factory=Counter)
    _numbers: defaultdict[str, int] = field(default_factory=numbering)

    def add(self, chunk: EncodedChunk) -> TreeBlock:
        """Counts a chunk and returns its trees with the split's numbers of labels."""
        self.failed += chunk.failed
        self.sentences += chunk.sentences
        self.failed_sentences += sum(chunk.failed.values())
        self.lines += len(chunk.trees.leaf_counts)
        self.leaves += int(chunk.trees.leaf_counts.sum(dtype=np.int64))
        self.nodes += len(chunk.trees.rows)
        self.chains.update(chunk.chains)
        self.labels.update(chunk.labels)
        numbers = [self._numbers[label] for label in chunk.labels]
        chunk.trees.rows[:, 0] = np.array(numbers, np.int32)[chunk.trees.rows[:, 0]]
        return chunk.trees


def encode_split(
    text: TextInput,
    options: ParserOptions,
    staging: Staging,
    *,
    pool: ProcessPool,
    store: Path | None,
    leaves: Path | None,
    read: ReadLine | None = None,
) -> SplitTrees:
    """Parses a text file and encodes its trees.

    The next attempt finds the parses of an expensive parser in the parse cache when this one is stopped.

    The trees go to the files ``store.bin`` and ``store.idx``, the leaves to a file with one line for each line, unless
    they are None. A function may read each line in place of the parser.

    Raises:
        TooManyParseFailuresError: more sentences failed than the options allow.
        TreeFormatError, LeafMismatchError: a line is malformed or could not be parsed, and the options say to stop.
        DiskFullError, WorkerDiedError: the disk is full; a process was killed.
    """
    trees = SplitTrees()
    with contextlib.ExitStack() as stack:
        writer = None if store is None else stack.enter_context(TreeStoreWriter(store))
        file = None if leaves is None else stack.enter_context(open(leaves, "wb"))

        def keep(chunk: EncodedChunk) -> None:
            block = trees.add(chunk)
            if file is not None:
                file.write(chunk.text)
            if writer is not None and store is not None:
                needed = store_bytes(len(block.leaf_counts), len(block.rows))
                require_room(store.parent, needed, f"the trees of {store.name.removesuffix('.tree')}")
                writer.add(block)

        if registered_parser(options.name).expensive:

            def take(lines: Sequence[ParsedLine], first_line: int) -> None:
                keep(encode_parsed(lines, first_line))

            cache, run = staging.parse_cache, staging.run
            parse_in_order(text.path, options, take, pool=pool, cache=cache, run=run, ranks=staging.ranks)
            return trees
        with Progress(text.path, text.lines) as progress:
            for chunk in encode_chunks([ChunkTask(text.path, chunk, options, read) for chunk in text.chunks], pool):
                keep(chunk)
                progress.done(len(chunk.trees.leaf_counts), chunk.sentences)
    progress.log(trees.lines, trees.sentences, len(trees.failed))
    limit = options.max_parse_failures
    check_failures(limit, trees.failed_sentences, trees.sentences, trees.failed, str(text.path))
    return trees


def make_label_dictionary(
    side: TreeSide, trees: Mapping[str, SplitTrees], reused: Path | None, cache: Path
) -> Dictionary:
    """Returns the label dictionary of a side: the given one (``reused``), or one with the parser's inventory and the
    labels of the training trees.

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
    """Writes the label dictionary of a side, completes its tree files in ``output`` and enters them into the manifest.

    Raises:
        LeafMismatchError: a line has another number of leaves than tokens.
    """
    record = manifest.sides[side.lang]
    save_label_dictionary(dictionary, output / record.labels)
    manifest.enter_dictionary(output / record.labels, in_use=bool(record.splits))
    for name, split in trees.items():
        prefix = token_prefix(name, manifest.source_lang, manifest.target_lang, side.lang)
        record.splits[name] = _finish_split(split, dictionary, output / f"{prefix}.tree", token_folder / prefix)
        manifest.enter_files(data_and_index(output / f"{prefix}.tree"))


def _finish_split(split: SplitTrees, dictionary: Dictionary, store: Path, tokens: Path) -> SplitRecord:
    """Puts the numbers of the dictionary into a store, compares it with its token files, and returns its record."""
    relabel(store, np.array([dictionary.index(label) for label in split.labels], np.int32))
    unknown = Counter(
        {label: count for label, count in split.labels.items() if dictionary.index(label) == dictionary.unk()}
    )
    if unknown:
        text = "[trees] %s: %d nodes are labelled <unk>, for the label dictionary lacks %s"
        logger.warning(text, tokens.name, sum(unknown.values()), most_frequent(unknown))
    require_equal_lengths(TreeStore(store), tokens)
    text = "[trees] %s: %d lines, %d leaves, %d nodes; %d lines with a flat tree"
    logger.info(text, tokens.name, split.lines, split.leaves, split.nodes, len(split.failed))
    return SplitRecord(
        prefix=tokens.name,
        lines=split.lines,
        leaves=split.leaves,
        nodes=split.nodes,
        failed=split.failed,
        unknown_labels=sum(unknown.values()),
        files=token_file_names(tokens, found_impl(tokens)) + [path.name for path in data_and_index(store)],
    )


def start_sides(manifest: Manifest, sides: Iterable[TreeSide], rewritten: Mapping[str, Iterable[str]]) -> None:
    """Enters sides into a manifest, with the splits that stay; ``rewritten`` names the others, by language.

    Raises:
        DataFolderError: splits that stay were parsed differently; interactive translation could not parse like both.
    """
    for side in sides:
        new = side.record()
        manifest.keep_splits(manifest.sides.get(side.lang), new, rewritten[side.lang], f"trees of {side.lang}")
        manifest.sides[side.lang] = new
