"""The text files of a command, read once from end to end before any of the expensive work begins."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tree_fairseq.errors import InputError, LineCountError
from tree_fairseq.trees.text import read_lines

CHUNK_LINES = 4096
_BLOCK = 1 << 22
# The line breaks of trees.text, as bytes of UTF-8: a hit only means that the slow reader has to look.
_SUSPECT = re.compile(rb"[\x0b\x0c\x1c-\x1e]|\r(?!\n|\Z)|\xc2\x85|\xe2\x80[\xa8\xa9]")


class Chunk(NamedTuple):
    """Consecutive lines: the bytes ``start`` to ``end`` of a file; the number of the first line is ``first_line``."""

    start: int
    end: int
    first_line: int


@dataclass(frozen=True)
class TextInput:
    """A file that was read and has one sentence a line.

    Attributes:
        path: the file
        lines: number of lines
        size: number of bytes
        sha256: digest
        chunks: its lines, ``CHUNK_LINES`` at a time, whatever the number of workers
    """

    path: Path
    lines: int
    size: int
    sha256: str
    chunks: tuple[Chunk, ...]


def inspect_text(path: str | os.PathLike) -> TextInput:
    """Counts the lines of a file, computes its digest and checks that every program sees the same lines.

    Raises:
        InputError: there is no such file.
        LineBreakError, TextFormatError: as :func:`tree_fairseq.trees.text.read_lines`.
    """
    path = Path(path)
    digest = hashlib.sha256()
    lines, position, offsets, rest = 0, 0, [0], b""
    try:
        file = open(path, "rb")
    except FileNotFoundError:
        raise InputError("there is no such file", path) from None
    with file:
        while block := file.read(_BLOCK):
            digest.update(block)
            block = rest + block
            end = block.rfind(b"\n") + 1
            whole, rest = block[:end], block[end:]
            _check_block(whole, path)
            newlines = np.flatnonzero(np.frombuffer(whole, np.uint8) == 10)
            # The newlines in this block that end the last line of a chunk.
            first = (-lines - 1) % CHUNK_LINES
            offsets += (newlines[first::CHUNK_LINES] + 1 + position).tolist()
            lines += len(newlines)
            position += end
    _check_block(rest, path)
    size = position + len(rest)
    lines += bool(rest)
    if offsets[-1] != size:
        offsets.append(size)
    chunks = (
        Chunk(start, end, number * CHUNK_LINES + 1) for number, (start, end) in enumerate(zip(offsets, offsets[1:]))
    )
    return TextInput(path, lines, size, digest.hexdigest(), tuple(chunks))


def _check_block(block: bytes, path: Path) -> None:
    """Lets the strict reader find and report the place if these bytes may hold anything that it refuses."""
    try:
        block.decode("utf-8")
    except UnicodeDecodeError:
        suspect = True
    else:
        suspect = _SUSPECT.search(block) is not None
    if suspect:
        for _ in read_lines(path):
            pass


def chunk_lines(path: Path, chunk: Chunk) -> Iterator[tuple[int, str]]:
    """Yields the numbers and the lines of a chunk of an inspected file, without line ends."""
    with open(path, "rb") as file:
        file.seek(chunk.start)
        lines = file.read(chunk.end - chunk.start).split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    for number, line in enumerate(lines, start=chunk.first_line):
        yield number, line.removesuffix(b"\r").decode("utf-8")


def require_parallel(files: Sequence[TextInput]) -> None:
    """Checks that files have equally many lines.

    Raises:
        LineCountError: it names the first line of the longest file that has no counterpart.
        InputError: they are empty.
    """
    if not files:
        return
    shortest = min(files, key=lambda file: file.lines)
    longest = max(files, key=lambda file: file.lines)
    if shortest.lines != longest.lines:
        raise LineCountError(
            f"this line has no counterpart: the file has {longest.lines} lines, {shortest.path} has {shortest.lines}",
            longest.path,
            shortest.lines + 1,
            hint="Line n of every file of a split must belong together; nothing was parsed or written.",
        )
    if not shortest.lines:
        raise InputError("the file is empty", shortest.path)


def file_sha256(path: str | os.PathLike) -> str:
    """Returns the SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
