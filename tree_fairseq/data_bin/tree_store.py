"""The trees of a split on disk: forests as arrays, and the dictionary of the labels that they refer to.

Forests are an indexed dataset of fairseq, read and written without a loop over items. ``PREFIX.bin`` holds int32 items
one after the other, ``PREFIX.idx`` the header, sizes and byte offsets that
``fairseq.data.indexed_dataset.MMapIndexedDataset`` writes (and reads: the files are valid for it). An item is

    ``[N, label, start, end, depth, label, start, end, depth, ...]``

with N the number of leaves (no EOS) and one row of four for each of the M nodes of the full tree, in preorder: spans
are half-open and relative to the line, depth is 0 at each root, preterminals and unary chains are among the nodes.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from fairseq.data import Dictionary

from tree_fairseq.data_bin import index_files
from tree_fairseq.errors import CorruptFileError, MissingTreesError, TreeFormatError
from tree_fairseq.support.files import require_plain_file
from tree_fairseq.trees.spans import TreeSpans, decode
from tree_fairseq.trees.tree import Forest

RESERVED_LABELS = ("<s>", "<pad>", "</s>", "<unk>")

_ROW = 4


class StoredTree(NamedTuple):
    """The full forest of one line: arrays ``[M]`` int32 over its nodes in preorder."""

    num_leaves: int  # N, without EOS
    label: np.ndarray
    start: np.ndarray  # of half-open spans
    end: np.ndarray
    depth: np.ndarray  # 0 at each root

    def forest(self, labels: Dictionary, leaves: list[str]) -> Forest:
        """The trees, given the dictionary of their labels and the words of the line."""
        spans = np.stack([self.start, self.end, self.depth], axis=1)
        return decode(TreeSpans(leaves, [labels[label] for label in self.label.tolist()], spans))

    def cut(self, leaves: int) -> StoredTree:
        """The trees over the first leaves of the line; a sentence has to end there."""
        kept = self.start < leaves
        return StoredTree(leaves, *(values[kept] for values in self[1:]))


class TreeBlock(NamedTuple):
    """The full forests of consecutive lines, concatenated."""

    leaf_counts: np.ndarray  # leaves of each line, ``[lines]`` int32
    node_counts: np.ndarray  # nodes of each line, ``[lines]`` int32
    rows: np.ndarray  # ``[sum of node_counts, 4]`` int32, columns label, start, end, depth


class TreeStoreWriter:
    """Writes a store block by block; the index is written when the ``with`` block ends.

    The path ``prefix`` lacks ``.bin`` and ``.idx``. Memory does not grow with the number of lines.
    """

    def __init__(self, prefix: str | os.PathLike):
        self._data_path, self._index_path = index_files.data_and_index(prefix)

    def __enter__(self) -> TreeStoreWriter:
        self._file = open(self._data_path, "wb")
        # The index begins with the number of sizes, so they are kept here until all are known.
        self._sizes = tempfile.TemporaryFile(dir=self._data_path.parent)
        return self

    def __exit__(self, kind, error, trace) -> None:
        with self._file, self._sizes:
            if kind is None:
                lines = self._sizes.tell() // 4
                with open(self._index_path, "wb") as index:
                    index.write(index_files.index_header(lines))
                    for sizes in self._written_sizes():
                        index.write(sizes)
                    end = 0
                    for sizes in self._written_sizes():
                        ends = end + np.cumsum(np.frombuffer(sizes, np.int32), dtype=np.int64)
                        index.write((4 * (ends - np.frombuffer(sizes, np.int32))).tobytes())
                        end = int(ends[-1])

    def _written_sizes(self) -> Iterator[bytes]:
        self._sizes.seek(0)
        return iter(lambda: self._sizes.read(4 * index_files.LINES_AT_A_TIME), b"")

    def add(self, block: TreeBlock) -> None:
        """Appends the forests of a block."""
        counts = block.node_counts.astype(np.int64)
        sizes = 1 + _ROW * counts
        values = np.empty(int(sizes.sum()), np.int32)
        is_count = np.zeros(len(values), bool)
        is_count[np.cumsum(sizes) - sizes] = True
        values[is_count] = block.leaf_counts
        values[~is_count] = block.rows.reshape(-1)
        self._file.write(values.data)
        self._sizes.write(sizes.astype(np.int32).data)


def relabel(prefix: str | os.PathLike, ids: np.ndarray) -> None:
    """Replaces the labels of a store in place: label ``i`` becomes ``ids[i]``, ``[L]`` int32."""
    data_path, index_path = index_files.data_and_index(prefix)
    sizes, _ = _read_sizes(index_path)
    # The file is not mapped, because mapped pages would count as memory of this process.
    with open(data_path, "r+b") as file:
        position = 0
        for lines in index_files.line_blocks(len(sizes)):
            ends = np.cumsum(sizes[lines], dtype=np.int64)
            block = np.fromfile(file, np.int32, int(ends[-1]))
            is_label = np.ones(len(block), bool)
            is_label[ends - sizes[lines]] = False
            labels = np.flatnonzero(is_label)[::_ROW]
            block[labels] = ids[block[labels]]
            file.seek(position)
            file.write(block.data)
            position += block.nbytes


class TreeStore:
    """Random access to the forests of a split.

    Opening maps the files ``PREFIX.bin`` and ``PREFIX.idx`` and raises CorruptFileError if they do not belong together;
    reading an item makes views into the map. A store can be pickled (workers of a data loader open it again).
    """

    def __init__(self, prefix: str | os.PathLike):
        self.prefix = os.fspath(prefix)
        data_path, index_path = index_files.data_and_index(prefix)
        # Both are views of the mapped file, so that processes share them.
        self._sizes, self._pointers = _read_sizes(index_path)
        self._values = index_files.map_values(data_path, self._start(len(self._sizes)))

    def _start(self, line: int) -> int:
        """Where the item of a line starts in the data, or the end of the data for the number of lines."""
        if line < len(self._sizes):
            return int(self._pointers[line]) // 4
        return self._start(line - 1) + int(self._sizes[line - 1]) if line else 0

    def __reduce__(self):
        return type(self), (self.prefix,)

    def __len__(self) -> int:
        return len(self._sizes)

    def __getitem__(self, index: int) -> StoredTree:
        if not 0 <= index < len(self._sizes):
            raise IndexError(f"line {index} of {len(self._sizes)}")
        start = self._start(index)
        item = self._values[start : start + int(self._sizes[index])]
        return StoredTree(int(item[0]), *item[1:].reshape(-1, _ROW).T)

    @property
    def leaf_counts(self) -> np.ndarray:
        """Leaves of every line, without EOS, ``[lines]`` int32."""
        return np.concatenate([np.zeros(0, np.int32), *(counts for _, counts in self.leaf_count_blocks())])

    def leaf_count_blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yields the leaves of every line some lines at a time: which lines, and their counts, int32."""
        return (
            (lines, self.block(lines.start, lines.stop).leaf_counts) for lines in index_files.line_blocks(len(self))
        )

    def block(self, first: int = 0, last: int | None = None) -> TreeBlock:
        """Returns a copy of the forests of lines ``first`` to ``last`` (half-open, all by default).

        The file is read and not mapped, because mapped pages count as memory of the process.
        """
        first, last, _ = slice(first, last).indices(len(self))
        begin = self._start(first)
        size = self._start(max(first, last)) - begin
        values = np.fromfile(index_files.data_and_index(self.prefix)[0], np.int32, size, offset=4 * begin)
        is_row = np.ones(len(values), bool)
        starts = self._pointers[first:last] // 4 - begin
        is_row[starts] = False
        node_counts = (self._sizes[first:last] - 1) // _ROW
        return TreeBlock(values[starts], node_counts, values[is_row].reshape(-1, _ROW))


def _read_sizes(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Returns the number of values of each item, and where it begins in bytes."""
    value_bytes, sizes, pointers = index_files.read_consecutive(path)
    if value_bytes != 4 or any((sizes[lines] % _ROW != 1).any() for lines in index_files.line_blocks(len(sizes))):
        raise CorruptFileError(f"{path} is not the index of a tree file. {index_files.REPAIR}")
    return sizes, pointers


def label_dictionary_name(lang: str) -> str:
    """Returns the file name of a language's label dictionary."""
    return f"dict.label.{lang}.txt"


def build_label_dictionary(inventory: Iterable[str], label_counts: Mapping[str, int]) -> Dictionary:
    """Makes a dictionary of every label that a node can have: the most frequent first, and then by name.

    These are the labels of the parser (``inventory``) and of the training trees. Raises TreeFormatError if a label has
    the name of one of the dictionary's special symbols.
    """
    counts = Counter(dict.fromkeys(inventory, 0))
    counts.update(label_counts)
    dictionary = Dictionary()
    for label in sorted(counts):
        if label in RESERVED_LABELS:
            raise TreeFormatError(
                f"a constituent is labelled {label}, which names a special symbol of the label dictionary",
                hint="Give the label another name.",
            )
        dictionary.add_symbol(label, counts[label])
    dictionary.finalize(padding_factor=1)
    return dictionary


def load_label_dictionary(path: str | os.PathLike) -> Dictionary:
    """Reads a label dictionary; raises MissingTreesError without the file and CorruptFileError for a damaged one."""
    dictionary = Dictionary()
    require_plain_file(path)
    try:
        text = Path(path).read_bytes().decode("utf-8").replace("\r\n", "\n")
        if "\r" in text:
            raise ValueError("a line has a carriage return")  # which fairseq reads as the end of the line
        dictionary.add_from_file(io.StringIO(text))
    except FileNotFoundError:
        raise MissingTreesError(f"there is no label dictionary {path}") from None
    except (ValueError, RuntimeError) as error:
        raise CorruptFileError(f"{path} is not a label dictionary: {error}") from None
    return dictionary


def save_label_dictionary(dictionary: Dictionary, path: str | os.PathLike) -> None:
    """Writes a label dictionary in fairseq's format."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        dictionary.save(file)
