"""Corpora in shards: a shard is the unit of work, which needs nobody else and may be repeated.

A text is cut into blocks of bytes; their size depends on the size of the text alone. A line belongs to the block in
which it begins. Shard I of N consists of consecutive blocks. The sentences of a block share batches with no others: the
last digits of a parser's scores, and so now and then a tree, depend on the other sentences of a batch. That is why any
number of shards, made in any order, joins to the same bytes.

The folder of shards has two files for each: ``3-of-8.trees``, and then ``3-of-8.json``, which says that the trees are
complete, from which lines and by which parser they were made, and their checksum. :func:`parse_corpus` makes all shards
of a text. It sends the lines of a shard to a process of a pool, on this or another machine, and writes the trees that
come back: the pools of :mod:`tree_fairseq.parsing.ray_engine` need no folder that machines share.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import importlib
import io
import logging
import os
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

from tree_fairseq.errors import CorruptFileError, InputError, ParserError, TreeFairseqError
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions, check_failures, registered_parser
from tree_fairseq.support.files import atomic_file, file_sha256, read_json, write_json
from tree_fairseq.support.processes import ProcessPool, own_device
from tree_fairseq.support.progress import progress_bar
from tree_fairseq.trees.text import FaultyLines, count_lines_before, decode_lines, outcome_or_error
from tree_fairseq.trees.treebanks import left_out_message

logger = logging.getLogger(__name__)

# A text has so many blocks, so that all processes have work, unless they would be larger or smaller than these bytes.
_BLOCKS = 32
_SMALLEST, _LARGEST = 16 << 10, 256 << 10
# Larger texts have shards of several blocks, as a folder should not have millions of files.
_MOST_SHARDS = 10_000


@dataclass(frozen=True)
class Shard:
    """Shard ``index``, from 0, of ``count`` shards of a text, which has ``size`` bytes in blocks of ``width``."""

    text: Path
    folder: Path
    index: int
    count: int
    size: int
    width: int

    @property
    def trees(self) -> Path:
        """The file of its trees."""
        return self.folder / f"{self.index}-of-{self.count}.trees"

    def new_trees(self) -> contextlib.AbstractContextManager[IO[bytes]]:
        """Opens the file of its trees. Damage by a power cut is found by the checksum."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return atomic_file(self.trees, "wb", sync=False)

    def finish(self, report: ShardReport) -> None:
        """Writes its marker."""
        write_json(self.trees.with_suffix(".json"), vars(report), sync=False)

    def starts(self) -> list[int]:
        """Returns the first byte of each of its blocks, and of the block after them."""
        blocks = -(-self.size // self.width)
        first, end = self.index * blocks // self.count, (self.index + 1) * blocks // self.count
        return [min(self.size, block * self.width) for block in range(first, end + 1)]

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
    """Returns all shards of a text; by default each has one block, unless there are too many."""
    text = Path(text)
    size = text.stat().st_size
    width = min(_LARGEST, max(_SMALLEST, -(-size // _BLOCKS)))
    count = count or min(_MOST_SHARDS, max(1, -(-size // width)))
    return [Shard(text, Path(folder), index, count, size, width) for index in range(count)]


@dataclass(frozen=True)
class ShardReport:
    """The contents of the marker of a finished shard."""

    parser: str  # names all that decides the trees: :func:`parser_digest`
    text_bytes: int  # size of the whole text
    # text_sha256, trees_sha256: of the shard's lines and of their trees
    text_sha256: str
    trees_sha256: str
    # lines, sentences: their numbers in the shard
    lines: int
    sentences: int
    failures: list[tuple[int, str]]  # line, from 1 in the shard, and reason for each sentence with a flat tree
    # how often what no sentence has was left out of ready-made trees
    left_out: dict[str, int] = field(default_factory=dict)


def parse_blocks(
    shard: Shard, blocks: Iterable[list[bytes]], parser: LineParser, first_line: int, file: IO[bytes]
) -> ShardReport:
    """Parses the lines of a shard and writes their trees; messages count its lines from ``first_line``.

    Raises InputError if lines cannot be read; LeafMismatchError if a sentence failed, and ``on_parse_error`` is
    ``stop``.
    """
    text, trees, faults = hashlib.sha256(), hashlib.sha256(), FaultyLines()
    lines = sentences = 0
    failures, left_out = list[tuple[int, str]](), Counter[str]()
    for block in blocks:
        first = first_line + lines
        lines += len(block)
        with faults:
            decoded = list(decode_lines(block, shard.text, first))
            parsed = parser.parse_lines(decoded, first, shard.text)
            written = "".join(f"{line.written}\n" for line in parsed).encode()
            file.write(written)
            text.update(b"".join(block))
            trees.update(written)
            sentences += sum(line.sentences for line in parsed)
            numbered = enumerate(parsed, first - first_line + 1)
            failures += [(number, reason) for number, line in numbered for reason in line.failures]
            left_out += sum((line.left_out for line in parsed), Counter())
    faults.raise_all()
    digests = text.hexdigest(), trees.hexdigest()
    return ShardReport(parser_digest(parser), shard.size, *digests, lines, sentences, failures, left_out)


def parse_sent(
    shard: Shard, blocks: list[list[bytes]], first_line: int, parser: LineParser
) -> tuple[bytes, ShardReport]:
    """Returns the trees of a shard whose lines were sent here, and its report: see :func:`parse_blocks`."""
    trees = io.BytesIO()
    report = parse_blocks(shard, blocks, parser, first_line, trees)
    return trees.getvalue(), report


def parse_shard_alone(shard: Shard, parser: LineParser) -> ShardReport:
    """Parses a shard and writes its files, unless it is finished: see :func:`parse_blocks`.

    The lines before it are counted, for errors, and not parsed. Raises DiskFullError on a full disk.
    """
    if (report := finished_report(shard, parser_digest(parser))) is not None:
        return report
    [before] = count_lines_before(shard.text, shard.starts()[:1])
    with shard.new_trees() as file:
        report = parse_blocks(shard, shard.blocks(), parser, before + 1, file)
    shard.finish(report)
    return report


def parser_digest(parser: LineParser) -> str:
    """Returns a name for all that decides the trees of a text."""
    return parser.digest("shards", parser.options.on_parse_error)


def finished_report(shard: Shard, parser: str) -> ShardReport | None:
    """Returns the report of a shard; None if it is missing, damaged, or of other lines or another parser."""
    report = read_report(shard.trees)
    if report is None or (report.parser, report.text_bytes) != (parser, shard.size):
        return None
    digest = hashlib.sha256()
    for block in shard.blocks():
        digest.update(b"".join(block))
    is_whole = digest.hexdigest() == report.text_sha256 and shard.trees.is_file()
    return report if is_whole and file_sha256(shard.trees) == report.trees_sha256 else None


def read_report(trees: Path) -> ShardReport | None:
    """Returns the contents of the marker beside a file of trees; None if it is missing or damaged."""
    with contextlib.suppress(CorruptFileError, TypeError):
        return ShardReport(**read_json(trees.with_suffix(".json")))
    return None


@dataclass(frozen=True)
class ParsedCorpus:
    """The result of parsing a text."""

    lines: int
    sentences: int
    failed: dict[int, int]  # how many sentences have a flat tree, by number of the line, from 1
    shards: list[tuple[Path, ShardReport]]  # the files of the trees, one forest a line, and their reports, in order
    parsed: int  # how many sentences were parsed in this run


def parse_corpus(
    text: str | os.PathLike,
    folder: str | os.PathLike,
    options: ParserOptions,
    *,
    pool: ProcessPool | None = None,
    cache: str | os.PathLike | None = None,
) -> ParsedCorpus:
    """Parses a text file; each line becomes a forest.

    The finished shards in ``folder`` of an earlier run, of the same lines by the same parser, are kept. The trees are
    the same for any number of processes, and however often a run was stopped. The processes of ``pool`` parse, by
    default this one; texts share ``cache``, the folder of a :class:`~tree_fairseq.parsing.batches.ParseCache`. Raises
    TooManyParseFailuresError if more sentences failed than ``options.max_parse_failures`` allows, ParserError if the
    parser failed, WorkerDiedError if a process was killed, and InputError if a line cannot be read.
    """
    started, text = time.monotonic(), Path(text)
    parser = LineParser(options, cache=cache)
    shards = shards_of(text, folder)
    *before, lines = count_lines_before(text, [*(shard.starts()[0] for shard in shards), text.stat().st_size])
    digest = parser_digest(parser)
    reports = {shard: report for shard in shards if (report := finished_report(shard, digest)) is not None}
    missing = [shard for shard in shards if shard not in reports]
    logger.info("%s: %d lines, %d of %d shards to parse", text.name, lines, len(missing), len(shards))

    def failures(shard: Shard) -> list[tuple[int, str]]:
        return [(before[shard.index] + line, reason) for line, reason in reports[shard].failures]

    failed = Counter(line for shard in reports for line, _ in failures(shard))
    works = (
        (partial(outcome_or_error, partial(parse_sent, shard, [*shard.blocks()], before[shard.index] + 1)), shard)
        for shard in missing
    )
    limit, faults = options.max_parse_failures, FaultyLines()
    with progress_bar(text.name, lines, "lines") as bar:
        bar.update(sum(report.lines for report in reports.values()))
        for shard, sent in _results(works, parser, pool, f"parsed {text}", cache):
            if isinstance(sent, InputError):
                faults.add(sent)
                continue
            trees, report = sent
            with shard.new_trees() as file:
                file.write(trees)
            shard.finish(report)
            reports[shard] = report
            bar.update(report.lines)
            for line, reason in failures(shard):
                logger.warning("%s:%d: flat tree for a sentence that could not be parsed: %s", text, line, reason)
                failed[line] += 1
            # Where a line may hold several sentences, a share of them is known in the end only.
            if isinstance(limit, int) or options.ssplit == "none":
                check_failures(limit, sum(failed.values()), lines, sorted(failed), str(text), folder)
    faults.raise_all()
    if left_out := sum((Counter(report.left_out) for report in reports.values()), Counter()):
        logger.info("%s: left out, as no words: %s", text.name, left_out_message(left_out))
    sentences = sum(report.sentences for report in reports.values())
    parsed, seconds = sum(reports[shard].sentences for shard in missing), time.monotonic() - started
    message = "%s: %d sentences on %d lines, %d parsed, %d lines with a flat tree, %.1f s, %.0f sentences/s"
    logger.info(message, text.name, sentences, lines, parsed, len(failed), seconds, parsed / seconds)
    check_failures(limit, sum(failed.values()), sentences, sorted(failed), str(text), folder)
    trees = [(shard.trees, reports[shard]) for shard in shards]
    return ParsedCorpus(lines, sentences, dict(sorted(failed.items())), trees, parsed)


def parser_labels(options: ParserOptions, pool: ProcessPool) -> tuple[list[str], list[str]]:
    """Returns all labels of a parser, and those that can stand directly above words (see :class:`LineParser`).

    An expensive parser answers in a process of the pool, where its models are loaded.
    """
    [(_, labels)] = _results([(LineParser.labels, None)], LineParser(options), pool, "named the labels")
    return labels


def _results(
    works: Iterable[tuple[Callable[[LineParser], Any], Any]],
    parser: LineParser,
    pool: ProcessPool | None,
    name: str,
    cache: str | os.PathLike | None = None,
) -> Iterator[tuple[Any, Any]]:
    """Calls functions of a parser, each given with its context; yields the context and the result of each.

    Processes of the pool do the work if they can import the parser. One alone does not pay for a cheap parser.
    """
    options = parser.options
    factory, is_expensive, _ = registered_parser(options.name)
    pays = pool is not None and (is_expensive or pool.is_remote or pool.workers > 1)
    if pool is not None and pool.workers and pays and factory.__module__ != "__main__":
        calls = (((options, factory.__module__, cache, work), context) for work, context in works)
        yield from pool.stream(work_in_process, calls, name, parsing_devices(options, pool.workers))
    else:
        yield from ((context, work(parser)) for work, context in works)


def parsing_devices(options: ParserOptions, workers: int) -> list[str]:
    """Returns the device of each parsing process: every GPU that the parser can use, or the CPU for all workers."""
    if options.device != "auto":
        return [options.device] * (workers if options.device == "cpu" else 1)
    return registered_parser(options.name).devices() or ["cpu"] * workers


_kept: tuple[Any, LineParser] | None = None


def work_in_process(call: tuple[ParserOptions, str, Any, Callable[[LineParser], Any]]) -> Any:
    """Calls a function of a parser in a process of the pool.

    A call has the options of the parser, the module that registers it, the folder of its cache and the function. The
    process keeps its parser until another one is asked for.
    """
    global _kept
    options, module, cache, work = call
    try:
        if _kept is None or _kept[0] != (options, cache):
            # The memory of the old models is freed before new ones are loaded.
            _kept = None
            gc.collect()
            importlib.import_module(module)
            _kept = (options, cache), LineParser(options.replace(device=own_device()), cache=cache)
        return work(_kept[1])
    except TreeFairseqError:
        raise
    except Exception as error:
        raise ParserError(f"a parsing process failed:\n{traceback.format_exc()}") from error
