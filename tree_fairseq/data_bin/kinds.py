"""The kinds of data set in a folder: how each is checked and written back as text.

Other kinds register themselves. The two that belong to a side are here: constituency trees and symbol trees. A kind
that adds a section to ``tree.json`` also registers that (:func:`tree_fairseq.data_bin.manifest.register_section`).
"""

from __future__ import annotations

import functools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Optional

import numpy as np
from fairseq.data import Dictionary

from tree_fairseq.data_bin.index_files import line_blocks
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.records import SideRecord, SplitRecord, SymbolSideRecord, SymbolSplitRecord
from tree_fairseq.data_bin.token_files import load_dictionary, require_equal_lengths, require_same_tokens, token_words
from tree_fairseq.data_bin.tree_store import TreeBlock, TreeStore, load_label_dictionary
from tree_fairseq.errors import SymbolTreeError, TreeFairseqError
from tree_fairseq.trees.bracket import write_forest
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.text import read_lines, tokens
from tree_fairseq.trees.tree import Forest

_PROBLEMS_SHOWN = 5


class ExportRequest(NamedTuple):
    """The split of a folder that is written back as text; the words of ``words_from``, the text of the split, take the
    place of ``<unk>``.
    """

    folder: Path
    split: str
    words_from: Optional[str] = None


Export = Callable[[ExportRequest], Iterable[str]]


class DataKind(NamedTuple):
    """A kind of data set.

    Attributes:
        problems: yields everything that is wrong with the content of a folder's files of this kind, one sentence each;
            it may raise an error that makes it impossible to go on
        exports: returns functions that write the trees of a folder back as lines of text, by side (``source`` or
            ``target``)
        examples: the same for whole examples as they were read, such as a text with its class
        refuse_trees: raises InputError if constituency trees cannot be added to a folder of this kind
    """

    problems: Callable[[Path, Manifest], Iterator[str]]
    exports: Callable[[Manifest], dict[str, Export]]
    examples: Callable[[Manifest], dict[str, Export]] = lambda manifest: {}
    refuse_trees: Callable[[Path, Manifest], None] = lambda folder, manifest: None


_KINDS: dict[str, DataKind] = {}


def register_kind(name: str, kind: DataKind) -> None:
    """Adds a kind of data set, or replaces the one of the same name."""
    _KINDS[name] = kind


def registered_kinds() -> list[DataKind]:
    """All kinds, in the order in which they were registered."""
    return list(_KINDS.values())


def error_of(check: Callable[[], object]) -> list[str]:
    """Calls a check and returns the error that it raises, if it does, as the only problem."""
    try:
        check()
    except TreeFairseqError as error:
        return [str(error)]
    return []


def with_last_error(problems: Iterable[str]) -> Iterator[str]:
    """Yields problems, and the error that ends their iteration, if there is one, as the last of them."""
    try:
        yield from problems
    except TreeFairseqError as error:
        yield str(error)


def first_problems(path: object, problems: Iterable[tuple[int, str]]) -> Iterator[str]:
    """Yields the first few problems of a file, each with the number of its line, and the number of all others."""
    found = 0
    for line, problem in problems:
        found += 1
        if found <= _PROBLEMS_SHOWN:
            yield f"{path}, line {line}: {problem}"
    if found > _PROBLEMS_SHOWN:
        yield f"{path}: {found - _PROBLEMS_SHOWN} more such problems"


def count_problems(name: object, counted: dict[str, int], record: object) -> Iterator[str]:
    """Yields the numbers of a split that differ from those in its record, which has an attribute for each."""
    for what, number in counted.items():
        if number != getattr(record, what):
            yield f"{name} has {number} {what} where {getattr(record, what)} were written"


def export_forests(
    folder: str | os.PathLike, lang: str, split: str, words_from: str | os.PathLike | None = None
) -> Iterator[Forest]:
    """Reads the constituency trees of a split; words and labels that the dictionaries lack are ``<unk>``, unless the
    words come from a text of the split.

    Raises:
        DataFolderError: there are no such trees, or a file is damaged.
        InputError: the text is not that of the split.
    """
    folder = Path(folder)
    manifest = Manifest.load(folder)
    manifest.verify_quickly(folder, lang, [split])
    prefix = folder / manifest.split(lang, split).prefix
    labels = load_label_dictionary(folder / manifest.side(lang).labels)
    dictionary = load_dictionary(folder, lang)
    trees = TreeStore(f"{prefix}.tree")
    require_equal_lengths(trees, prefix)
    if words_from is None:
        words: Iterable[list[str]] = token_words(prefix, dictionary)
    else:
        require_same_tokens(words_from, prefix, dictionary)
        words = map(tokens, read_lines(words_from))

    return (trees[index].forest(labels, leaves) for index, leaves in enumerate(words))


def _export_brackets(lang: str, request: ExportRequest) -> Iterable[str]:
    return map(write_forest, export_forests(request.folder, lang, request.split, request.words_from))


def _side_problems(folder: Path, lang: str, side: SideRecord) -> Iterator[str]:
    labels = load_label_dictionary(folder / side.labels)
    dictionary = load_dictionary(folder, lang)
    for record in side.splits.values():
        tokens = folder / record.prefix
        yield from error_of(lambda: deque(token_words(tokens, dictionary), maxlen=0))
        yield from with_last_error(_tree_problems(tokens, labels, record))


def _tree_problems(tokens: Path, labels: Dictionary, record: SplitRecord) -> Iterator[str]:
    trees = TreeStore(f"{tokens}.tree")
    yield from error_of(lambda: require_equal_lengths(trees, tokens))
    counted = {
        "lines": len(trees),
        "leaves": int(trees.leaf_counts.sum(dtype=np.int64)),
        "nodes": int(trees.node_counts.sum(dtype=np.int64)),
    }
    yield from count_problems(trees.prefix, counted, record)
    yield from first_problems(trees.prefix, _malformed_trees(trees, labels))


def _malformed_trees(trees: TreeStore, labels: Dictionary) -> Iterator[tuple[int, str]]:
    """Yields the lines whose arrays do not make up a tree, or whose labels do not exist."""
    for group in line_blocks(len(trees)):
        block = trees.block(group.start, group.stop)
        ids = block.rows[:, 0]
        wrong = (ids >= len(labels)) | ((ids < labels.nspecial) & (ids != labels.unk()))
        mislabelled = np.zeros(len(block.leaf_counts), bool)
        mislabelled[np.repeat(np.arange(len(block.node_counts)), block.node_counts)[wrong]] = True
        for lines, problem in (
            (malformed_lines(block), "its spans are not a tree"),
            (mislabelled, f"a label id is outside the label dictionary of {len(labels)} symbols"),
        ):
            for line in np.flatnonzero(lines).tolist():
                yield group.start + line + 1, problem


def malformed_lines(block: TreeBlock) -> np.ndarray:
    """Returns which lines of a block are not forests in preorder, ``[lines]`` bool.

    In a forest the preterminals, the nodes without a node below them, are the leaves from left to right. So a node
    starts at the number of preterminals before it, and ends one later, or where its last child ends.
    """
    counts = block.node_counts.astype(np.int64)
    line = np.repeat(np.arange(len(counts)), counts)
    start, end, depth = block.rows[:, 1:].T.astype(np.int64)
    ends = np.cumsum(counts)
    previous = np.append(-1, depth[:-1])[: len(depth)]
    previous[(ends - counts)[counts > 0]] = -1
    bad = np.zeros(len(counts), bool)
    bad[line[(depth < 0) | (depth > previous + 1)]] = True
    depth[bad[line]] = 0

    childless = np.append(depth[1:] <= depth[:-1], True)[: len(depth)]
    childless[ends[counts > 0] - 1] = True
    total = np.bincount(line[childless], minlength=len(counts))
    bad |= total != block.leaf_counts
    bad[line[start != np.cumsum(childless) - childless - (np.cumsum(total) - total)[line]]] = True

    # The parent is the last node before a node that is one level higher.
    nodes, below = np.arange(len(depth)), np.flatnonzero(depth)
    by_level = np.argsort(depth, kind="stable")
    places = (len(depth) * depth + nodes)[by_level]
    parents = by_level[np.searchsorted(places, len(depth) * (depth[below] - 1) + below) - 1]
    right_end = start + 1
    # Of several children the last one is kept.
    right_end[parents] = end[below]
    bad[line[end != right_end]] = True
    return bad


def _export_symbols(lang: str, request: ExportRequest) -> Iterator[str]:
    """Writes the symbol trees of a split in their notation; symbols that the dictionary lacks are ``<unk>``."""
    folder = request.folder
    manifest = Manifest.load(folder)
    manifest.verify_quickly(folder, lang, [request.split])
    side = manifest.symbols[lang]
    notation = notation_named(side.notation)
    prefix = folder / manifest.split(lang, request.split).prefix
    for symbols in token_words(prefix, load_dictionary(folder, lang)):
        yield notation.write(side.encoding.decode(symbols))


def _symbol_side_problems(folder: Path, lang: str, side: SymbolSideRecord) -> Iterator[str]:
    dictionary = load_dictionary(folder, lang)
    for name, split in side.splits.items():
        words = token_words(folder / split.prefix, dictionary)
        yield from with_last_error(_symbol_split_problems(f"{name} of {lang}", folder, words, side, split))


def _symbol_split_problems(
    name: str, folder: Path, words: Iterable[list[str]], side: SymbolSideRecord, record: SymbolSplitRecord
) -> Iterator[str]:
    lines = symbols = 0
    for lines, line in enumerate(words, start=1):
        symbols += len(line)
        try:
            side.encoding.decode(line)
        except SymbolTreeError as error:
            yield str(error.at(folder / record.prefix, lines))
    yield from count_problems(name, {"lines": lines, "symbols": symbols}, record)


def _kind_by_side(sides: Callable[[Manifest], dict], problems: Callable, export: Callable) -> DataKind:
    def all_problems(folder: Path, manifest: Manifest) -> Iterator[str]:
        for lang, side in sides(manifest).items():
            yield from with_last_error(problems(folder, lang, side))

    return DataKind(
        all_problems,
        lambda manifest: {side.side: functools.partial(export, lang) for lang, side in sides(manifest).items()},
    )


register_kind("constituency", _kind_by_side(lambda manifest: manifest.sides, _side_problems, _export_brackets))
register_kind("symbols", _kind_by_side(lambda manifest: manifest.symbols, _symbol_side_problems, _export_symbols))
