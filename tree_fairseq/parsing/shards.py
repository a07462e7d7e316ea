"""The shards of a corpus that is being parsed. Each is complete or absent, and all are known to belong together."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tree_fairseq.errors import CorruptFileError
from tree_fairseq.files import atomic_file, read_json, write_json

STATE_NAME = "corpus.json"
_FORMAT = 1
_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class ShardReport:
    """Counts and digest of a finished shard.

    Args:
        lines: number of its lines.
        sentences: number of their sentences.
        failed_lines: numbers, from 1 in the whole file, of the lines with a sentence that failed.
        failed_sentences: how many sentences failed.
        digest: sha256 of the shard's file.
    """

    lines: int
    sentences: int
    failed_lines: list[int]
    failed_sentences: int
    digest: str


class ShardFolder:
    """A folder of shards ``000000.brackets``, ... with a report beside each.

    Args:
        folder: made if missing.
        source: everything that decides the contents: hash of the input, identity of the parser, lines of a shard.
        count: number of shards.
    """

    def __init__(self, folder: str | os.PathLike, source: dict[str, Any], count: int):
        self.folder = Path(folder)
        self.count = count
        self._source = {"format": _FORMAT, **source}
        self.run = ""

    def path(self, shard: int) -> Path:
        """Returns the file of a shard."""
        return self.folder / f"{shard:06d}.brackets"

    def open(self, rank: int = 0, is_known_run: Callable[[str], bool] | None = None) -> None:
        """Continues an earlier run of the same source, or clears the folder and starts.

        Args:
            rank: only rank 0 changes the folder; the others wait until it has.
            is_known_run: returns whether the cache still knows a run. A run is continued only if it does: which
                sentence went into which batch cannot be found without the cache, so the shards are made anew.
        """
        while True:
            state = _read_or_none(self.folder / STATE_NAME)
            if isinstance(state, dict) and state.get("source") == self._source:
                self.run = state["run"]
                if is_known_run is None or is_known_run(self.run) or not self.missing():
                    return
            if rank == 0:
                break
            time.sleep(_POLL_SECONDS)
        self.folder.mkdir(parents=True, exist_ok=True)
        # The state goes first: shards without one belong to nothing.
        for name in (STATE_NAME, *sorted(file.name for file in self.folder.iterdir() if _is_ours(file.name))):
            (self.folder / name).unlink(missing_ok=True)
        self.run = uuid.uuid4().hex

    def begin(self) -> None:
        """Tells other ranks that the folder is ready. Rank 0 calls it when the run is noted in the cache."""
        if _read_or_none(self.folder / STATE_NAME) is None:
            write_json(self.folder / STATE_NAME, {"source": self._source, "run": self.run})

    def write(
        self, shard: int, lines: Sequence[str], sentences: int, failed_lines: list[int], failed_sentences: int
    ) -> None:
        """Writes a shard. Its report goes first, so that every shard has one."""
        content = "".join(f"{line}\n" for line in lines).encode()
        digest = hashlib.sha256(content).hexdigest()
        report = ShardReport(len(lines), sentences, failed_lines, failed_sentences, digest)
        write_json(_report_path(self.path(shard)), vars(report))
        with atomic_file(self.path(shard), "wb") as file:
            file.write(content)

    def report(self, shard: int) -> ShardReport | None:
        """Returns the report of a shard; None if it is not finished."""
        return read_report(self.path(shard))

    def missing(self) -> list[int]:
        """Returns the shards that are not finished."""
        return [shard for shard in range(self.count) if self.report(shard) is None]

    def reports(self) -> list[ShardReport]:
        """Returns the reports of all finished shards, in order."""
        return [report for report in map(self.report, range(self.count)) if report is not None]


def _read_or_none(path: Path) -> Any:
    """Returns the contents of a JSON file; a damaged file counts as missing, so that its work is done again."""
    with contextlib.suppress(CorruptFileError):
        return read_json(path)


def _report_path(shard: Path) -> Path:
    return shard.with_suffix(".json")


def read_report(shard: Path) -> ShardReport | None:
    """Returns the report of a shard's file; None if the shard is not finished."""
    if not shard.is_file():
        return None
    values = _read_or_none(_report_path(shard))
    return ShardReport(**values) if isinstance(values, dict) else None


def join_shards(shards: Sequence[Path], output: str | os.PathLike) -> None:
    """Writes all shards into one file, which appears when it is complete.

    Raises:
        CorruptFileError: a shard has changed since it was written.
    """
    with atomic_file(output, "wb") as file:
        for shard in shards:
            content = shard.read_bytes()
            report = read_report(shard)
            if report is None or hashlib.sha256(content).hexdigest() != report.digest:
                raise CorruptFileError(f"{shard} is not what was written; delete it and give the same command again")
            file.write(content)


def _is_ours(name: str) -> bool:
    stem, _, ending = name.lstrip(".").partition(".")
    return len(stem) == 6 and stem.isdigit() and (ending in ("brackets", "json") or ending.endswith(".tmp"))


def file_digest(path: str | os.PathLike) -> str:
    """Returns the sha256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cut(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    """Yields lists of ``size`` lines; the last may be shorter."""
    block: list[str] = []
    for line in lines:
        block.append(line)
        if len(block) == size:
            yield block
            block = []
    if block:
        yield block
