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
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from tree_fairseq.errors import CorruptFileError, DiskFullError

# EFBIG: the limit that `ulimit -f` sets on the size of a file. EDQUOT: the user's quota is used up.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_WAY_OUT = "Nothing was written under a final name; make room and give the same command again"


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike, mode: str = "w", *, sync: bool = True) -> Iterator[IO[Any]]:
    """Opens a file for writing that gets its name when the ``with`` block ends.

    If the block raises, an older file of that name stays and the new one is removed. Several processes may write the
    same file at once: the last one wins.

    Args:
        path: name of the file; its folder must exist
        mode: ``"w"`` for UTF-8 text with ``\\n`` as the end of a line, ``"wb"`` for bytes
        sync: whether to force the contents onto the disk before the file gets its name

    Raises:
        DiskFullError: no room is left on the disk.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        # A pipe or a device, such as /dev/stdout, cannot be replaced.
        with open(path, mode, **_text_options(mode)) as file:
            yield file
        return
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.tmp")
    try:
        with open(part, mode.replace("w", "x"), **_text_options(mode)) as file:
            yield file
            file.flush()
            if sync:
                os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            part.unlink()
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            full = DiskFullError(f"no room left for {path} ({error}): {_free(path.parent)} bytes are free. {_WAY_OUT}")
            full.path = path
            raise full from error
        raise


def _text_options(mode: str) -> dict[str, Any]:
    return {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}


def is_part(name: str, of: str) -> bool:
    """Returns whether a name is one that :func:`atomic_file` uses while it writes the file ``of``."""
    return name.startswith(f".{of}.") and name.endswith(".tmp")


def write_json(path: str | os.PathLike, value: Any) -> None:
    """Writes a JSON file, which gets its name when it is complete and on the disk."""
    with atomic_file(path) as file:
        json.dump(value, file, indent=1, ensure_ascii=False)
        file.write("\n")


def read_json(path: str | os.PathLike) -> Any:
    """Returns the contents of a JSON file, or None if the file does not exist.

    Raises:
        CorruptFileError: the file is not JSON.
    """
    try:
        return json.loads(Path(path).read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise CorruptFileError(f"{path} is not JSON: {error}") from None


def file_sha256(path: str | os.PathLike) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def reporting_full_disk(folder: Path, needed: int) -> Iterator[None]:
    """Replaces the error of a full disk by one that says how many bytes the whole work needs.

    Args:
        folder: where the work is done
        needed: bytes that all files of the work take there, as far as is known

    Raises:
        DiskFullError: the ``with`` block found the disk full.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ROOM and getattr(error, "path", None) is None:
            raise
        raise DiskFullError(
            f"no room left in {folder} ({_cause(error)}): about {needed} bytes are needed there, "
            f"{_free(folder)} are free. {_WAY_OUT}"
        ) from error


def _cause(error: OSError) -> str:
    """Returns the system's message, without the way out that :func:`atomic_file` adds."""
    return str(error).removesuffix(f". {_WAY_OUT}")


def require_room(folder: Path, needed: int, content: str) -> None:
    """Raises DiskFullError, before anything is written, if a folder has less room than ``content`` needs in bytes."""
    if (free := _free(folder)) < needed:
        raise DiskFullError(
            f"no room for {content} in {folder}: {needed} bytes are needed, {free} are free. {_WAY_OUT}"
        )


def _free(folder: Path) -> int:
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free
