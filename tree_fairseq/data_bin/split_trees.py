"""The trees of one text file: parsed where it is plain text, read where it is trees already, and encoded."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tree_fairseq.data_bin.encode import ChunkTask, encode_chunks, read_chunk_sizes
from tree_fairseq.data_bin.inputs import Chunk, TextInput
from tree_fairseq.data_bin.staging import PARSED, Staging
from tree_fairseq.parsing.arguments import check_failures
from tree_fairseq.parsing.corpus import parse_corpus
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.parsing.processes import ProcessPool

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SplitTrees:
    """The encoded lines of a file.

    Attributes:
        chunks: files of :mod:`tree_fairseq.data_bin.encode`, in order
        failed: numbers of the lines, from 1, in which a sentence was given a flat tree
        lines: number of lines
        leaves: leaves of all lines
        nodes: nodes of all lines
    """

    chunks: Sequence[Path]
    failed: Sequence[int]
    lines: int
    leaves: int
    nodes: int


def encode_split(
    text: TextInput, options: ParserOptions, staging: Staging, name: str, *, pool: ProcessPool, cache: Path
) -> SplitTrees:
    """Parses and encodes a text file; what an earlier attempt has done is not done again.

    Args:
        text: the file
        options: the parser's
        staging: where results are kept between attempts
        name: of this file among those of the command
        pool: of processes
        cache: folder of the parse cache
    """
    encoded = staging.folder(f"encoded/{name}")
    if _needs_no_parser(options):
        tasks = [
            ChunkTask(text.path, chunk, encoded / f"{index:06}.npz", options) for index, chunk in enumerate(text.chunks)
        ]
        failed: list[int] = []
    else:
        summary = parse_corpus(text.path, staging.folder(f"{PARSED}/{name}"), options, pool=pool, cache=cache)
        tasks = [
            ChunkTask(shard, Chunk(0, shard.stat().st_size, 1), encoded / f"{shard.stem}.npz", None)
            for shard in map(Path, summary.shards)
        ]
        failed = list(summary.failed)
    chunks = encode_chunks(tasks, pool)
    sizes = [read_chunk_sizes(chunk) for chunk in chunks]
    if flat := [line for size in sizes for line in size.failed]:
        check_failures(options.max_parse_failures, len(flat), text.lines, flat, str(text.path))
    return SplitTrees(
        chunks=chunks,
        failed=sorted(failed + flat),
        lines=sum(size.lines for size in sizes),
        leaves=sum(size.leaves for size in sizes),
        nodes=sum(size.nodes for size in sizes),
    )


def bytes_needed(size: int, is_bracketed: bool) -> int:
    """About how many bytes the trees of a text take while they are made and when they are done.

    A token of six bytes has some two nodes of sixteen bytes, which are held twice, and its brackets; bracketed text has
    its brackets already.

    Args:
        size: bytes of the text
        is_bracketed: whether it is trees
    """
    return size * (6 if is_bracketed else 16)


def _needs_no_parser(options: ParserOptions) -> bool:
    """Whether the lines are trees already and stay as they are."""
    return options.name == "brackets" and options.subword_model is None and not options.strip_function_tags
