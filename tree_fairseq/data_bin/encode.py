"""Lines of text to trees as arrays, a chunk of lines at a time, in several processes.

The lines are bracketed trees, or sentences for a parser that costs no more than reading them. A chunk numbers its
labels itself; its reader replaces the numbers (:mod:`tree_fairseq.data_bin.constituency_sides`). Chunks are cut by the
numbers of their lines alone, so the final files do not depend on the number of processes.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Optional

import numpy as np

from tree_fairseq.data_bin.inputs import Chunk, chunk_lines
from tree_fairseq.data_bin.tree_store import TreeBlock
from tree_fairseq.errors import TreeFormatError
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.parsing.processes import ProcessPool
from tree_fairseq.trees.bracket import read_spans
from tree_fairseq.trees.spans import SpanForest

ReadLine = Callable[[str, Path, int], SpanForest]
"""Reads a line, given with its file and its number from 1; it can be pickled."""


class ChunkTask(NamedTuple):
    """Lines to encode.

    Attributes:
        source: their file
        chunk: which of its lines
        options: how to parse them; None for bracketed lines that this package has written
        read: reads each line instead, whatever the options are
    """

    source: Path
    chunk: Chunk
    options: Optional[ParserOptions]
    read: Optional[ReadLine] = None


@dataclass(frozen=True)
class EncodedChunk:
    """Consecutive lines as arrays.

    Attributes:
        trees: their forests, labelled with positions in ``labels``
        labels: every label of the chunk once
        label_counts: how often each of them occurs
        chains: unary chains over two or more leaves, as labels from the top down, and how often each occurs
        text: the leaves, one line of UTF-8 text for each line
        sentences: number of sentences
        failed: numbers of the lines, from 1, in which a sentence has a flat tree because it could not be parsed
        failed_sentences: number of these sentences
    """

    trees: TreeBlock
    labels: list[str]
    label_counts: list[int]
    chains: dict[tuple[str, ...], int]
    text: bytes
    sentences: int
    failed: list[int]
    failed_sentences: int


def encode_chunks(tasks: Sequence[ChunkTask], pool: ProcessPool) -> Iterator[EncodedChunk]:
    """Yields the encoded chunks in order.

    Args:
        tasks: the chunks, all of one file or of one text
        pool: processes of the command

    Raises:
        TreeFormatError: a line is malformed and the options say to stop; of several such lines, the first.
        LeafMismatchError: a sentence could not be parsed and the options say to stop.
        WorkerDiedError: a process was killed.
    """
    source = tasks[0].source if tasks else ""
    return pool.map(encode_chunk, tasks, f"encoded {source}")


def encode_chunk(task: ChunkTask) -> EncodedChunk:
    """Encodes one chunk; errors as :func:`encode_chunks`."""
    builder = _ChunkBuilder()
    lines = chunk_lines(task.source, task.chunk)
    if task.read is not None:
        for number, line in lines:
            builder.add(task.read(line, task.source, number))
    elif task.options is None:
        for number, line in lines:
            builder.add(read_spans(line, path=task.source, line_number=number))
    elif is_ready_made(task.options):
        for number, line in lines:
            try:
                builder.add(read_spans(line, path=task.source, line_number=number))
            except TreeFormatError:
                builder.parse([line], number, task)
    else:
        builder.parse([line for _, line in lines], task.chunk.first_line, task)
    return builder.build()


def is_ready_made(options: ParserOptions) -> bool:
    """Returns whether lines are trees already and stay as they are."""
    return options.name == "brackets" and options.subword_model is None and not options.strip_function_tags


@functools.lru_cache(maxsize=2)
def _line_parser(options: ParserOptions) -> LineParser:
    """The parser that this process uses for all chunks."""
    return LineParser(options)


def _numbering() -> defaultdict[str, int]:
    """Returns a mapping that gives each new key the next number."""
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
    sentences: int = 0
    failed: list[int] = field(default_factory=list)
    failed_sentences: int = 0

    def add(self, forest: SpanForest, sentences: int = 1) -> None:
        """Appends a line."""
        self.labels.extend(map(self.label_ids.__getitem__, forest.labels))
        self.spans.append(forest.spans)
        self.leaf_counts.append(len(forest.leaves))
        self.node_counts.append(len(forest.labels))
        self.text.append(" ".join(forest.leaves) + "\n")
        self.sentences += sentences

    def parse(self, lines: list[str], first_line: int, task: ChunkTask) -> None:
        """Parses lines and appends them."""
        written = _line_parser(task.options).write_lines(lines, first_line, task.source)
        for number, line in enumerate(written, start=first_line):
            self.add(read_spans(line.written, path=task.source, line_number=number), line.sentences)
            if line.failed:
                self.failed.append(number)
                self.failed_sentences += line.failed

    def build(self) -> EncodedChunk:
        """Returns the chunk."""
        rows = np.empty((len(self.labels), 4), np.int32)
        rows[:, 0] = self.labels
        if self.spans:
            np.concatenate(self.spans, out=rows[:, 1:])
        names = list(self.label_ids)
        return EncodedChunk(
            trees=TreeBlock(np.array(self.leaf_counts, np.int32), np.array(self.node_counts, np.int32), rows),
            labels=names,
            label_counts=np.bincount(rows[:, 0], minlength=len(names)).tolist(),
            chains={tuple(names[label] for label in chain): count for chain, count in _count_chains(rows)},
            text="".join(self.text).encode("utf-8"),
            sentences=self.sentences,
            failed=self.failed,
            failed_sentences=self.failed_sentences,
        )


def _count_chains(rows: np.ndarray) -> Iterator[tuple[list[int], int]]:
    """Yields the unary chains of two or more labels over two or more leaves, from the top down, and their counts.

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
    for chain, count in counts.items():
        yield np.frombuffer(chain, np.int32).tolist(), count
