"""Files that are complete or absent, JSON files, digests, and reports of a full disk.

A file is written under another name beside its destination and renamed when it is complete. A reader, another process
or the next attempt after a crash therefore never meets half a file under its final name.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import stat
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from tree_fairseq.errors import CorruptFileError, DiskFullError, InputError

# EFBIG: the limit that `ulimit -f` sets on the size of a file. EDQUOT: the user's quota is used up.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_LARGE, _MOST_COMPRESSED = 64 << 20, 100  # file systems compress text, but not as much
_WAY_OUT = "Nothing was written under a final name; make room and give the same command again"


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike, mode: str = "w", *, sync: bool = True) -> Iterator[IO[Any]]:
    """Opens a file for writing that gets its name when the ``with`` block ends; its folder must exist.

    If the block raises, an older file of that name stays and the new one is removed. Several processes may write the
    same file at once: the last one wins. ``mode`` is ``"w"`` for UTF-8 text with ``\\n`` as the end of a line or
    ``"wb"`` for bytes; ``sync`` forces the contents onto the disk before the file gets its name, and then the name.
    Raises DiskFullError.
    """
    path, text = Path(path), {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    if path.exists() and not path.is_file():
        # A pipe or a device, such as /dev/stdout, cannot be replaced.
        with open(path, mode, **text) as file:
            yield file
        return
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.tmp")
    try:
        with open(part, mode.replace("w", "x"), **text) as file:
            yield file
            file.flush()
            if sync:
                os.fsync(file.fileno())
        os.replace(part, path)
        if sync:
            force_to_disk(path.parent)
    except BaseException as error:
        with contextlib.suppress(OSError):
            part.unlink()
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            free = free_bytes(path.parent)
            full = DiskFullError(f"no room left for {path} ({error}): {free} bytes are free. {_WAY_OUT}")
            full.path = path
            raise full from error
        raise


def force_to_disk(path: str | os.PathLike) -> None:
    """Forces the contents of a file, or the names in a folder, onto the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def copy_whole(source: str | os.PathLike, destination: str | os.PathLike) -> None:
    """Copies a file; the copy gets its name when it is complete and on the disk."""
    with open(source, "rb") as read, atomic_file(destination, "wb") as written:
        shutil.copyfileobj(read, written, 1 << 20)


def is_part(name: str, of: str) -> bool:
    """Whether a name is one that `atomic_file` uses while it writes the file ``of``."""
    return name.startswith(f".{of}.") and name.endswith(".tmp")


def write_json(path: str | os.PathLike, value: Any, *, sync: bool = True) -> None:
    """Writes a JSON file: see :func:`atomic_file`."""
    with atomic_file(path, sync=sync) as file:
        json.dump(value, file, indent=1, ensure_ascii=False)
        file.write("\n")


def require_plain_file(path: str | os.PathLike) -> None:
    """Raises CorruptFileError if something is a pipe, a device or a folder, which cannot be read to its end, or a file
    that is mostly a hole, which takes no room on the disk but all the memory. A path without a file is fine.
    """
    try:
        status = os.stat(path)
    except OSError:
        return  # whoever opens it says why
    if not stat.S_ISREG(status.st_mode):
        kind = "folder" if stat.S_ISDIR(status.st_mode) else "pipe or a device"
        raise CorruptFileError(f"{os.fspath(path)} is a {kind}, not a file")
    if status.st_size > _LARGE and 0 < 512 * status.st_blocks < status.st_size // _MOST_COMPRESSED:
        raise CorruptFileError(f"{os.fspath(path)} has {status.st_size} bytes, nearly all of them a hole. Remove it")


def require_folders(*files: Path | None) -> None:
    """Raises InputError if a file, which is to be written, would be in a folder that does not exist."""
    for path in files:
        if path is not None and not path.absolute().parent.is_dir():
            raise InputError(f"the folder {path.parent} does not exist", path)


def read_json(path: str | os.PathLike) -> Any:
    """The contents of a JSON file, or None if it does not exist; raises CorruptFileError if it is not JSON."""
    require_plain_file(path)
    try:
        content = Path(path).read_bytes()
        value = json.loads(content)
        if rb"\u" in content:
            json.dumps(value, ensure_ascii=False).encode()  # fails for half of a character, which no file can hold
        return value
    except FileNotFoundError:
        return None
    except (RecursionError, ValueError) as error:
        raise CorruptFileError(f"{path} is not JSON: {error}") from None


def standard_input() -> IO[bytes]:
    """Returns the bytes of standard input; raises InputError where a process has none."""
    if sys.stdin is None:
        raise InputError("there is no standard input to read", hint="Give a file, or a pipe.")
    return sys.stdin.buffer


def file_sha256(path: str | os.PathLike) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@contextlib.contextmanager
def reporting_full_disk(folder: Path, needed: int) -> Iterator[None]:
    """Makes the error of a full disk a DiskFullError that says how many bytes the whole work in a folder needs."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ROOM and getattr(error, "path", None) is None:
            raise
        cause = str(error).removesuffix(f". {_WAY_OUT}")
        free = free_bytes(folder)
        raise DiskFullError(
            f"no room left in {folder} ({cause}): about {needed} bytes are needed there, {free} are free. {_WAY_OUT}"
        ) from error


def free_bytes(folder: Path) -> int:
    """Returns the bytes that are free where a folder is, or will be."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free
