"""Damaged token files end a command with a message that names the file and the way out, in any task.

fairseq opens them with next to no check: a damaged file is an AssertionError or a ValueError about an empty map, or is
read as other words.
"""

from __future__ import annotations

import struct
from typing import Any, Callable

import numpy as np
from fairseq.data import indexed_dataset
from torch import Tensor

from tree_fairseq.data_bin.block_checksums import BlockChecker, checker_of, require_whole_index
from tree_fairseq.data_bin.index_files import data_and_index
from tree_fairseq.data_bin.token_files import require_mmap_files, require_old_files
from tree_fairseq.errors import CorruptFileError, TreeFairseqError
from tree_fairseq.support.files import require_plain_file

WAY_OUT = "Copy the file again from where the folder was made, or preprocess again"
_OF_FAIRSEQ = (AssertionError, AttributeError, EOFError, KeyError, MemoryError, OverflowError, ValueError, struct.error)


class CheckedTokens(indexed_dataset.MMapIndexedDataset):
    """fairseq's mapped token files, whose blocks are compared with their checksums when they are first read."""

    _blocks: BlockChecker | None = None

    def _do_init(self, path: str) -> None:
        # Also in a worker of a data loader, which opens the files again.
        super()._do_init(path)
        data, index = data_and_index(path)
        self._blocks = checker_of(data, self._bin_buffer_mmap)
        require_whole_index(index)

    def __getitem__(self, i: int) -> Tensor:
        blocks = self._blocks
        if blocks is not None and blocks.unread:
            start, size = self._index[i]
            blocks.require(int(start), int(start) + int(size) * np.dtype(self._index.dtype).itemsize)
        return super().__getitem__(i)


def make_with_care(stock: Callable) -> Callable:
    """Opens the token files of a data set, whole ones alone; raises CorruptFileError for others."""

    def make_dataset(path: str, impl: str, fix_lua_indexing: bool = False, dictionary: Any = None):
        files = data_and_index(path)
        for file in (path, *files):
            require_plain_file(file)
        if impl != "raw" and len(missing := [file for file in files if not file.exists()]) == 1:
            raise CorruptFileError(f"{missing[0]} is missing. {WAY_OUT}")
        try:
            if impl == "mmap" and not missing:
                require_mmap_files(path)
                if not files[0].stat().st_size:
                    raise CorruptFileError(f"{files[0]} is empty: there is no line in it. Preprocess again")
                return CheckedTokens(path)
            dataset = stock(path, impl, fix_lua_indexing, dictionary)
            if impl in ("lazy", "cached") and dataset is not None:
                require_old_files(path, dataset)
            return dataset
        except _OF_FAIRSEQ as error:
            if isinstance(error, TreeFairseqError):
                raise
            name = path if impl == "raw" else files[1]
            raise CorruptFileError(f"{name} is damaged ({_in_words(error)}). {WAY_OUT}") from error

    return make_dataset


def _in_words(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0].rstrip(". ") if lines else type(error).__name__
