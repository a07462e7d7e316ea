"""From lines to the arrays of their trees, a chunk at a time; chunks are encoded in several processes."""

from __future__ import annotations

import functools
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Optional

import numpy as np

from tree_fairseq.data_bin.tree_store import TreeBlock
from tree_fairseq.errors import TreeFormatError
from tree_fairseq.parsing.line_parser import LineParser, ParsedLine
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.support.processes import ProcessPool
from tree_fairseq.trees.bracket import read_spans
from tree_fairseq.trees.bracket_blocks import SpanBlock, read_span_block
from tree_fairseq.trees.spans import TreeSpans
from tree_fairseq.trees.text import Chunk, chunk_bytes, chunk_lines

ReadLine = Callable[[str, Path, int], TreeSpans]
"""Reads a line, given with its file and its number from 1; it can be pickled."""


class ChunkTask(NamedTuple):
    """Lines to encode: a chunk of the file ``source``, parsed as the options say, or read by a function instead."""

    source: Path
    chunk: Chunk
    options: ParserOptions
    read: Optional[ReadLine] = None


class EncodedChunk(NamedTuple):
    """Consecutive lines as arrays.

    Attributes:
        trees: their forests, labelled with positions in ``labels``
        labels: every label of the chunk, and how often it occurs
        chains: unary chains over two or more leaves, as labels from the top down, and how often each occurs
        text: the leaves, one line of UTF-8 text for each line
        failed: by number of the line, from 1, how many of its sentences could not be parsed and have flat trees
    """

    trees: TreeBlock
    labels: dict[str, int]
    chains: dict[tuple[str, ...], int]
    text: bytes
    sentences: int
    failed: dict[int, int]


def encode_chunks(tasks: Sequence[ChunkTask], pool: ProcessPool) -> Iterator[EncodedChunk]:
    """Yields the encoded chunks in order; of several malformed lines the first raises its error."""
    return pool.map(_encode_chunk, tasks, f"encoded {tasks[0].source if tasks else ''}", progress=False)


def _encode_chunk(task: ChunkTask) -> EncodedChunk:
    first_line = task.chunk.first_line
    if _is_ready_made(task):
        others = functools.partial(_read_brackets, task)
        return _encode_text(chunk_bytes(task.source, task.chunk), first_line, others)
    lines = [line for _, line in chunk_lines(task.source, task.chunk)]
    if task.read is None:
        return encode_parsed(_line_parser(task.options).parse_lines(lines, first_line, task.source), first_line)
    numbered = enumerate(lines, start=first_line)
    return encode_forests(((task.read(line, task.source, number), 0) for number, line in numbered), first_line)


def encode_parsed(lines: Sequence[ParsedLine], first_line: int) -> EncodedChunk:
    """Encodes the forests of parsed lines, the first of which has the given number."""
    written = "".join(f"{line.written}\n" for line in lines).encode("utf-8")
    chunk = _encode_text(written, first_line, lambda number, line: (read_spans(line, line_number=number), 0))
    return chunk._replace(failed={number: line.failed for number, line in enumerate(lines, first_line) if line.failed})


def _encode_text(text: bytes, first_line: int, read: Callable[[int, str], tuple[TreeSpans, int]]) -> EncodedChunk:
    """Encodes lines of brackets; those that are not plain are read one by one, by a function of number and line."""
    block = read_span_block(text)
    if block.is_plain.all():
        trees = TreeBlock(block.leaf_counts, block.node_counts, block.rows)
        return _chunk_of(trees, block.labels, block.text, {})
    lines = text.split(b"\n")
    others = ((first_line + index, lines[index].decode("utf-8")) for index in np.flatnonzero(~block.is_plain).tolist())
    return _merged(block, encode_forests(itertools.starmap(read, others), 0), first_line)


def _merged(block: SpanBlock, others: EncodedChunk, first_line: int) -> EncodedChunk:
    """Puts other lines, whose numbers count from 0, among the plain ones."""
    is_plain, places = block.is_plain, first_line + np.flatnonzero(~block.is_plain)
    numbers = numbering()
    plain_labels, other_labels = (
        np.array([numbers[name] for name in names], np.int32) for names in (block.labels, others.labels)
    )
    leaf_counts, node_counts = np.empty((2, len(is_plain)), np.int32)
    leaf_counts[is_plain], leaf_counts[~is_plain] = block.leaf_counts, others.trees.leaf_counts
    node_counts[is_plain], node_counts[~is_plain] = block.node_counts, others.trees.node_counts
    in_plain = np.repeat(is_plain, node_counts)
    rows = np.empty((len(in_plain), 4), np.int32)
    rows[in_plain], rows[~in_plain] = block.rows, others.trees.rows
    rows[in_plain, 0], rows[~in_plain, 0] = plain_labels[block.rows[:, 0]], other_labels[others.trees.rows[:, 0]]
    lines = iter(others.text.split(b"\n")), iter(block.text.split(b"\n"))
    text = b"".join(next(lines[plain]) + b"\n" for plain in is_plain.tolist())
    failed = {int(places[number]): count for number, count in others.failed.items()}
    return _chunk_of(TreeBlock(leaf_counts, node_counts, rows), list(numbers), text, failed)


def encode_forests(forests: Iterable[tuple[TreeSpans, int]], first_line: int) -> EncodedChunk:
    """Encodes the forest of each line, given with the number of its sentences that could not be parsed."""
    numbers, failed = numbering(), {}
    ids: list[int] = []
    spans = bytearray()  # copied, so that the arrays of the lines are freed at once
    text, leaf_counts, node_counts = [], [], []
    for number, (forest, flat) in enumerate(forests, start=first_line):
        ids.extend(map(numbers.__getitem__, forest.labels))
        spans += forest.spans.data
        leaf_counts.append(len(forest.leaves))
        node_counts.append(len(forest.labels))
        text.append(" ".join(forest.leaves) + "\n")
        if flat:
            failed[number] = flat
    rows = np.empty((len(ids), 4), np.int32)
    rows[:, 0] = ids
    rows[:, 1:] = np.frombuffer(spans, np.int32).reshape(-1, 3)
    trees = TreeBlock(np.array(leaf_counts, np.int32), np.array(node_counts, np.int32), rows)
    return _chunk_of(trees, list(numbers), "".join(text).encode("utf-8"), failed)


def _chunk_of(trees: TreeBlock, names: list[str], text: bytes, failed: dict[int, int]) -> EncodedChunk:
    return EncodedChunk(
        trees=trees,
        labels=dict(zip(names, np.bincount(trees.rows[:, 0], minlength=len(names)).tolist())),
        chains=_count_chains(trees.rows, names),
        text=text,
        sentences=int(np.count_nonzero(trees.rows[:, 3] == 0)),
        failed=failed,
    )


def _is_ready_made(task: ChunkTask) -> bool:
    """Returns whether the lines are brackets that stay as they are."""
    options = task.options
    is_changed = options.subword_model is not None or options.strip_function_tags or options.noise > 0
    return task.read is None and options.name == "brackets" and not is_changed


def _read_brackets(task: ChunkTask, number: int, line: str) -> tuple[TreeSpans, int]:
    try:
        return read_spans(line, path=task.source, line_number=number), 0
    except TreeFormatError:
        # The options say what becomes of it.
        [parsed] = _line_parser(task.options).parse_lines([line], number, task.source)
        return read_spans(parsed.written, path=task.source, line_number=number), parsed.failed


@functools.lru_cache(maxsize=2)
def _line_parser(options: ParserOptions) -> LineParser:
    """The parser that this process uses for all chunks."""
    return LineParser(options)


def numbering() -> defaultdict[str, int]:
    """Returns a mapping that gives each new key the next number."""
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    return numbers


def _count_chains(rows: np.ndarray, names: list[str]) -> dict[tuple[str, ...], int]:
    """Counts the unary chains of two or more labels over two or more leaves in forests ``[M, 4]`` int32 in preorder."""
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
    return {tuple(names[label] for label in np.frombuffer(chain, np.int32)): counts[chain] for chain in counts}
