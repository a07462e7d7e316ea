"""The shards of a corpus, which anybody may have parsed, are checked and joined."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from tree_fairseq.errors import CorruptFileError, DataFolderError
from tree_fairseq.parsing.corpus import ShardReport, read_report
from tree_fairseq.support.files import atomic_file, file_sha256

_MARKER = re.compile(r"(\d+)-of-(\d+)\.json")
_SHOWN = 20


def finished_shards(folder: Path) -> list[tuple[Path, ShardReport]]:
    """Returns the files and reports of all shards of a text, in order, from markers in a folder.

    Raises DataFolderError if shards are missing, which the message lists, or do not belong together.
    """
    counts = {int(name[2]) for path in folder.glob("*.json") if (name := _MARKER.fullmatch(path.name))}
    if not counts:
        raise DataFolderError(f"{folder} has no finished shards: tree-fairseq parse INPUT OUTPUT --shard I/N makes one")
    lacking = []
    for count in sorted(counts):
        files = [folder / f"{index}-of-{count}.trees" for index in range(count)]
        found = {file: report for file in files if file.is_file() and (report := read_report(file)) is not None}
        missing = [f"{index}/{count}" for index, file in enumerate(files) if file not in found]
        if not missing:
            if len({(report.parser, report.text_bytes) for report in found.values()}) > 1:
                raise DataFolderError(f"the shards in {folder} are not of one text and one parser; remove the folder")
            return list(found.items())
        more = f", and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        lacking.append(", ".join(missing[:_SHOWN]) + more)
    raise DataFolderError(f"{folder} lacks shards: {'; '.join(lacking)}. Make them with --shard I/N, and join again")


def join_shards(shards: Iterable[tuple[Path, ShardReport]], output: str | os.PathLike) -> None:
    """Writes the trees of shards into one file; raises CorruptFileError if one has changed since it was finished."""
    with atomic_file(output, "wb") as written:
        for trees, report in shards:
            if file_sha256(trees) != report.trees_sha256:
                raise CorruptFileError(f"{trees} is not what was written; make the shard again")
            with open(trees, "rb") as file:
                shutil.copyfileobj(file, written)
