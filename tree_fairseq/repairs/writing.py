"""Files that fairseq writes: checkpoints that are complete after a kill or a power cut, token files, and logs."""

from __future__ import annotations

import functools
import logging
import os
from typing import Any, Callable

from fairseq.binarizer import BinarizeSummary, FileBinarizer
from fairseq.data import indexed_dataset
from fairseq.file_chunker_utils import find_offsets
from fairseq.logging import progress_bar

from tree_fairseq.support.files import copy_whole, force_to_disk
from tree_fairseq.support.processes import ProcessPool
from tree_fairseq.support.python_versions import zip_equal

_PARTS_PER_WORKER = 4


def copy_under_another_name(copy: Callable) -> Callable:
    """Makes a copy of a file get its name when it is complete and on the disk."""

    def copy_file(src_path: str, dst_path: str, overwrite: bool = False) -> Any:
        if not (os.path.isfile(src_path) and os.path.isdir(os.path.dirname(dst_path) or ".")):
            return copy(src_path, dst_path, overwrite=overwrite)  # a place that is no file of this machine
        copy_whole(src_path, dst_path)
        return dst_path

    return copy_file


def rename_durably(rename: Callable) -> Callable:
    """Forces the contents of a file onto the disk before it is renamed, and its new name afterwards."""

    def rename_file(src: str, dst: str) -> None:
        force_to_disk(src)
        rename(src, dst)
        force_to_disk(os.path.dirname(dst) or ".")

    return rename_file


def open_log_files_once(build: Callable) -> Callable:
    """Opens a ``--log-file`` once in a process."""

    def build_with_one_log(iterator, log_format=None, log_interval=100, log_file=None, *args, **kwargs):
        files = [handler for handler in progress_bar.logger.handlers if isinstance(handler, logging.FileHandler)]
        if log_file is not None and os.path.abspath(log_file) in [handler.baseFilename for handler in files]:
            log_file = None
        return build(iterator, log_format, log_interval, log_file, *args, **kwargs)

    return build_with_one_log


def binarize_in_parts(stock: Callable) -> Callable:
    """Binarizes a text in a pool that notices when a worker is killed; raises WorkerDiedError then.

    There are more parts than workers, so that no worker waits long for another one. The files do not depend on the
    number of parts.
    """

    def multiprocess_dataset(
        input_file: str,
        dataset_impl: str,
        binarizer: Any,
        output_prefix: str,
        vocab_size: int | None = None,
        num_workers: int = 1,
    ) -> BinarizeSummary:
        if num_workers == 1:
            return stock(input_file, dataset_impl, binarizer, output_prefix, vocab_size)
        offsets = find_offsets(input_file, num_workers * _PARTS_PER_WORKER)
        prefixes = [f"{output_prefix}.pt{number}" for number in range(len(offsets) - 1)]
        binarize = functools.partial(_binarize_part, binarizer, input_file, dataset_impl, vocab_size)
        summary = BinarizeSummary()
        with ProcessPool(num_workers) as pool:
            parts = zip_equal(offsets[:-1], offsets[1:], prefixes)
            for part in pool.map(binarize, [*parts], f"binarized {input_file}", progress=False):
                summary.merge(part)
        data, index = indexed_dataset.data_file_path, indexed_dataset.index_file_path
        whole = indexed_dataset.make_builder(data(output_prefix), impl=dataset_impl, vocab_size=vocab_size)
        for prefix in prefixes:
            whole.merge_file_(prefix)
            os.remove(data(prefix))
            os.remove(index(prefix))
        whole.finalize(index(output_prefix))
        return summary

    return multiprocess_dataset


def _binarize_part(
    binarizer: Any, input_file: str, dataset_impl: str, vocab_size: int | None, part: tuple[int, int, str]
) -> BinarizeSummary:
    start, end, prefix = part
    return FileBinarizer._binarize_chunk_and_finalize(
        binarizer, input_file, start, end, prefix, dataset_impl, vocab_size=vocab_size
    )
