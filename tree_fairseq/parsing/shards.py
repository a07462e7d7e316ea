"""The shards of a corpus that is being parsed. Each is complete or absent, and all are known to belong together."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tree_fairseq.errors import CorruptFileError
from tree_fairseq.parsing.cache import ParseCache
from tree_fairseq.parsing.corpus_run import ShardReport
from tree_fairseq.parsing.line_parser import ParsedLine
from tree_fairseq.support.files import atomic_file, read_json, write_json

_STATE = "corpus.json"
_FORMAT = 1
_POLL_SECONDS = 0.2
# Shards, their reports, and what a killed run left of either.
_OURS = re.compile(r"\.*[0-9]{6}\.(brackets|json|.*\.tmp)")


class ShardFolder:
    """A folder of so many shards ``000000.brackets``, ... with a report beside each.

    ``source`` is everything that decides the contents: hash of the input, identity of the parser, lines of a shard.
    """

    def __init__(self, folder: str | os.PathLike, source: dict[str, Any], count: int):
        self.folder = Path(folder)
        self.count = count
        self.run = ""
        self._source = {"format": _FORMAT, **source}

    def path(self, shard: int) -> Path:
        """Returns the file of a shard."""
        return self.folder / f"{shard:06d}.brackets"

    def open(self, input: str | os.PathLike, rank: int = 0, cache: ParseCache | None = None) -> None:
        """Continues an earlier run of the same source, or clears the folder and starts.

        Only rank 0 changes the folder, and notes the run with its input in the cache; the others wait until it has.
        """
        while not (continues := self._continues(cache)) and rank > 0:
            time.sleep(_POLL_SECONDS)
        if rank > 0:
            return
        if not continues:
            self._clear()
            self.run = uuid.uuid4().hex
        if cache is not None:
            cache.put_fact(f"run {self.run}", str(input))
        if not continues:
            # From now on other ranks may write.
            write_json(self.folder / _STATE, {"source": self._source, "run": self.run})

    def _continues(self, cache: ParseCache | None) -> bool:
        """Returns whether the shards are of the same source and, unless all are finished, their run is in the cache.

        Which sentence went into which batch cannot be found without the cache, so the shards are then made anew.
        """
        state = _read_or_none(self.folder / _STATE)
        if not isinstance(state, dict) or state.get("source") != self._source:
            return False
        self.run = state["run"]
        return cache is None or cache.get_fact(f"run {self.run}") is not None or not self.missing()

    def _clear(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        # The state goes first: shards without one belong to nothing.
        for name in (_STATE, *sorted(file.name for file in self.folder.iterdir() if _OURS.fullmatch(file.name))):
            (self.folder / name).unlink(missing_ok=True)

    def write(self, shard: int, first_line: int, lines: Sequence[ParsedLine]) -> None:
        """Writes a shard. Its report goes first, so that every shard has one."""
        content = "".join(f"{line.written}\n" for line in lines).encode()
        report = ShardReport.of(lines, first_line, hashlib.sha256(content).hexdigest())
        write_json(self.path(shard).with_suffix(".json"), vars(report))
        with atomic_file(self.path(shard), "wb") as file:
            file.write(content)

    def is_finished(self, shard: int) -> bool:
        """Returns whether a shard and its report are there."""
        return _report(self.path(shard)) is not None

    def missing(self) -> list[int]:
        """Returns the shards that are not finished."""
        return [shard for shard in range(self.count) if not self.is_finished(shard)]

    def reports(self) -> list[ShardReport]:
        """Returns the reports of all finished shards, in order."""
        return [report for report in map(_report, map(self.path, range(self.count))) if report is not None]


def _read_or_none(path: Path) -> Any:
    """Returns the contents of a JSON file; a damaged file counts as missing, so that its work is done again."""
    with contextlib.suppress(CorruptFileError):
        return read_json(path)


def _report(shard: Path) -> ShardReport | None:
    """Returns the report of a shard's file; None if the shard is not finished."""
    values = _read_or_none(shard.with_suffix(".json")) if shard.is_file() else None
    return ShardReport(**values) if isinstance(values, dict) else None


def join_shards(
    shards: Sequence[Path], output: str | os.PathLike, convert: Callable[[Iterator[str]], Iterable[str]] | None = None
) -> None:
    """Writes all shards into one file; raises CorruptFileError if one has changed since it was written.

    ``convert`` turns the lines, without their ends, into the parts of the file; by default the lines are the file.
    """
    with atomic_file(output, "wb") as file:
        contents = map(_checked, shards)
        if convert is None:
            file.writelines(contents)
        else:
            lines = (line for content in contents for line in content.decode().split("\n")[:-1])
            file.writelines(part.encode() for part in convert(lines))


def _checked(shard: Path) -> bytes:
    content = shard.read_bytes()
    report = _report(shard)
    if report is None or hashlib.sha256(content).hexdigest() != report.digest:
        raise CorruptFileError(f"{shard} is not what was written; delete it and give the same command again")
    return content
