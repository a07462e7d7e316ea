"""Bracketed lines to arrays, a chunk of lines at a time and in several processes.

A chunk becomes one ``.npz`` file with the chunk's own numbering of labels; the numbers of the label dictionary, which is
known only when all training chunks are done, are put in when the chunks are joined (:mod:`tree_fairseq.data_bin.side_files`).
The chunks are cut by line numbers alone, so what is written does not depend on the number of processes.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tree_fairseq.data_bin.inputs import Chunk, chunk_lines
from tree_fairseq.data_bin.tree_store import TreeBlock
from tree_fairseq.errors import TreeFormatError
from tree_fairseq.files import atomic_file
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.parsing.processes import ProcessPool
from tree_fairseq.trees.bracket import read_spans
from tree_fairseq.trees.spans import SpanForest, encode


@dataclass(frozen=True)
class ChunkTask:
    """Lines to encode.

    Attributes:
        source: the file that holds them, one bracketed forest a line
        chunk: which of its lines
        output: the file to write
        options: how to treat a line that is no well-formed forest; None where the lines are our own writing
    """

    source: Path
    chunk: Chunk
    output: Path
    options: ParserOptions | None


class ChunkSizes(NamedTuple):
    """How much a chunk holds, and the numbers of its lines, from 1, that were given flat trees."""

    lines: int
    leaves: int
    nodes: int
    failed: list[int]


class ChunkLabels(NamedTuple):
    """The labels of a chunk.

    Attributes:
        names: the labels; their places are their numbers
        counts: how often each occurs, ``[len(names)]``
        chains: unary chains over two or more leaves, as names from the top down, and how often each occurs
    """

    names: list[str]
    counts: list[int]
    chains: list[tuple[tuple[str, ...], int]]


def _numbering() -> defaultdict[str, int]:
    """A mapping that gives each new key the next number."""
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    return numbers


@dataclass
class _ChunkBuilder:
    """Collects the lines of a chunk."""

    label_ids: defaultdict[str, int] = field(default_factory=_numbering)
    labels: list[int] = field(default_factory=list)
    spans: list[np.ndarray] = field(default_factory=list)
    leaf_counts: list[int] = field(default_factory=list)
    node_counts: list[int] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)

    def add(self, forest: SpanForest) -> None:
        """Appends a line."""
        self.labels.extend(map(self.label_ids.__getitem__, forest.labels))
        self.spans.append(forest.spans)
        self.leaf_counts.append(len(forest.leaves))
        self.node_counts.append(len(forest.labels))
        self.text.append(" ".join(forest.leaves))

    def arrays(self) -> dict[str, np.ndarray]:
        """The chunk as named arrays, as they go into its file."""
        rows = np.empty((len(self.labels), 4), np.int32)
        rows[:, 0] = self.labels
        if self.spans:
            np.concatenate(self.spans, out=rows[:, 1:])
        kinds = len(self.label_ids)
        text = "".join(line + "\n" for line in self.text)
        return {
            "leaf_counts": np.array(self.leaf_counts, np.int32),
            "node_counts": np.array(self.node_counts, np.int32),
            "rows": rows,
            "label_counts": np.bincount(rows[:, 0], minlength=kinds),
            "names": _json_bytes({"labels": list(self.label_ids), "chains": _count_chains(rows)}),
            "text": np.frombuffer(text.encode("utf-8"), np.uint8),
            "failed": np.array(self.failed, np.int64),
        }


def encode_chunks(tasks: Sequence[ChunkTask], pool: ProcessPool) -> list[Path]:
    """Encodes chunks in processes; those whose output exists are done already.

    Args:
        tasks: the chunks, in order
        pool: of processes

    Returns:
        the chunks' files, in order

    Raises:
        TreeFormatError: a line is malformed and the options say to stop; of several such lines, the first.
        WorkerDiedError: a process was killed.
    """
    waiting = [task for task in tasks if not task.output.exists()]
    if waiting:
        for _ in pool.map(_encode_chunk, waiting, f"encoded {waiting[0].source}"):
            pass
    return [task.output for task in tasks]


def _encode_chunk(task: ChunkTask) -> None:
    """Writes the file of one chunk, under its name only when it is complete."""
    builder = _ChunkBuilder()
    for number, line in chunk_lines(task.source, task.chunk):
        try:
            forest = read_spans(line, path=task.source, line_number=number)
        except TreeFormatError:
            if task.options is None:
                raise
            forest = _flat_forest(line, number, task, builder)
        builder.add(forest)
    with atomic_file(task.output, "wb", sync=False) as file:
        np.savez(file, **builder.arrays())


def _flat_forest(line: str, number: int, task: ChunkTask, builder: _ChunkBuilder) -> SpanForest:
    """What the line parser makes of a malformed line: a flat tree, or the error with its place."""
    [parsed] = LineParser(task.options).parse_lines([line], first_line=number, path=task.source)
    if parsed.failed:
        builder.failed.append(number)
    return encode(parsed.forest)


def read_chunk_sizes(path: Path) -> ChunkSizes:
    """The sizes of a chunk that :func:`encode_chunks` wrote."""
    with np.load(path) as arrays:
        leaf_counts = arrays["leaf_counts"]
        nodes = int(arrays["node_counts"].sum(dtype=np.int64))
        return ChunkSizes(len(leaf_counts), int(leaf_counts.sum(dtype=np.int64)), nodes, arrays["failed"].tolist())


def read_chunk_labels(path: Path) -> ChunkLabels:
    """The labels of a chunk and their counts."""
    with np.load(path) as arrays:
        values = json.loads(arrays["names"].tobytes())
        names = values["labels"]
        chains = [(tuple(names[label] for label in chain), count) for chain, count in values["chains"]]
        return ChunkLabels(names, arrays["label_counts"].tolist(), chains)


def read_chunk_text(path: Path) -> bytes:
    """The leaves of a chunk, one line of UTF-8 text for each line."""
    with np.load(path) as arrays:
        return arrays["text"].tobytes()


def read_chunk_trees(path: Path) -> TreeBlock:
    """The trees of a chunk, labelled with the chunk's own numbers."""
    with np.load(path) as arrays:
        return TreeBlock(arrays["leaf_counts"], arrays["node_counts"], arrays["rows"])


def _count_chains(rows: np.ndarray) -> list[tuple[list[int], int]]:
    """The unary chains of two or more labels over two or more leaves, from the top down, and their counts.

    Args:
        rows: ``[M, 4]`` int32, forests in preorder one after the other
    """
    start, end, depth = rows[:, 1], rows[:, 2], rows[:, 3]
    # A node continues its chain when the next node lies under it and has the same span.
    linked = np.zeros(len(rows) + 1, bool)
    linked[1:-1] = (depth[1:] == depth[:-1] + 1) & (start[1:] == start[:-1]) & (end[1:] == end[:-1])
    linked[1:-1] &= end[:-1] - start[:-1] >= 2
    tops = np.flatnonzero(~linked[:-1] & linked[1:])
    bottoms = np.flatnonzero(linked[:-1] & ~linked[1:])
    labels = np.ascontiguousarray(rows[:, 0])
    buffer, width = labels.tobytes(), labels.itemsize
    counts = Counter(buffer[top * width : (bottom + 1) * width] for top, bottom in zip(tops.tolist(), bottoms.tolist()))
    return [(np.frombuffer(chain, np.int32).tolist(), count) for chain, count in counts.items()]


def _json_bytes(value: object) -> np.ndarray:
    return np.frombuffer(json.dumps(value).encode("utf-8"), np.uint8)
