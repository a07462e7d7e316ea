"""Parses a text on this machine, shard by shard in several processes, and keeps the shards that are finished."""

from __future__ import annotations

import functools
import gc
import importlib
import logging
import os
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tree_fairseq.errors import ParserError, TreeFairseqError
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions, check_failures, registered_parser
from tree_fairseq.parsing.shards import (
    Shard,
    ShardReport,
    count_lines_before,
    finished_report,
    parse_shard,
    parser_digest,
    shards_of,
)
from tree_fairseq.support.processes import ProcessPool, own_device
from tree_fairseq.support.progress import progress_bar

logger = logging.getLogger(__name__)

# From this number of lines on, processes pay for parsers that cost no more than reading.
_LINES_WORTH_PROCESSES = 20_000


@dataclass(frozen=True)
class ParsedCorpus:
    """The result of parsing a text.

    Attributes:
        failed: how many sentences have a flat tree, by number of the line, from 1
        shards: the files of the trees, one forest a line, and their reports, in order
        parsed: sentences that were parsed in this run
    """

    lines: int
    sentences: int
    failed: dict[int, int]
    shards: list[tuple[Path, ShardReport]]
    parsed: int
    seconds: float


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
    the same for any number of processes, and however often a run was stopped.

    Args:
        pool: processes that parse; by default this one does
        cache: folder of a cache of sentences, which texts share (:class:`~tree_fairseq.parsing.batches.ParseCache`)

    Raises:
        TooManyParseFailuresError: more sentences failed than ``options.max_parse_failures`` allows.
        ParserError: the parser is not available, or failed.
        WorkerDiedError: a parsing process was killed.
        InputError: a line cannot be read.
        DiskFullError: there is no room for the trees.
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
        """The lines of the text with flat trees, and the reasons."""
        return [(before[shard.index] + line, reason) for line, reason in reports[shard].failures]

    failed = Counter(line for shard in reports for line, _ in failures(shard))
    works = ((functools.partial(parse_shard, shard, first_line=before[shard.index] + 1), shard) for shard in missing)
    pays, limit = _pays_for_processes(options, pool, lines), options.max_parse_failures
    with progress_bar(text.name, lines, "lines") as bar:
        bar.update(sum(report.lines for report in reports.values()))
        for shard, report in _results(works, parser, pool if pays else None, cache, f"parsed {text}"):
            reports[shard] = report
            bar.update(report.lines)
            for line, reason in failures(shard):
                logger.warning("%s:%d: flat tree for a sentence that could not be parsed: %s", text, line, reason)
                failed[line] += 1
            # Where a line may hold several sentences, a share of them is known in the end only.
            if isinstance(limit, int) or options.ssplit == "none":
                check_failures(limit, sum(failed.values()), lines, sorted(failed), str(text))
    sentences = sum(report.sentences for report in reports.values())
    parsed, seconds = sum(reports[shard].sentences for shard in missing), time.monotonic() - started
    message = "%s: %d sentences on %d lines, %d parsed, %d lines with a flat tree, %.1f s, %.0f sentences/s"
    logger.info(message, text.name, sentences, lines, parsed, len(failed), seconds, parsed / seconds)
    check_failures(limit, sum(failed.values()), sentences, sorted(failed), str(text))
    trees = [(shard.trees, reports[shard]) for shard in shards]
    return ParsedCorpus(lines, sentences, dict(sorted(failed.items())), trees, parsed, seconds)


def parser_labels(options: ParserOptions, pool: ProcessPool) -> tuple[list[str], list[str]]:
    """Returns all labels of a parser, and those that can stand directly above words (see :class:`LineParser`).

    An expensive parser answers in a process of the pool, where its models are loaded.
    """
    pays = _pays_for_processes(options, pool, lines=0)
    [(_, labels)] = _results([(_labels, None)], LineParser(options), pool if pays else None, None, "named the labels")
    return labels


def _labels(parser: LineParser) -> tuple[list[str], list[str]]:
    return parser.inventory(), parser.tags()


def _pays_for_processes(options: ParserOptions, pool: ProcessPool | None, lines: int) -> bool:
    """Returns whether processes of a pool pay off, and can import the parser."""
    parser = registered_parser(options.name)
    if pool is None or pool.workers < 1 or parser.factory.__module__ == "__main__":
        return False
    return parser.expensive or (pool.workers > 1 and lines >= _LINES_WORTH_PROCESSES)


def _results(
    works: Iterable[tuple[Callable[[LineParser], Any], Any]],
    parser: LineParser,
    pool: ProcessPool | None,
    cache: str | os.PathLike | None,
    name: str,
) -> Iterator[tuple[Any, Any]]:
    """Calls functions of a parser, each given with its context; yields the context and the result of each."""
    if pool is None:
        yield from ((context, work(parser)) for work, context in works)
        return
    options = parser.options
    module = registered_parser(options.name).factory.__module__
    calls = (((options, module, cache, work), context) for work, context in works)
    yield from pool.stream(work_in_process, calls, name, parsing_devices(options, pool.workers))


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
