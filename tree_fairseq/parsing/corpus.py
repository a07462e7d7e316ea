"""Parses a text file: in shards that are complete or absent, over processes, GPUs and machines, always resumable."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tree_fairseq.parsing.cache import ParseCache
from tree_fairseq.parsing.corpus_run import (
    Answer,
    CacheRun,
    CorpusJob,
    Progress,
    Receiver,
    SentenceRun,
    ShardReport,
    run_lines,
)
from tree_fairseq.parsing.line_parser import LineParser, ParsedLine, answer_in_process
from tree_fairseq.parsing.parsers import ParserOptions, check_failures, registered_parser
from tree_fairseq.parsing.ranks import LeadingRank, SharedText
from tree_fairseq.parsing.requests import Request
from tree_fairseq.parsing.shards import ShardFolder
from tree_fairseq.support.files import file_sha256
from tree_fairseq.support.processes import ProcessPool
from tree_fairseq.support.progress import Patience
from tree_fairseq.trees.text import count_lines

logger = logging.getLogger(__name__)

SHARD_LINES = 2000
"""Lines of a shard: enough for batches of similar length, few enough that little waits for a shard to be finished."""
# A file is cut into so many shards, so that every rank has work, unless they would be larger than that, or smaller than
# a batch.
_SHARDS = 32
_FEWEST_LINES = 100
# Where the lines are wanted in order, fewer ranks share the work, and batches of more similar sentences are quicker.
_FEWEST_IN_ORDER = 500
# From this number of lines on, processes are started also for parsers that cost no more than reading.
_LINES_WORTH_PROCESSES = 20_000
_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class CorpusSummary:
    """The result of parsing a corpus.

    Args:
        failed: numbers, from 1, of the lines with a sentence that could not be parsed and has a flat tree.
        shards: the files with the forests, in order.
        parsed: sentences that this process had parsed in this run, with the speed from the first request on.
    """

    lines: int
    sentences: int
    failed: list[int]
    shards: list[Path]
    parsed: int
    sentences_per_second: float


def parse_corpus(
    input: str | os.PathLike,
    output_dir: str | os.PathLike,
    options: ParserOptions,
    *,
    workers: int = 1,
    pool: ProcessPool | None = None,
    shard_lines: int | None = None,
    cache: ParseCache | str | os.PathLike | None = None,
    progress: bool = True,
    rank: int = 0,
    world_size: int = 1,
    ranks: LeadingRank | None = None,
) -> CorpusSummary:
    """Parses a text file; each line becomes a forest.

    Shards that an earlier run of the same input and parser has finished are kept, and no sentence is parsed twice. The
    files are the same, byte for byte, for any number of processes and ranks and however often the run was interrupted.

    Args:
        output_dir: folder for the shards ``NNNNNN.brackets``.
        workers: parsing processes where there is no GPU; 0 parses in this process.
        shard_lines: lines of a shard; by default :func:`lines_of_shards` of the file.
        pool: processes in place of ``workers`` new ones, for several files, so that models are loaded once.
        cache: a parse cache or its folder; by default ``cache`` in ``output_dir``. All ranks have to share it.
        rank: number of this process among ``world_size`` that share the work, started by torchrun for instance. Rank 0
            waits for the others and sums up everything; others sum up the shards that exist.
        ranks: ranks that help this one, which alone writes the shards; needs the folder of a cache.

    Raises:
        TooManyParseFailuresError: more sentences failed than ``options.max_parse_failures`` allows.
        ParserError: the parser is not available, or failed.
        WorkerDiedError: a parsing process was killed.
        InputError: a line cannot be read.
    """
    lines = count_lines(input)
    job = CorpusJob(Path(input), lines, shard_lines or lines_of_shards(lines), rank, world_size)
    output_dir = Path(output_dir)
    parser = LineParser(options)
    with contextlib.ExitStack() as stack:
        if not registered_parser(options.name).expensive:
            cache = None
        elif not isinstance(cache, ParseCache):
            cache = stack.enter_context(ParseCache(output_dir / "cache" if cache is None else cache))
        if pool is None:
            pool = stack.enter_context(ProcessPool(workers))
        source = {
            "input": file_sha256(job.input),
            "identity": parser.identity(),
            "on_parse_error": options.on_parse_error,
            "shard_lines": job.shard_lines,
        }
        folder = ShardFolder(output_dir, source, -(-job.lines // job.shard_lines))
        folder.open(job.input, job.rank, cache)
        missing = [shard for shard in folder.missing() if job.is_mine(shard)]
        logger.info("%s: %d lines, %d of %d shards to make", job.input, job.lines, len(missing), folder.count)
        if missing and cache is not None and ranks is not None:
            _share(job, options, pool, cache.path.parent, folder.run, ranks)
        done = stack.enter_context(Progress(job.input, job.own_lines(), progress and bool(missing)))
        if missing:
            _parse(job, parser, pool, cache, folder, done)
    if job.rank == 0:
        _await_others(job, folder, cache)
    sentences, failed = _sum_up(job, options, folder.reports(), done)
    shards = [folder.path(shard) for shard in range(folder.count)]
    return CorpusSummary(job.lines, sentences, failed, shards, done.parsed_sentences, done.sentences_per_second())


def _await_others(job: CorpusJob, folder: ShardFolder, cache: ParseCache | None) -> None:
    """Waits until the other ranks have made all shards."""
    patience = Patience()
    while missing := folder.missing():
        waiting = f"rank {missing[0] % job.world_size} has not finished shard {missing[0]:06d} of {job.input}"
        state = None if cache is None else cache.state()
        patience.watch((missing, state), lambda: f"{waiting}; {len(missing)} shards are missing")
        time.sleep(_POLL_SECONDS)


def lines_of_shards(lines: int, fewest: int = _FEWEST_LINES) -> int:
    """Returns the lines of a shard of a file of so many lines; ``fewest`` if the file is short.

    They do not depend on the number of ranks, since the sentences that share a batch depend on them, and now and then a
    tree with it: another number of ranks continues the same shards.
    """
    return min(SHARD_LINES, max(fewest, -(-lines // _SHARDS)))


def _sum_up(
    job: CorpusJob, options: ParserOptions, reports: Sequence[ShardReport], progress: Progress
) -> tuple[int, list[int]]:
    """Logs and returns the number of sentences and the lines with flat trees; raises an error if these are too many."""
    sentences = sum(report.sentences for report in reports)
    failed = [line for report in reports for line in report.failed_lines]
    progress.log(job.lines, sentences, len(failed))
    if job.rank == 0:
        failures = sum(report.failed_sentences for report in reports)
        check_failures(options.max_parse_failures, failures, sentences, failed, str(job.input))
    return sentences, failed


class _InOrder:
    """Takes the place of a folder of shards: the lines go to a function, as soon as all earlier ones have."""

    def __init__(self, run: str, take: Callable[[Sequence[ParsedLine], int], None]):
        self.run = run
        self.reports: list[ShardReport] = []
        self._take = take
        self._next_line = 1
        self._waiting: dict[int, Sequence[ParsedLine]] = {}

    def is_finished(self, shard: int) -> bool:
        return False

    def write(self, shard: int, first_line: int, lines: Sequence[ParsedLine]) -> None:
        self._waiting[first_line] = lines
        while ready := self._waiting.pop(self._next_line, None):
            self._take(ready, self._next_line)
            self.reports.append(ShardReport.of(ready, self._next_line))
            self._next_line += len(ready)


def parse_in_order(
    input: str | os.PathLike,
    options: ParserOptions,
    take: Callable[[Sequence[ParsedLine], int], None],
    *,
    pool: ProcessPool,
    cache: str | os.PathLike,
    run: str,
    ranks: LeadingRank | None = None,
) -> None:
    """Parses a text file as :func:`parse_corpus`, and writes nothing but the parse cache in the folder ``cache``.

    Some lines at a time go to ``take``, with the number of the first, in order. The parses of earlier
    calls are in the cache. Sentences that failed in this ``run`` are not tried again, those of other runs are. Other
    ``ranks`` help.
    """
    lines = count_lines(input)
    job = CorpusJob(Path(input), lines, lines_of_shards(lines, _FEWEST_IN_ORDER))
    if ranks is not None and registered_parser(options.name).expensive:
        _share(job, options, pool, cache, run, ranks)
    parser, taken = LineParser(options), _InOrder(run, take)
    logger.info("%s: %d lines", job.input.name, job.lines)
    keeping = ParseCache(cache) if registered_parser(options.name).expensive else contextlib.nullcontext()
    with Progress(job.input, job.lines) as progress, keeping as store:
        _parse(job, parser, pool, store, taken, progress)
    _sum_up(job, options, taken.reports, progress)


def _share(
    job: CorpusJob, options: ParserOptions, pool: ProcessPool, cache: str | os.PathLike, run: str, ranks: LeadingRank
) -> None:
    ranks.share(SharedText(job, options, os.fspath(cache), run), lambda text: fill_cache(text, pool))


def fill_cache(text: SharedText, pool: ProcessPool) -> None:
    """Parses the shards of the job's rank; their sentences are then in the cache, and nothing else is written."""
    job = text.job
    with Progress(job.input, job.own_lines()) as progress, ParseCache(text.cache) as cache:
        parser = LineParser(text.options)
        CacheRun(job, parser, cache, _InOrder(text.run, _drop), _where_answered(parser, pool, job), progress).run()


def _drop(lines: Sequence[ParsedLine], first_line: int) -> None:
    """Takes no lines: a run that fills the cache finishes none."""


def _parse(
    job: CorpusJob,
    parser: LineParser,
    pool: ProcessPool,
    cache: ParseCache | None,
    folder: Receiver,
    progress: Progress,
) -> None:
    """Makes all missing shards of this rank; without a cache, for parsers that cost no more than reading."""
    answer = _where_answered(parser, pool, job)
    if cache is None:
        run_lines(job, folder, answer, progress)
    else:
        SentenceRun(job, parser, cache, folder, answer, progress).run()


def _where_answered(parser: LineParser, pool: ProcessPool, job: CorpusJob) -> Answer:
    """Returns a function that answers requests; in the pool, if its processes can import the parser and pay off."""
    options, found = parser.options, registered_parser(parser.options.name)
    module = found.factory.__module__
    is_small = pool.workers == 1 or job.lines < _LINES_WORTH_PROCESSES
    if pool.workers < 1 or module == "__main__" or (is_small and not found.expensive):
        return lambda requests: ((request, parser.answer(request.kind, request.payload)) for request in requests)

    def answer(requests: Iterable[Request]) -> Iterator[tuple[Request, Any]]:
        calls = (((options, module, request.kind, request.payload), request) for request in requests)
        return pool.stream(answer_in_process, calls, f"parsed {job.input}", devices(options, pool.workers))

    return answer


def devices(options: ParserOptions, workers: int) -> list[str]:
    """Returns the device of each parsing process: this rank's share of the parser's devices, or the CPU."""
    if options.device != "auto":
        return [options.device] * (workers if options.device == "cpu" else 1)
    found = registered_parser(options.name).devices()
    local_rank, local_size = int(os.environ.get("LOCAL_RANK", 0)), int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    # Ranks of one machine share its GPUs; where there are more ranks than GPUs, several ranks have the same one.
    mine = found[local_rank::local_size] or ([found[local_rank % len(found)]] if found else [])
    return mine or ["cpu"] * workers
