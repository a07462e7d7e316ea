"""The staging folder: the files of a destination are made beside it and moved into it when all are complete.

``DESTINATION.building`` holds, while a command runs or after it was killed,

* ``command.json``: which command this is; the same command continues the work, another one starts afresh,
* files that the command keeps between attempts,
* ``output-*``: the final files that this attempt has made,
* ``READY.json``: written when the output is complete and on disk, it lists the files in the order in which they are
  renamed into the destination. A command that finds this file only renames the remaining files,
* ``lock``: locked by the process that builds, and removed last.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import shutil
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tree_fairseq.data_bin.index_files import MANIFEST_NAME
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.errors import DestinationExistsError
from tree_fairseq.support.files import force_to_disk, is_part, read_json, write_json
from tree_fairseq.support.processes import ProcessPool

logger = logging.getLogger(__name__)

PARSED = "parsed"
_RECORD = "command.json"
_READY = "READY.json"
_LOCK = "lock"


def staging_path(destination: str | os.PathLike) -> Path:
    """Returns where a destination is built: beside it, or inside it if files beside it cannot be renamed into it."""
    destination = Path(os.path.realpath(destination))
    parent = destination.parent
    if destination.is_dir() and (destination.stat().st_dev != parent.stat().st_dev or not os.access(parent, os.W_OK)):
        return destination / ".building"
    return destination.with_name(destination.name + ".building")


def clear_published(destination: str | os.PathLike) -> None:
    """Removes the staging folder of a command that was stopped after it had moved all files."""
    path = staging_path(destination)
    if path.is_symlink() or not path.is_dir():
        return
    ready = _ready(path)
    if ready is None:
        if set(os.listdir(path)) <= {_LOCK}:  # all that is left of a command that was stopped in its last step
            staging = Staging(destination, {})
            with contextlib.suppress(OSError):
                staging.lock()
                staging.leave()
    elif not _unpublished(path, ready):
        with Staging(destination, ready["command"]) as staging:
            staging.publish()


def _ready(path: Path) -> dict[str, Any] | None:
    """Reads the list of complete files; raises DestinationExistsError if it names files outside of this folder."""
    ready = read_json(path / _READY)
    if ready is None:
        return None
    try:
        names = [ready["output"], *ready["files"]]
        is_ours = all(os.path.basename(name) == name and name not in (os.curdir, os.pardir) for name in names)
        if is_ours and "command" in ready and not (path / names[0]).is_symlink():
            return ready
    except (KeyError, TypeError):
        pass
    raise DestinationExistsError(f"{path / _READY} is not a list of files that were made here: remove {path}")


def _unpublished(path: Path, ready: dict[str, Any]) -> bool:
    return any((path / ready["output"] / name).exists() for name in ready["files"])


class Staging:
    """The staging folder of one destination; only one process can use it at a time.

    ``command`` describes the work and its input, for JSON: equal commands give equal files. ``parse_cache`` is the
    folder of a cache of sentences.
    """

    def __init__(self, destination: str | os.PathLike, command: dict[str, Any], parse_cache: str | None = None):
        self.destination = Path(os.path.realpath(destination))
        self.path = staging_path(destination)
        # Tuples become lists, as in the command that is read back.
        self._command = json.loads(json.dumps(command, default=str))
        self.parse_cache = parse_cache
        self._lock = contextlib.ExitStack()
        self._seen = self._published()

    def _published(self) -> tuple[int, ...] | None:
        """Returns what identifies the published state of the destination; None before the first one."""
        with contextlib.suppress(OSError):
            status = os.stat(self.destination / MANIFEST_NAME)
            return status.st_ino, status.st_size, status.st_mtime_ns
        return None

    def __enter__(self) -> Staging:
        self.lock()
        with contextlib.ExitStack() as stack:
            stack.push(self._lock)
            if self._published() != self._seen:
                raise DestinationExistsError(
                    f"another process has just built {self.destination}: look at it, and give the command again"
                )
            self._take_up()
            stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._lock.close()

    def lock(self) -> None:
        """Locks the folder, which is made if it is missing; raises DestinationExistsError if another process has it."""
        if self.path.is_symlink():
            raise DestinationExistsError(f"{self.path} is a link, and it is where {self.destination} has to be built")
        is_locked = False
        while not is_locked:
            self.path.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileNotFoundError), contextlib.ExitStack() as stack:
                lock = stack.enter_context(open(self.path / _LOCK, "a"))
                try:
                    # Forks do not inherit this lock, so a worker that outlives a killed run does not keep it.
                    fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    problem = f"another process is building {self.destination} right now, in {self.path}"
                    raise DestinationExistsError(problem) from None
                # The process before may have removed the file; then this lock keeps nobody out.
                is_locked = os.path.samestat(os.fstat(lock.fileno()), os.stat(self.path / _LOCK))
                self._lock = stack.pop_all() if is_locked else self._lock

    def leave(self) -> None:
        """Removes the lock, which is the last file, and the folder."""
        self._remove([_LOCK])
        with contextlib.suppress(OSError):
            self.path.rmdir()
        self._lock.close()

    def _take_up(self) -> None:
        """Keeps the files of an earlier attempt at the same command, and removes those of another command."""
        self.refuse_unpublished()
        if self.is_ready:
            return
        found = sorted(entry.name for entry in self.path.iterdir() if entry.name != _LOCK)
        known = read_json(self.path / _RECORD)
        if known == self._command:
            logger.info("resuming what an earlier attempt left in %s", self.path)
            self._remove(entry for entry in found if entry.startswith("output-"))
            return
        if known is None and _READY not in found and not all(is_part(name, _RECORD) for name in found):
            raise DestinationExistsError(
                f"{self.path} holds files that are not ours, and it is where {self.destination} has to be built: "
                "remove it"
            )
        if known is not None:
            logger.warning("%s was left by another command, or its input has changed: starting afresh", self.path)
        # Parses stay: text and parser identify them. The record is replaced after all other files are gone.
        self._remove(entry for entry in found if entry not in (PARSED, _RECORD))
        write_json(self.path / _RECORD, self._command)

    def refuse_unpublished(self) -> None:
        """Raises DestinationExistsError if another command was stopped while it moved its files."""
        ready = _ready(self.path)
        if ready is not None and ready["command"] != self._command and _unpublished(self.path, ready):
            raise DestinationExistsError(
                f"an earlier command was stopped while it moved its finished files to {self.destination}: give that "
                f"command again to complete it, or remove {self.path} and the destination. It was "
                f"{json.dumps(ready['command'], ensure_ascii=False)}"
            )

    def _remove(self, names: Iterable[str]) -> None:
        for path in [self.path / name for name in names]:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()

    @property
    def is_ready(self) -> bool:
        """Whether everything is built, by this attempt or an earlier one, and only has to be published."""
        ready = _ready(self.path)
        return ready is not None and ready["command"] == self._command

    def publish_earlier(self) -> bool:
        """Publishes what an earlier attempt at this command has built, if it is complete, and returns whether it was.

        Raises DestinationExistsError if another command was stopped while it moved its files.
        """
        if self.is_ready:
            with self:
                self.publish()
            return True
        clear_published(self.destination)
        self.refuse_unpublished()
        return False

    def folder(self, name: str) -> Path:
        """Returns a folder in the staging folder, which is kept between attempts."""
        path = self.path / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def new_output(self) -> Path:
        """Returns an empty folder for the final files: workers of a killed attempt may still be writing into theirs."""
        path = self.path / f"output-{uuid.uuid4().hex[:12]}"  # it may become the destination, with usual permissions
        path.mkdir()
        return path

    def seal(self, output: Path, last: Sequence[str] = ()) -> None:
        """Declares the files of an output folder complete; those in ``last`` are moved after all others."""
        names = sorted(path.name for path in output.iterdir())
        for path in (*(output / name for name in names), output):
            force_to_disk(path)
        files = [name for name in names if name not in last] + [name for name in last if name in names]
        write_json(self.path / _READY, {"command": self._command, "output": output.name, "files": files})
        force_to_disk(self.path)

    def publish(self) -> None:
        """Moves the sealed files to the destination, and removes the staging folder.

        A new destination appears in one step; into one that exists, each file is moved in one step. Raises
        DestinationExistsError, before anything is moved, if a file is missing.
        """
        ready = _ready(self.path)
        assert ready is not None, "only a sealed folder is published"
        output, names = self.path / ready["output"], ready["files"]
        # A file that is not there any more was moved by an earlier attempt.
        if lost := [name for name in names if not (output / name).exists() and not (self.destination / name).exists()]:
            raise DestinationExistsError(f"{output} has lost {lost[0]}: remove {self.path}, and give the command again")
        if self.destination.exists():
            for name in names:
                if (output / name).exists():
                    os.replace(output / name, self.destination / name)
        else:
            os.rename(output, self.destination)
        for folder in (self.destination, self.destination.parent):
            force_to_disk(folder)
        # A command that is given again learns from READY.json that only clearing away is left.
        self._remove(entry.name for entry in sorted(self.path.iterdir()) if entry.name not in (_READY, _LOCK))
        self._remove([_READY])
        self.leave()
        force_to_disk(self.path.parent)


@dataclass(frozen=True)
class Work:
    """A folder that is being built."""

    manifest: Manifest  # the record of the folder, which gets its files
    staging: Staging  # where files are kept until the end, or for the next attempt
    output: Path  # where the final files are written
    pool: ProcessPool  # processes that share the work
