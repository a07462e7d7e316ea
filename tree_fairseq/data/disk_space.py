"""A full disk, told from other troubles and reported with the number of bytes that are needed."""

from __future__ import annotations

import contextlib
import errno
import shutil
from pathlib import Path
from typing import Iterator

from tree_fairseq.errors import DiskFullError

# EFBIG: the limit that `ulimit -f` sets on the size of a file; EDQUOT: a user's share is used up.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextlib.contextmanager
def reporting_full_disk(folder: Path, needed: int) -> Iterator[None]:
    """Turns the system's error for a full disk into one that says how much room it takes.

    Args:
        folder: where the work is done
        needed: bytes that the whole of it takes there, as far as is known

    Raises:
        DiskFullError: in place of such an error.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        raise DiskFullError(
            f"no room left in {folder} ({error}): about {needed} bytes are needed there, {_free(folder)} are free. "
            "Nothing was written under a final name; make room and give the same command again"
        ) from error


def require_room(folder: Path, needed: int, what: str) -> None:
    """Makes sure, before writing, that there is room.

    Raises:
        DiskFullError: there is not.
    """
    if (free := _free(folder)) < needed:
        raise DiskFullError(
            f"no room for {what} in {folder}: {needed} bytes are needed, {free} are free. "
            "Nothing was written under a final name; make room and give the same command again"
        )


def _free(folder: Path) -> int:
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free
