"""Files of datasets of fairseq's ``mmap`` kind: index files, and the sizes of the data files that belong to them."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tree_fairseq.errors import CorruptFileError
from tree_fairseq.support.files import require_plain_file

LINES_AT_A_TIME = 2048  # bounds the memory that reading an index takes
MANIFEST_NAME = "tree.json"
_MAGIC = b"MMIDIDX\x00\x00"
_VERSION = 1
_INT32_CODE = 4
# The bytes of a value by the code in the header: fairseq's types of tokens, and int32.
_VALUE_BYTES = {_INT32_CODE: 4, 5: 8, 8: 2, 9: 4}
_HEADER = struct.Struct("<9sQBQ")
REPAIR = "Preprocess again, or run `tree-fairseq check` on the folder to see all that is wrong"


def data_and_index(prefix: str | os.PathLike) -> tuple[Path, Path]:
    """Returns the data file and the index file of a dataset: ``PREFIX.bin`` and ``PREFIX.idx``."""
    return Path(f"{os.fspath(prefix)}.bin"), Path(f"{os.fspath(prefix)}.idx")


def index_bytes(lines: int) -> int:
    """Returns the size of an index."""
    return _HEADER.size + 12 * lines


def line_blocks(lines: int) -> Iterator[slice]:
    """Yields slices that cover a number of lines."""
    return (slice(first, min(first + LINES_AT_A_TIME, lines)) for first in range(0, lines, LINES_AT_A_TIME))


def index_header(lines: int) -> bytes:
    """Returns the beginning of the index of an int32 dataset."""
    return _HEADER.pack(_MAGIC, _VERSION, _INT32_CODE, lines)


def write_index(path: Path, sizes: np.ndarray, starts: np.ndarray) -> None:
    """Writes the index file of an int32 dataset, given the number of values of each item, ``[lines]``, and the
    position of its first value in the data file, ``[lines]``.
    """
    with open(path, "wb") as file:
        file.write(index_header(len(sizes)))
        file.write(sizes.astype(np.int32).tobytes())
        file.write((4 * starts.astype(np.int64)).tobytes())


def read_consecutive(path: Path) -> tuple[int, np.ndarray, np.ndarray]:
    """Reads an index like `read_index_with_pointers`, and checks that each item begins where the one before it ends."""
    value_bytes, sizes, pointers = read_index_with_pointers(path)
    end = 0
    for lines in line_blocks(len(sizes)):
        ends = end + np.cumsum(sizes[lines], dtype=np.int64)
        if not np.array_equal(pointers[lines], value_bytes * (ends - sizes[lines])):
            raise CorruptFileError(f"{path} has offsets that disagree with its sizes. {REPAIR}")
        end = ends[-1]
    return value_bytes, sizes, pointers


def read_index_with_pointers(path: Path) -> tuple[int, np.ndarray, np.ndarray]:
    """Maps an index file and checks it, without the data file; raises CorruptFileError for a damaged index.

    Returns the bytes of a value, the number of values of each item, ``[lines]`` int32, and the byte at which it begins,
    ``[lines]`` int64. The arrays are views of the mapped file.
    """
    size = _size_of(path)
    if size < _HEADER.size:
        raise CorruptFileError(f"{path} is cut off: {size} bytes, shorter than its header. {REPAIR}")
    content = np.asarray(np.memmap(path, np.uint8, "r"))
    header = content[: _HEADER.size].tobytes()
    magic, version, code, lines = _HEADER.unpack(header)
    if (magic, version) != (_MAGIC, _VERSION) or code not in _VALUE_BYTES:
        raise CorruptFileError(f"{path} is not an index: its header is {header!r}. {REPAIR}")
    if size != index_bytes(lines):
        raise CorruptFileError(f"{path} has {size} bytes where its {lines} lines take {index_bytes(lines)}. {REPAIR}")
    sizes = np.frombuffer(content, np.int32, lines, _HEADER.size)
    pointers = np.frombuffer(content, np.int64, lines, _HEADER.size + 4 * lines)
    if any((sizes[lines] < 0).any() or (pointers[lines] < 0).any() for lines in line_blocks(len(sizes))):
        raise CorruptFileError(f"{path} has sizes or offsets below zero. {REPAIR}")
    return _VALUE_BYTES[code], sizes, pointers


def require_data_size(path: Path, size: int) -> None:
    """Raises CorruptFileError if a file is missing or does not have the size that its index says."""
    if (found := _size_of(path)) != size:
        raise CorruptFileError(f"{path} has {found} bytes where its index asks for {size}. {REPAIR}")


def _size_of(path: Path) -> int:
    require_plain_file(path)
    try:
        return path.stat().st_size
    except FileNotFoundError:
        raise CorruptFileError(f"{path} is missing. {REPAIR}") from None


def map_values(path: Path, length: int) -> np.ndarray:
    """Maps the data file as a read-only ``[length]`` int32 array."""
    require_data_size(path, 4 * length)
    # An empty file cannot be mapped.
    return np.asarray(np.memmap(path, np.int32, "r")) if length else np.zeros(0, np.int32)
