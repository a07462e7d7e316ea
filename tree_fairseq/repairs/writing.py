"""Files that fairseq writes: checkpoints that are complete after a kill or a power cut, and logs."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import socket
from typing import IO, Any, Callable

from fairseq.logging import progress_bar

from tree_fairseq.errors import CheckpointError
from tree_fairseq.support.files import copy_whole, force_to_disk

_held: dict[tuple[int, str], IO[str]] = {}


def hold_folder(folder: str) -> None:
    """Keeps other processes from writing checkpoints to a folder until this one ends.

    Raises CheckpointError, with the number and the machine of the process that writes there.
    """
    key = os.getpid(), os.path.realpath(os.path.join(folder, ".training"))
    with contextlib.suppress(KeyError, OSError):
        if os.path.samestat(os.fstat(_held[key].fileno()), os.stat(key[1])):
            return  # a second opened file of the same lock would end it
    file = open(key[1], "a+", encoding="utf-8")
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        file.seek(0)
        raise CheckpointError(
            f"{file.read()} is training with --save-dir {folder}: give another --save-dir, or wait for its end"
        ) from None
    except OSError:
        return  # a file system without locks
    file.truncate(0)
    file.write(f"process {os.getpid()} on {socket.gethostname()}")
    file.flush()
    _held[key] = file


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
