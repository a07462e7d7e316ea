"""The check and the export of the two kinds of data set that belong to a side: constituency trees and symbol trees."""

from __future__ import annotations

import functools
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
from tree_fairseq.data_bin.records import SplitRecord, SymbolSideRecord
from tree_fairseq.data_bin.token_files import load_dictionary, require_equal_lengths, require_same_tokens, token_words
from tree_fairseq.data_bin.tree_store import TreeBlock, TreeStore, load_label_dictionary
from tree_fairseq.errors import SymbolTreeError
from tree_fairseq.trees.bracket import write_forest
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.spans import SpanForest, decode
from tree_fairseq.trees.text import read_lines, tokens
from tree_fairseq.trees.tree import Forest

_LINES_AT_A_TIME = 20_000
# Levels are handled one at a time for all lines at once; lines deeper than this are walked node by node instead.
_MANY_LEVELS = 200


def export_forests(
    folder: str | os.PathLike, lang: str, split: str, words_from: str | os.PathLike | None = None
) -> Iterator[Forest]:
    """Reads the constituency trees of a split; words and labels that the dictionaries lack are ``<unk>``.

    Args:
        folder: a folder with trees
        lang: language of the trees
        split: such as ``train`` or ``valid1``
        words_from: the text of the split, to have its own words in place of ``<unk>``

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
    return _forests(trees, words, labels)


def _forests(trees: TreeStore, words: Iterable[list[str]], labels: Dictionary) -> Iterator[Forest]:
    names = labels.symbols
    for index, leaves in enumerate(words):
        tree = trees[index]
        spans = np.stack([tree.start, tree.end, tree.depth], axis=1)
        yield decode(SpanForest(leaves, [names[label] for label in tree.label.tolist()], spans))


def _export_brackets(lang: str, request: ExportRequest) -> Iterable[str]:
    return map(write_forest, export_forests(request.folder, lang, request.split, request.words_from))


def _constituency_exports(manifest: Manifest) -> dict[str, Export]:
    return {side.side: functools.partial(_export_brackets, lang) for lang, side in manifest.sides.items()}


def _constituency_problems(folder: Path, manifest: Manifest) -> Iterator[str]:
    for lang, side in manifest.sides.items():
        yield from with_last_error(_side_problems(folder, lang, side.labels, side.splits))


def _side_problems(folder: Path, lang: str, labels_name: str, splits: dict[str, SplitRecord]) -> Iterator[str]:
    labels = load_label_dictionary(folder / labels_name)
    dictionary = load_dictionary(folder, lang)
    for record in splits.values():
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
    starts at the number of preterminals before it, and ends at the number of those before the next node that is not
    below it.
    """
    counts = block.node_counts.astype(np.int64)
    firsts = np.cumsum(counts) - counts
    line = np.repeat(np.arange(len(counts)), counts)
    start, end, depth = block.rows[:, 1:].T.astype(np.int64)
    is_first = np.zeros(len(depth), bool)
    is_first[firsts[counts > 0]] = True

    bad = np.zeros(len(counts), bool)
    previous = np.concatenate([[-1], depth[:-1]])
    previous[is_first] = -1
    bad[line[(depth < 0) | (depth > previous + 1)]] = True

    childless = np.ones(len(depth), bool)
    childless[:-1] = (depth[1:] <= depth[:-1]) | is_first[1:]
    before = np.cumsum(childless) - childless
    # Preterminals before the first node of the line, and in the whole line.
    offset = before[np.minimum(firsts, max(len(before) - 1, 0))] if len(before) else np.zeros(len(counts), np.int64)
    total = np.bincount(line[childless], minlength=len(counts))
    bad |= total != block.leaf_counts
    bad[line[start != before - offset[line]]] = True

    after = _next_outside(np.where(bad[line], 0, depth), line, counts)
    leaves_before = np.append(before, childless.sum())
    bad[line[end != leaves_before[after] - offset[line]]] = True
    return bad


def _next_outside(depth: np.ndarray, line: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Returns, for every node, the index of the next node that is not below it, ``[M]`` int64; a line ends where the
    next begins."""
    after = np.empty(len(depth), np.int64)
    deepest = np.zeros(len(counts), np.int64)
    np.maximum.at(deepest, line, depth)
    shallow = deepest < _MANY_LEVELS
    # Nothing below a root belongs to another line, so the lines can be handled together.
    nodes = np.flatnonzero(shallow[line])
    ends = np.cumsum(counts)
    for level in range(int(deepest[shallow].max(initial=-1)), -1, -1):
        levels = depth[nodes]
        here = np.flatnonzero(levels == level)
        following = nodes[np.minimum(here + 1, len(nodes) - 1)]
        # The next node kept may belong to a later line; then this line ends first.
        end_of_line = ends[line[nodes[here]]]
        after[nodes[here]] = np.where(here + 1 < len(nodes), np.minimum(following, end_of_line), end_of_line)
        nodes = nodes[levels < level]
    for deep in np.flatnonzero(~shallow):
        first, last = int(ends[deep] - counts[deep]), int(ends[deep])
        after[first:last] = first + _next_outside_of_line(depth[first:last])
    return after


def _next_outside_of_line(depth: np.ndarray) -> np.ndarray:
    """Does the same for one line, node by node."""
    after = np.full(len(depth), len(depth), np.int64)
    open_nodes: list[int] = []
    for node, level in enumerate(depth.tolist()):
        while open_nodes and depth[open_nodes[-1]] >= level:
            after[open_nodes.pop()] = node
        open_nodes.append(node)
    return after


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
    for name in side.splits:
        yield from with_last_error(_symbol_split_problems(folder, lang, name, side, dictionary))


def _symbol_split_problems(
    folder: Path, lang: str, name: str, side: SymbolSideRecord, dictionary: Dictionary
) -> Iterator[str]:
    record = side.splits[name]
    lines = symbols = 0
    for words in token_words(folder / record.prefix, dictionary):
        lines += 1
        symbols += len(words)
        try:
            side.encoding.decode(words)
        except SymbolTreeError as error:
            yield str(error.at(folder / record.prefix, lines))
    yield from count_problems(f"{name} of {lang}", {"lines": lines, "symbols": symbols}, record)


register_kind("constituency", DataKind(_constituency_problems, _constituency_exports))
register_kind("symbols", DataKind(_symbol_problems, _symbol_exports))
