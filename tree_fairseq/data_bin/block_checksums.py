"""Checksums of the blocks of data files, so that damage in a mapped file is found when its block is first read.

``tree.json`` has, under ``checksums``, the CRC-32 of every :data:`BLOCK_BYTES` of each data file and index file, eight
hexadecimal digits a block. Folders of earlier versions have none and are read without them.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tree_fairseq.errors import CorruptFileError
from tree_fairseq.support.files import read_json

BLOCK_BYTES = 1 << 20
MANIFEST_NAME = "tree.json"
_DIGITS = 8


def block_checksums(path: str | os.PathLike) -> str:
    """Computes the checksums of a file."""
    with open(path, "rb") as file:
        return "".join(f"{zlib.crc32(block):08x}" for block in iter(lambda: file.read(BLOCK_BYTES), b""))


def _written(path: Path, size: int) -> list[int] | None:
    """The checksums that the folder of a file has of it, or None; also if they are of a file of another size."""
    try:
        text = (read_json(path.parent / MANIFEST_NAME) or {}).get("checksums", {}).get(path.name)
        if text is None or len(text) != _DIGITS * -(-size // BLOCK_BYTES):
            return None
        return [int(text[place : place + _DIGITS], 16) for place in range(0, len(text), _DIGITS)]
    except (AttributeError, CorruptFileError, TypeError, ValueError):
        return None  # the manifest's own reader says what is wrong with it


def _damaged(path: Path, block: int, size: int) -> CorruptFileError:
    first = block * BLOCK_BYTES
    return CorruptFileError(
        f"{path} is damaged: bytes {first} to {min(first + BLOCK_BYTES, size)} are not those that were written. Copy "
        "the file again from where the folder was made, or preprocess again"
    )


def require_whole_index(path: Path) -> None:
    """Raises CorruptFileError if the checksums of its folder say that an index file is damaged."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        for block, expected in enumerate(_written(path, size) or ()):
            if zlib.crc32(file.read(BLOCK_BYTES)) != expected:
                raise _damaged(path, block, size)


class BlockChecker:
    """Compares blocks of a mapped file with their checksums, each when it is first needed.

    Attributes:
        unread: how many blocks were not compared yet
    """

    def __init__(self, path: Path, values: np.ndarray, checksums: Sequence[int]):
        self._path, self._checksums = path, checksums
        self._bytes = values.reshape(-1).view(np.uint8).data
        self._is_unread = bytearray(b"\1" * len(checksums))
        self.unread = len(checksums)

    def require(self, start: int, end: int) -> None:
        """Raises CorruptFileError if a block that has bytes from ``start`` to ``end`` (half-open) is damaged."""
        for block in range(start // BLOCK_BYTES, -(-end // BLOCK_BYTES)):
            if self._is_unread[block]:
                self._require_block(block)

    def _require_block(self, block: int) -> None:
        first = block * BLOCK_BYTES
        if zlib.crc32(self._bytes[first : first + BLOCK_BYTES]) != self._checksums[block]:
            raise _damaged(self._path, block, len(self._bytes))
        self._is_unread[block] = 0
        self.unread -= 1


def checker_of(path: Path, values: np.ndarray) -> BlockChecker | None:
    """The checker of a mapped file, or None if its folder has no checksums of it."""
    checksums = _written(path, values.nbytes)
    return BlockChecker(path, values, checksums) if checksums else None
