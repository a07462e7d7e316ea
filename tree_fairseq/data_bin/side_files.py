"""Encoded chunks to the final files of one side: leaf text, label dictionary, tree stores."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fairseq.data import Dictionary

from tree_fairseq.data_bin.encode import read_chunk_labels, read_chunk_text, read_chunk_trees
from tree_fairseq.data_bin.label_dictionary import build_label_dictionary
from tree_fairseq.data_bin.manifest import SplitRecord
from tree_fairseq.data_bin.split_trees import SplitTrees
from tree_fairseq.data_bin.token_files import found_impl, token_file_names, token_lengths
from tree_fairseq.data_bin.tree_store import TreeStore, TreeStoreWriter, tree_file_paths
from tree_fairseq.errors import CorruptFileError, LeafMismatchError
from tree_fairseq.trees.subwords import SUBWORD_SUFFIX

logger = logging.getLogger(__name__)


@dataclass
class LabelCensus:
    """What the trees of a split are labelled with.

    Attributes:
        labels: how often each label occurs
        chains: how often each unary chain over two or more leaves occurs, from the top down
    """

    labels: Counter[str]
    chains: Counter[tuple[str, ...]]


def take_census(chunks: Iterable[Path]) -> LabelCensus:
    """Counts the labels and chains of encoded chunks."""
    census = LabelCensus(Counter(), Counter())
    for path in chunks:
        chunk = read_chunk_labels(path)
        for name, count in zip(chunk.names, chunk.counts):
            census.labels[name] += count
        for chain, count in chunk.chains:
            census.chains[chain] += count
    return census


def dictionary_of_census(census: LabelCensus, inventory: Iterable[str], tags: Iterable[str]) -> Dictionary:
    """The label dictionary of training trees and of the parser that made them.

    Where training words were split into pieces, other words will be split in other text: the labels that pieces get under
    any of the parser's tags are in the dictionary too.

    Args:
        census: of the training trees
        inventory: all labels that the parser can give
        tags: those of the inventory that stand directly above words
    """
    labels = set(inventory)
    if any(label.endswith(SUBWORD_SUFFIX) for label in census.labels):
        labels |= {tag + SUBWORD_SUFFIX for tag in tags}
    return build_label_dictionary(labels, census.labels, census.chains)


def write_leaves(chunks: Iterable[Path], path: Path) -> None:
    """Joins the leaves of encoded chunks to a text file, one line for each."""
    with open(path, "wb") as file:
        for chunk in chunks:
            file.write(read_chunk_text(chunk))


def write_trees(chunks: Iterable[Path], dictionary: Dictionary, prefix: Path) -> Counter[str]:
    """Joins encoded chunks to a tree store.

    Returns:
        the labels that the dictionary does not have and how many nodes have them; these are labelled ``<unk>``
    """
    unknown: Counter[str] = Counter()
    with TreeStoreWriter(prefix) as writer:
        for path in chunks:
            labels, block = read_chunk_labels(path), read_chunk_trees(path)
            ids = np.array([dictionary.index(name) for name in labels.names], np.int32)
            block.rows[:, 0] = ids[block.rows[:, 0]]
            for name, label_id, count in zip(labels.names, ids.tolist(), labels.counts):
                if label_id == dictionary.unk():
                    unknown[name] += count
            writer.add(block)
    return unknown


def require_equal_lengths(trees: TreeStore, token_prefix: str | os.PathLike) -> None:
    """Makes sure that every line has as many leaves as tokens.

    Raises:
        CorruptFileError: the files have different numbers of lines.
        LeafMismatchError: it names the first line whose numbers differ.
    """
    lengths = token_lengths(token_prefix)
    if len(lengths) != len(trees):
        raise CorruptFileError(f"{token_prefix} has {len(lengths)} lines, {trees.prefix} has {len(trees)}")
    differing = np.flatnonzero(lengths != trees.leaf_counts)
    if len(differing):
        line = int(differing[0])
        raise LeafMismatchError(
            f"{token_prefix}, line {line + 1}: {lengths[line]} tokens, but {trees.leaf_counts[line]} leaves "
            f"({len(differing)} such lines)"
        )


def finish_split(
    split: SplitTrees, dictionary: Dictionary, folder: Path, token_folder: Path, prefix: str
) -> SplitRecord:
    """Writes the trees of a split, checks them against its token files, and takes their particulars for the manifest.

    Args:
        split: the encoded lines
        dictionary: label dictionary
        folder: where the tree files go
        token_folder: where the token files are
        prefix: name of the token files without extension
    """
    tree_prefix = folder / f"{prefix}.tree"
    unknown = write_trees(split.chunks, dictionary, tree_prefix)
    if unknown:
        most = ", ".join(f"{label} ({count})" for label, count in unknown.most_common(10))
        logger.warning(
            "[trees] %s: %d nodes are labelled <unk>, for the label dictionary lacks %s", prefix, unknown.total(), most
        )
    tokens = token_folder / prefix
    require_equal_lengths(TreeStore(tree_prefix), tokens)
    logger.info(
        "[trees] %s: %d lines, %d leaves, %d nodes; %d lines with a flat tree",
        prefix,
        split.lines,
        split.leaves,
        split.nodes,
        len(split.failed),
    )
    return SplitRecord(
        prefix=prefix,
        lines=split.lines,
        leaves=split.leaves,
        nodes=split.nodes,
        failed=list(split.failed),
        unknown_labels=unknown.total(),
        files=token_file_names(tokens, found_impl(tokens)) + [path.name for path in tree_file_paths(tree_prefix)],
    )
