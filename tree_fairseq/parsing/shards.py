"""Shards of a corpus: the unit of work, which needs nobody else and may be repeated.

A text is cut into blocks of bytes; their size depends on the size of the text alone. A line belongs to the block in
which it begins. Shard I of N consists of consecutive blocks. The sentences of a block share batches with no others: the
last digits of a parser's scores, and so now and then a tree, depend on the other sentences of a batch. That is why any
number of shards, made in any order, joins to the same bytes.

The folder of shards has two files for each: ``3-of-8.trees``, and then ``3-of-8.json``, which says that the trees are
complete, from which lines and by which parser they were made, and their checksum.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tree_fairseq.errors import CorruptFileError, DataFolderError, InputError, LeafMismatchError
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.support.files import atomic_file, read_json, write_json
from tree_fairseq.trees.text import decode_line

# A text has so many blocks, so that all processes have work, unless they would be larger or smaller than these bytes.
_BLOCKS = 32
_SMALLEST, _LARGEST = 16 << 10, 256 << 10
_READ = 1 << 20
_MARKER = re.compile(r"(\d+)-of-(\d+)\.json")
_SHOWN = 20


@dataclass(frozen=True)
class Shard:
    """Shard ``index``, from 0, of ``count`` shards of a text, which has blocks of ``width`` bytes."""

    text: Path
    folder: Path
    index: int
    count: int
    width: int

    @property
    def trees(self) -> Path:
        """The file of its trees."""
        return self.folder / f"{self.index}-of-{self.count}.trees"

    def starts(self) -> list[int]:
        """Returns the first byte of each of its blocks, and of the block after them."""
        size = self.text.stat().st_size
        blocks = -(-size // self.width)
        first, end = self.index * blocks // self.count, (self.index + 1) * blocks // self.count
        return [min(size, block * self.width) for block in range(first, end + 1)]

    def blocks(self) -> Iterator[list[bytes]]:
        """Yields the lines of each of its blocks, with their ends."""
        starts = self.starts()
        with open(self.text, "rb") as file:
            position = starts[0]
            if position:
                # The line that began before belongs to the block before.
                file.seek(position - 1)
                position += len(file.readline()) - 1
            for end in starts[1:]:
                lines = []
                while position < end and (line := file.readline()):
                    lines.append(line)
                    position += len(line)
                yield lines


def shards_of(text: str | os.PathLike, folder: str | os.PathLike, count: int | None = None) -> list[Shard]:
    """Returns all shards of a text; by default each has one block."""
    text = Path(text)
    size = text.stat().st_size
    width = min(_LARGEST, max(_SMALLEST, -(-size // _BLOCKS)))
    count = count or max(1, -(-size // width))
    return [Shard(text, Path(folder), index, count, width) for index in range(count)]


def count_lines_before(text: Path, positions: Iterable[int]) -> list[int]:
    """Returns how many lines of a text begin before each of some ascending positions."""
    counts, newlines, place = [], 0, 0
    with open(text, "rb") as file:
        for position in positions:
            while place < position - 1 and (block := file.read(min(_READ, position - 1 - place))):
                newlines += block.count(b"\n")
                place += len(block)
            counts.append(newlines + 1 if position else 0)
    return counts


@dataclass(frozen=True)
class ShardReport:
    """The contents of the marker of a finished shard.

    Attributes:
        parser: names all that decides the trees: :func:`parser_digest`
        text_bytes: size of the whole text
        text_sha256, trees_sha256: of the shard's lines and of their trees
        lines, sentences: their numbers in the shard
        failures: line, from 1 in the shard, and reason for each sentence with a flat tree
    """

    parser: str
    text_bytes: int
    text_sha256: str
    trees_sha256: str
    lines: int
    sentences: int
    failures: list[tuple[int, str]]


def parse_shard(shard: Shard, parser: LineParser, first_line: int) -> ShardReport:
    """Parses a shard and writes its files; messages count its lines from ``first_line``.

    Raises:
        InputError: a line cannot be read.
        LeafMismatchError: a sentence failed, and ``on_parse_error`` is ``stop``.
        DiskFullError: there is no room for the files.
    """
    text, trees = hashlib.sha256(), hashlib.sha256()
    lines = sentences = 0
    failures: list[tuple[int, str]] = []
    shard.folder.mkdir(parents=True, exist_ok=True)
    with atomic_file(shard.trees, "wb") as file:
        for block in shard.blocks():
            first = first_line + lines
            decoded = [decode_line(line, shard.text, number) for number, line in enumerate(block, first)]
            parsed = parser.parse_lines(decoded, first, shard.text)
            written = "".join(f"{line.written}\n" for line in parsed).encode()
            file.write(written)
            text.update(b"".join(block))
            trees.update(written)
            sentences += sum(line.sentences for line in parsed)
            failures += [(number, reason) for number, line in enumerate(parsed, lines + 1) for reason in line.failures]
            lines += len(block)
    size = shard.text.stat().st_size
    digests = text.hexdigest(), trees.hexdigest()
    report = ShardReport(parser_digest(parser), size, *digests, lines, sentences, failures)
    write_json(shard.trees.with_suffix(".json"), vars(report))
    return report


def parse_shard_alone(shard: Shard, parser: LineParser) -> ShardReport:
    """Parses a shard unless it is finished, and reads no other lines of the text.

    All lines before it are counted only for an error, which names the number of its line.
    """
    if (report := finished_report(shard, parser_digest(parser))) is not None:
        return report
    try:
        return parse_shard(shard, parser, 1)
    except (InputError, LeafMismatchError):
        if before := count_lines_before(shard.text, shard.starts()[:1])[0]:
            parse_shard(shard, parser, before + 1)
        raise


def parser_digest(parser: LineParser) -> str:
    """Returns a name for all that decides the trees of a text."""
    return parser.digest("shards", parser.options.on_parse_error)


def finished_report(shard: Shard, parser: str) -> ShardReport | None:
    """Returns the report of a shard; None if it is missing, damaged, or of other lines or another parser."""
    report = read_report(shard.trees)
    if report is None or (report.parser, report.text_bytes) != (parser, shard.text.stat().st_size):
        return None
    lines = (line for block in shard.blocks() for line in block)
    if _sha256(lines) != report.text_sha256 or not shard.trees.is_file():
        return None
    with open(shard.trees, "rb") as file:
        return report if _sha256(file) == report.trees_sha256 else None


def read_report(trees: Path) -> ShardReport | None:
    """Returns the contents of the marker beside a file of trees; None if it is missing or damaged."""
    with contextlib.suppress(CorruptFileError, TypeError):
        return ShardReport(**read_json(trees.with_suffix(".json")))
    return None


def _sha256(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def finished_shards(folder: Path) -> list[tuple[Path, ShardReport]]:
    """Returns the files and reports of all shards of a text, in order, from markers in a folder.

    Raises:
        DataFolderError: shards are missing, which the message lists, or do not belong together.
    """
    counts = {int(name[2]) for path in folder.glob("*.json") if (name := _MARKER.fullmatch(path.name))}
    missing = {}
    for count in sorted(counts):
        files = [folder / f"{index}-of-{count}.trees" for index in range(count)]
        found = [(file, report) for file in files if file.is_file() and (report := read_report(file)) is not None]
        if len(found) == count:
            if len({(report.parser, report.text_bytes) for _, report in found}) > 1:
                raise DataFolderError(f"the shards in {folder} are not of one text and one parser; remove the folder")
            return found
        finished = {file for file, _ in found}
        missing[count] = [index for index, file in enumerate(files) if file not in finished]
    if not counts:
        raise DataFolderError(f"{folder} has no finished shards: tree-fairseq parse INPUT OUTPUT --shard I/N makes one")
    lists = "; ".join(_list_missing(*item) for item in missing.items())
    raise DataFolderError(f"{folder} lacks shards: {lists}. Make them with --shard I/N, and join again")


def _list_missing(count: int, missing: Sequence[int]) -> str:
    more = f", and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
    return ", ".join(f"{index}/{count}" for index in missing[:_SHOWN]) + more


def join_shards(
    shards: Iterable[tuple[Path, ShardReport]],
    output: str | os.PathLike,
    convert: Callable[[Iterator[str]], Iterable[str]] | None = None,
) -> None:
    """Writes the trees of shards into one file; raises CorruptFileError if one has changed since it was finished.

    ``convert`` turns the lines, without their ends, into the parts of the file.
    """
    with atomic_file(output, "wb") as file:
        lines = (line for trees, report in shards for line in _checked(trees, report))
        if convert is None:
            file.writelines(lines)
        else:
            file.writelines(part.encode() for part in convert(line.decode().removesuffix("\n") for line in lines))


def _checked(trees: Path, report: ShardReport) -> Iterator[bytes]:
    digest = hashlib.sha256()
    with open(trees, "rb") as file:
        for line in file:
            digest.update(line)
            yield line
    if digest.hexdigest() != report.trees_sha256:
        raise CorruptFileError(f"{trees} is not what was written; make the shard again")


def remove_parts(folder: Path) -> None:
    """Removes what processes that were killed have left of shards that are finished now."""
    for path in folder.glob(".*-of-*.tmp"):
        path.unlink(missing_ok=True)
