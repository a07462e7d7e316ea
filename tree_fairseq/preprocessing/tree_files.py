"""Constituency trees of a side: from a text file to the label dictionary and the tree files of a split.

A split is encoded in one pass (`encode_split`), a chunk of lines at a time, in several processes: its leaves become the
text that fairseq binarizes, and its trees a store whose labels are numbered as they come. Chunks are cut by the numbers
of their lines alone, so the files do not depend on the number of processes. When all training trees are encoded, the
label dictionary is made, and `write_side` puts its numbers into the stores.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from fairseq.data import Dictionary

from tree_fairseq.data_bin import token_files, tree_store
from tree_fairseq.data_bin.index_files import data_and_index
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.records import SideRecord, SplitRecord
from tree_fairseq.data_bin.staging import PARSED, Work
from tree_fairseq.errors import InputError
from tree_fairseq.parsing.corpus import parse_corpus, parser_labels
from tree_fairseq.parsing.line_parser import LineParser, ParsedLine
from tree_fairseq.parsing.parsers import FLAT_LABEL, FLAT_TAG, ParserOptions, check_failures, registered_parser
from tree_fairseq.support.processes import ProcessPool
from tree_fairseq.support.progress import progress_bar
from tree_fairseq.trees.spans import SpanBlock, read_span_block
from tree_fairseq.trees.subwords import SUBWORD_SUFFIX
from tree_fairseq.trees.text import Chunk, FaultyLines, TextInput, chunk_bytes, chunk_lines, outcome_or_error
from tree_fairseq.trees.treebanks import NOTES_IN_TEXT, bare_label, left_out_message, strange_labels

logger = logging.getLogger(__name__)

# A dictionary with more labels is no treebank's, or with more than some, if most of them are function tags.
_SOME_LABELS, _MANY_LABELS = 60, 1000

Labels = tuple[Sequence[str], Sequence[str]]
"""All labels that trees can have, and those of them that can stand directly above words."""


@dataclass(frozen=True)
class TreeSide:
    """A side that gets constituency trees."""

    side: str  # ``source`` or ``target``
    lang: str
    options: ParserOptions  # how its text is parsed
    labels: Labels | None = None  # those of its trees, if not the parser decides them

    def record(self) -> SideRecord:
        """Returns the side's record for the manifest, without splits."""
        return SideRecord(
            side=self.side,
            parser=self.options.to_json(),
            identity=LineParser(self.options).identity(),
            labels=tree_store.label_dictionary_name(self.lang),
        )

    @property
    def leaves_are_tokens(self) -> bool:
        """Whether the leaves of a line's trees are the tokens of the line, so that the text itself can be binarized."""
        options = self.options
        return options.name != "brackets" and options.tokenize == "pretokenized" and options.subword_model is None


def start_sides(manifest: Manifest, sides: Iterable[TreeSide], rewritten: Mapping[str, Iterable[str]]) -> None:
    """Enters sides into a manifest, with the splits that stay; ``rewritten`` names the others, by language.

    Raises DataFolderError if those that stay were parsed differently: new text could not be parsed like all of them.
    """
    for side in sides:
        new = side.record()
        manifest.keep_splits(manifest.sides.get(side.lang), new, rewritten[side.lang], f"trees of {side.lang}")
        manifest.sides[side.lang] = new


class EncodedChunk(NamedTuple):
    """Consecutive lines as arrays."""

    trees: tree_store.TreeBlock  # labelled with positions in ``labels``
    labels: dict[str, int]  # every label of the chunk, and how often it occurs
    text: bytes  # the leaves, one line of UTF-8 text for each line
    sentences: int
    failed: dict[int, tuple[str, ...]]  # by number of the line, from 1, the reasons why sentences of it have flat trees
    left_out: Counter[str]  # how often what no sentence has was left out of ready-made trees


def encode_chunk(path: Path, options: ParserOptions, chunk: Chunk) -> EncodedChunk:
    """Parses and encodes a chunk of a text file; raises InputError, which names all malformed lines of it."""
    stays_as_it_is = options.subword_model is None and not options.strip_function_tags
    if options.name == "brackets" and stays_as_it_is:
        text = chunk_bytes(path, chunk)
        block = read_span_block(text)
        may_change = not options.keep_empty and any(part in text for part in NOTES_IN_TEXT)
        if block.is_plain.all() and not may_change:
            return _encode_block(block, {})
        # The line parser judges the other lines, and writes them plainly.
        lines, faults, parsed = text.split(b"\n"), FaultyLines(), dict[int, ParsedLine]()
        may_have_notes = [may_change and any(part in line for part in NOTES_IN_TEXT) for line in lines[:-1]]
        for index in np.flatnonzero(~block.is_plain | may_have_notes).tolist():
            with faults:
                number = chunk.first_line + index
                [parsed[number]] = _line_parser(options).parse_lines([lines[index].decode("utf-8")], number, path)
                lines[index] = parsed[number].written.encode("utf-8")
        faults.raise_all()
        return _encode_block(read_span_block(b"\n".join(lines), is_checked=True), parsed)
    given = [line for _, line in chunk_lines(path, chunk)]
    parsed = dict(enumerate(_line_parser(options).parse_lines(given, chunk.first_line, path), chunk.first_line))
    written = "".join(f"{line.written}\n" for line in parsed.values()).encode("utf-8")
    return _encode_block(read_span_block(written, is_checked=True), parsed)


def _encode_shard(trees: Path) -> EncodedChunk:
    return _encode_block(read_span_block(trees.read_bytes(), is_checked=True), {})


def _encode_block(block: SpanBlock, parsed: Mapping[int, ParsedLine]) -> EncodedChunk:
    """The arrays of a block; ``parsed`` has those lines, by number, that have reasons."""
    counts = np.bincount(block.rows[:, 0], minlength=len(block.labels))
    return EncodedChunk(
        trees=tree_store.TreeBlock(block.leaf_counts, block.node_counts, block.rows),
        labels=dict(zip(block.labels, counts.tolist())),
        text=block.text,
        sentences=int(np.count_nonzero(block.rows[:, 3] == 0)),
        failed={number: line.failures for number, line in parsed.items() if line.failures},
        left_out=sum((line.left_out for line in parsed.values()), Counter()),
    )


@functools.lru_cache(maxsize=2)
def _line_parser(options: ParserOptions) -> LineParser:
    return LineParser(options)


@dataclass
class SplitTrees:
    """Counts over the encoded trees of a split."""

    # numbers of the lines, from 1, in which a sentence has a flat tree because it could not be parsed
    failed: list[int] = field(default_factory=list)
    lines: int = 0
    leaves: int = 0
    nodes: int = 0
    sentences: int = 0
    failed_sentences: int = 0
    # how often each label occurs; the position of a label is its number in the store
    labels: Counter[str] = field(default_factory=Counter)
    # how often what no sentence has was left out of ready-made trees
    left_out: Counter[str] = field(default_factory=Counter)
    _numbers: dict[str, int] = field(default_factory=dict)

    def add(self, chunk: EncodedChunk) -> tree_store.TreeBlock:
        """Counts a chunk and returns its trees with the split's numbers of labels."""
        self.failed += chunk.failed
        self.sentences += chunk.sentences
        self.failed_sentences += sum(map(len, chunk.failed.values()))
        self.left_out += chunk.left_out
        self.lines += len(chunk.trees.leaf_counts)
        self.leaves += int(chunk.trees.leaf_counts.sum(dtype=np.int64))
        self.nodes += len(chunk.trees.rows)
        self.labels.update(chunk.labels)
        numbers = np.array([self._numbers.setdefault(label, len(self._numbers)) for label in chunk.labels], np.int32)
        chunk.trees.rows[:, 0] = numbers[chunk.trees.rows[:, 0]]
        return chunk.trees


def encode_split(
    text: TextInput, options: ParserOptions, work: Work, name: str, *, store: Path | None, leaves: Path | None
) -> SplitTrees:
    """Parses a text file and encodes its trees.

    An expensive parser's trees are kept in shards under ``name``: if this attempt is stopped, the next one finds them.

    The trees go to the files ``store.bin`` and ``store.idx``, the leaves to a file with one line for each line, unless
    they are None.

    Raises TooManyParseFailuresError if more sentences failed than the options allow; TreeFormatError or
    LeafMismatchError if a line is malformed or could not be parsed, and the options say to stop.
    """
    trees = SplitTrees()
    with contextlib.ExitStack() as stack:
        writer = None if store is None else stack.enter_context(tree_store.TreeStoreWriter(store))
        file = None if leaves is None else stack.enter_context(open(leaves, "wb"))

        def keep(chunk: EncodedChunk) -> None:
            block = trees.add(chunk)
            if file is not None:
                file.write(chunk.text)
            if writer is not None:
                writer.add(block)

        if registered_parser(options.name).expensive:
            folder, cache = work.staging.path / PARSED / name, work.staging.parse_cache
            parsed = parse_corpus(text.path, folder, options, pool=work.pool, cache=cache)
            shards = [path for path, _ in parsed.shards]
            for chunk in work.pool.map(_encode_shard, shards, f"encoded {text.path}", progress=False):
                keep(chunk)
            trees.failed, trees.failed_sentences = list(parsed.failed), sum(parsed.failed.values())
            return trees
        encode = functools.partial(outcome_or_error, functools.partial(encode_chunk, text.path, options))
        bar, faults = stack.enter_context(progress_bar(text.path.name, text.lines, "lines")), FaultyLines()
        chunks = work.pool.map(encode, text.chunks, f"encoded {text.path}", progress=False)
        for chunk in faults.without_errors(chunks):
            for line, reasons in chunk.failed.items():
                logger.warning("%s:%d: flat tree, or none: %s", text.path, line, "; ".join(reasons))
            keep(chunk)
            bar.update(len(chunk.trees.leaf_counts))
        faults.raise_all()
    if trees.left_out:
        logger.info("[trees] %s: left out, as no words: %s", text.path, left_out_message(trees.left_out))
    limit = options.max_parse_failures
    check_failures(limit, trees.failed_sentences, trees.sentences, trees.failed, str(text.path))
    return trees


def make_label_dictionary(
    side: TreeSide, trees: Mapping[str, SplitTrees], reused: Path | None, pool: ProcessPool
) -> Dictionary:
    """Returns the label dictionary of a side: the given one (``reused``), or one with the parser's inventory and the
    labels of the training trees.

    Raises InputError if no labels are known.
    """
    if reused is not None:
        logger.info("[trees] labels of %s: from %s", side.lang, reused)
        return tree_store.load_label_dictionary(reused)
    if registered_parser(side.options.name).expensive:
        inventory, tags = side.labels or parser_labels(side.options, pool)
    else:
        inventory, tags = side.labels or LineParser(side.options).labels()
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
    dictionary = tree_store.build_label_dictionary(labels, train.labels)
    logger.info("[trees] labels of %s: %d types", side.lang, len(dictionary))
    if len(train.labels) > _SOME_LABELS or side.options.tag_separators:
        _check_labels(side, train.labels)
    return dictionary


def _check_labels(side: TreeSide, labels: Mapping[str, int]) -> None:
    """Warns of labels that still have function tags, or are too many for any other reason."""
    bare = {bare_label(label) for label in labels}
    strange = strange_labels(labels) if side.options.tag_separators else ""
    if len(labels) > _MANY_LABELS or len(labels) > _SOME_LABELS and len(labels) > 2 * len(bare):
        text = "[trees] %s has %d labels, such as %s. Without function tags (--tree-strip-function-tags) it has %d"
        rare = ", ".join(sorted(labels, key=lambda label: (labels[label], label))[:3])
        logger.warning(text, side.lang, len(labels), rare, len(bare))
    elif strange:
        text = "[trees] labels of %s may still have function tags: %s. --tree-tag-separators names the sign before them"
        logger.warning(text, side.lang, strange)


def write_side(
    work: Work, side: TreeSide, trees: Mapping[str, SplitTrees], dictionary: Dictionary, token_folder: Path
) -> None:
    """Completes the files of a side and enters them; raises LeafMismatchError if leaves and tokens differ in number."""
    manifest, output = work.manifest, work.output
    record = manifest.sides[side.lang]
    tree_store.save_label_dictionary(dictionary, output / record.labels)
    manifest.enter_dictionary(output / record.labels, in_use=bool(record.splits))
    for name, split in trees.items():
        prefix = token_files.token_prefix(name, manifest.source_lang, manifest.target_lang, side.lang)
        record.splits[name] = _finish_split(split, dictionary, output / f"{prefix}.tree", token_folder / prefix)
        manifest.enter_files(data_and_index(output / f"{prefix}.tree"))


def _finish_split(split: SplitTrees, dictionary: Dictionary, store: Path, tokens: Path) -> SplitRecord:
    """Puts the numbers of the dictionary into a store, compares it with its token files, and returns its record."""
    tree_store.relabel(store, np.array([dictionary.index(label) for label in split.labels], np.int32))
    unknown = Counter(
        {label: count for label, count in split.labels.items() if dictionary.index(label) == dictionary.unk()}
    )
    if unknown:
        text = "[trees] %s: %d nodes are labelled <unk>, for the label dictionary lacks %s"
        logger.warning(text, tokens.name, sum(unknown.values()), token_files.most_frequent(unknown))
    token_files.require_equal_lengths(tree_store.TreeStore(store), tokens)
    text = "[trees] %s: %d lines, %d leaves, %d nodes; %d lines with a flat tree"
    logger.info(text, tokens.name, split.lines, split.leaves, split.nodes, len(split.failed))
    return SplitRecord(
        prefix=tokens.name,
        lines=split.lines,
        leaves=split.leaves,
        nodes=split.nodes,
        failed=split.failed,
        unknown_labels=sum(unknown.values()),
        files=token_files.token_file_names(tokens) + [path.name for path in data_and_index(store)],
    )
