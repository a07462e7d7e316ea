"""Checkpoints that fairseq writes are complete under their name and on the disk, after a kill or a power cut, too.

fairseq writes a checkpoint under another name and renames it, but does not force it onto the disk before: after a power
cut the name may belong to a file of zeros. It then copies the file to ``checkpoint_best.pt`` and ``checkpoint_last.pt``
under these names: a kill during the copy leaves half of it.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

from fairseq import checkpoint_utils, file_io

from tree_fairseq.errors import CheckpointError, DiskFullError
from tree_fairseq.repairs.compat import wrap
from tree_fairseq.support.files import copy_whole, force_to_disk, free_bytes, is_full_disk


def install() -> None:
    """Wraps the functions of fairseq that write checkpoints and give them their names; a second call does nothing."""
    wrap(file_io.PathManager, "copy", _copy_whole)
    wrap(file_io.PathManager, "rename", _rename_durably)
    wrap(checkpoint_utils, "torch_persistent_save", _naming_a_full_disk)
    wrap(checkpoint_utils, "verify_checkpoint_directory", _without_links)


def _copy_whole(copy: Callable) -> Callable:
    def copy_file(src_path: str, dst_path: str, overwrite: bool = False) -> Any:
        if not (os.path.isfile(src_path) and os.path.isdir(os.path.dirname(dst_path) or ".")):
            return copy(src_path, dst_path, overwrite=overwrite)  # a place that is no file of this machine
        with _full_disk_named(dst_path):
            copy_whole(src_path, dst_path)
        return dst_path

    return copy_file


def _without_links(verify: Callable) -> Callable:
    """Refuses links under the names that fairseq writes first: it would overwrite what they lead to."""

    def verify_checkpoint_directory(save_dir: str) -> None:
        for path in Path(save_dir).glob("*"):
            if path.is_symlink() and (path.name == "dummy" or path.suffix == ".tmp"):
                raise CheckpointError(f"{path} is a link, and what it leads to would be overwritten: remove it")
        verify(save_dir)

    return verify_checkpoint_directory


def _rename_durably(rename: Callable) -> Callable:
    def rename_file(src: str, dst: str) -> None:
        force_to_disk(src)
        rename(src, dst)
        force_to_disk(os.path.dirname(dst) or ".")

    return rename_file


def _naming_a_full_disk(save: Callable) -> Callable:
    @functools.wraps(save)
    def save_checkpoint(obj: Any, filename: str, *args: Any, **kwargs: Any) -> None:
        with _full_disk_named(filename):
            save(obj, filename, *args, **kwargs)

    return save_checkpoint


@contextlib.contextmanager
def _full_disk_named(filename: str) -> Iterator[None]:
    """Raises DiskFullError with the checkpoint's name where an error in the block comes from a full disk."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        if not is_full_disk(error):
            raise
        with contextlib.suppress(OSError):
            os.remove(f"{filename}.tmp")
        free = free_bytes(Path(filename).parent)
        raise DiskFullError(
            f"no room left for the checkpoint {filename}: {free} bytes are free. Make room and give the same "
            "command again; the training goes on from its last checkpoint"
        ) from None
