"""The check and the export of the two kinds of data set that belong to a side: constituency trees and symbol trees."""

from __future__ import annotations

import functools
import itertools
import os
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from fairseq.data import Dictionary

from tree_fairseq.data_bin.kinds import (
    DataKind,
    Export,
    ExportRequest,
    count_problems,
    error_of,
    first_problems,
    register_kind,
    with_last_error,
)
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.records import SideRecord, SplitRecord, SymbolSideRecord, SymbolSplitRecord
from tree_fairseq.data_bin.token_files import load_dictionary, require_equal_lengths, require_same_tokens, token_words
from tree_fairseq.data_bin.tree_store import TreeBlock, TreeStore, load_label_dictionary
from tree_fairseq.errors import SymbolTreeError
from tree_fairseq.trees.bracket import write_forest
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.spans import SpanForest, decode
from tree_fairseq.trees.text import read_lines, tokens
from tree_fairseq.trees.tree import Forest

_LINES_AT_A_TIME = 20_000


def export_forests(
    folder: str | os.PathLike, lang: str, split: str, words_from: str | os.PathLike | None = None
) -> Iterator[Forest]:
    """Reads the constituency trees of a split; words and labels that the dictionaries lack are ``<unk>``.

    With ``words_from``, the text of the split, its own words take the place of ``<unk>``.

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

    def forest(leaves: list[str], index: int) -> Forest:
        tree = trees[index]
        spans = np.stack([tree.start, tree.end, tree.depth], axis=1)
        return decode(SpanForest(leaves, [labels[label] for label in tree.label.tolist()], spans))

    return map(forest, words, itertools.count())


def _export_brackets(lang: str, request: ExportRequest) -> Iterable[str]:
    return map(write_forest, export_forests(request.folder, lang, request.split, request.words_from))


def _constituency_exports(manifest: Manifest) -> dict[str, Export]:
    return {side.side: functools.partial(_export_brackets, lang) for lang, side in manifest.sides.items()}


def _constituency_problems(folder: Path, manifest: Manifest) -> Iterator[str]:
    for lang, side in manifest.sides.items():
        yield from with_last_error(_side_problems(folder, lang, side))


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
    for first in range(0, len(trees), _LINES_AT_A_TIME):
        block = trees.block(first, first + _LINES_AT_A_TIME)
        ids = block.rows[:, 0]
        wrong = (ids >= len(labels)) | ((ids < labels.nspecial) & (ids != labels.unk()))
        mislabelled = np.zeros(len(block.leaf_counts), bool)
        mislabelled[np.repeat(np.arange(len(block.node_counts)), block.node_counts)[wrong]] = True
        for lines, problem in (
            (malformed_lines(block), "its spans are not a tree"),
            (mislabelled, f"a label id is outside the label dictionary of {len(labels)} symbols"),
        ):
            for line in np.flatnonzero(lines).tolist():
                yield first + line + 1, problem


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
    prefix = folder / manifest.symbol_split(lang, request.split).prefix
    for symbols in token_words(prefix, load_dictionary(folder, lang)):
        yield notation.write(side.encoding.decode(symbols))


def _symbol_exports(manifest: Manifest) -> dict[str, Export]:
    return {side.side: functools.partial(_export_symbols, lang) for lang, side in manifest.symbols.items()}


def _symbol_problems(folder: Path, manifest: Manifest) -> Iterator[str]:
    for lang, side in manifest.symbols.items():
        yield from with_last_error(_symbol_side_problems(folder, lang, side))


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


register_kind("constituency", DataKind(_constituency_problems, _constituency_exports))
register_kind("symbols", DataKind(_symbol_problems, _symbol_exports))
