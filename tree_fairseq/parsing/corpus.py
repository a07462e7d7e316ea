"""Parse a whole text file: in shards that are whole or not there, over processes, GPUs and machines, resumable at any moment.

python -m tree_fairseq.parsing.corpus train.en train.brackets --tree-parser stanza --tree-lang en --workers 4
torchrun --nproc-per-node 4 -m tree_fairseq.parsing.corpus train.en train.brackets --tree-parser stanza
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tree_fairseq.errors import TreeFairseqError
from tree_fairseq.parsing.arguments import add_parser_arguments, check_failures, options_from_arguments
from tree_fairseq.parsing.cache import ParseCache
from tree_fairseq.parsing.corpus_run import Answer, CorpusJob, LineRun, Progress, SentenceRun
from tree_fairseq.parsing.line_parser import LineParser, answer_in_process
from tree_fairseq.parsing.parsers import ParserOptions, factory_module, is_expensive
from tree_fairseq.parsing.processes import ProcessPool
from tree_fairseq.parsing.requests import Request
from tree_fairseq.parsing.shards import ShardFolder, file_digest, join_shards
from tree_fairseq.trees.text import count_lines

logger = logging.getLogger(__name__)

SHARD_LINES = 2000
"""Lines of a shard: enough for batches of similar length, few enough that little waits for a shard to be finished."""
_LINES_WORTH_PROCESSES = 20_000
"""From so many lines on, processes are started also for parsers that cost no more than reading."""
_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class CorpusSummary:
    """What became of a corpus.

    Args:
        lines: lines of the input.
        sentences: sentences in them.
        failed: numbers, from 1, of the lines with a sentence that could not be parsed and has a flat tree.
        shards: the files with the forests, in order.
        parsed: sentences that this process had parsed in this run; the others were known already.
        sentences_per_second: of those, from the first request on, the start of the processes included.
    """

    lines: int
    sentences: int
    failed: list[int]
    shards: list[Path] = field(default_factory=list)
    parsed: int = 0
    sentences_per_second: float = 0.0


def parse_corpus(
    input: str | os.PathLike,
    output_dir: str | os.PathLike,
    options: ParserOptions,
    *,
    workers: int = 1,
    pool: ProcessPool | None = None,
    shard_lines: int = SHARD_LINES,
    cache: ParseCache | str | os.PathLike | None = None,
    progress: bool = True,
    rank: int = 0,
    world_size: int = 1,
) -> CorpusSummary:
    """Parse a text file, one line a forest.

    Shards that an earlier run of the same input and parser has finished are kept, and no sentence that it parsed is parsed again; the files are the
    same, byte for byte, for any number of processes and ranks and however often the run was interrupted.

    Args:
        input: a text file.
        output_dir: where the shards ``NNNNNN.brackets`` go.
        options: the parser, and how lines are read.
        workers: parsing processes where there is no GPU; 0 parses in this process.
        pool: processes to use in place of such ``workers``; a command that parses several files shares one pool, so that models are loaded once.
        shard_lines: lines of a shard.
        cache: a parse cache or its folder; by default ``cache`` in ``output_dir``. Ranks on several machines have to share it.
        progress: show a bar.
        rank: this process's number among ``world_size``.
        world_size: how many processes, started by torchrun for instance, share the work.

    Returns:
        the summary: of everything on rank 0, which waits for the others; elsewhere of the shards that are there.

    Raises:
        TooManyParseFailuresError: more sentences failed than ``options.max_parse_failures`` allows.
        ParserError: the parser cannot be had or a parsing process died.
        InputError: a line cannot be read.
    """
    job = CorpusJob(Path(input), count_lines(input), shard_lines, rank, world_size)
    owned = not isinstance(cache, ParseCache)
    store = None
    if is_expensive(options.name):
        store = ParseCache(cache if cache is not None else Path(output_dir) / "cache") if owned else cache
    try:
        with contextlib.nullcontext(pool) if pool is not None else ProcessPool(workers) as processes:
            return _parse_corpus(job, Path(output_dir), options, processes, store, progress)
    finally:
        if owned and store is not None:
            store.close()


def _parse_corpus(
    job: CorpusJob, output_dir: Path, options: ParserOptions, pool: ProcessPool, cache: ParseCache | None, shown: bool
) -> CorpusSummary:
    parser = LineParser(options, cache=cache)
    source = {
        "input": file_digest(job.input),
        "identity": parser.identity(),
        "on_parse_error": options.on_parse_error,
        "shard_lines": job.shard_lines,
    }
    folder = ShardFolder(output_dir, source, -(-job.lines // job.shard_lines))
    folder.open(job.rank, None if cache is None else lambda run: cache.get_fact(f"run {run}") is not None)
    if job.rank == 0:
        if cache is not None:
            cache.put_fact(f"run {folder.run}", str(job.input))
        folder.begin()
    missing = [shard for shard in folder.missing() if job.is_mine(shard)]
    started = time.monotonic()
    logger.info("%s: %d lines, %d of %d shards to make", job.input, job.lines, len(missing), folder.count)
    mine = sum(
        min(job.shard_lines, job.lines - shard * job.shard_lines) for shard in range(folder.count) if job.is_mine(shard)
    )
    with Progress(job.input.name, mine, shown and bool(missing)) as progress:
        if missing:
            answer = _where_answered(options, parser, pool, job)
            if cache is None:
                LineRun(job, folder, answer, progress).run()
            else:
                SentenceRun(job, parser, cache, folder, answer, progress).run()
                if progress.parsed_sentences and parser.needs_labels():
                    # The models are loaded there and need not be loaded here.
                    [(_, labels)] = answer([Request("labels", None)])
                    parser.note_labels(labels)
    if job.rank == 0:
        _await_shards(folder)
    summary = _summary(job, folder, progress)
    logger.info(
        "%s: %d sentences on %d lines, %d parsed, %d known, %d lines with a flat tree, %.1f s",
        job.input,
        summary.sentences,
        summary.lines,
        progress.parsed_sentences,
        progress.known_sentences,
        len(summary.failed),
        time.monotonic() - started,
    )
    if job.rank == 0:
        failed = sum(report.failed_sentences for report in folder.reports())
        check_failures(options.max_parse_failures, failed, summary.sentences, summary.failed, str(job.input))
    return summary


def _where_answered(options: ParserOptions, parser: LineParser, pool: ProcessPool, job: CorpusJob) -> Answer:
    """Returns what answers requests: the pool where that is worth its start and its processes can import the parser."""
    module = factory_module(options.name)
    is_cheap = not is_expensive(options.name)
    if (
        pool.workers < 1
        or module == "__main__"
        or (is_cheap and (pool.workers == 1 or job.lines < _LINES_WORTH_PROCESSES))
    ):
        return lambda requests: ((request, parser.answer(request.kind, request.payload)) for request in requests)

    def answer(requests: Iterable[Request]) -> Iterator[tuple[Request, Any]]:
        calls = (((options, module, request.kind, request.payload), request) for request in requests)
        return pool.stream(answer_in_process, calls, f"parsed {job.input}", devices(options, pool.workers))

    return answer


def devices(options: ParserOptions, workers: int) -> list[str]:
    """The device of each parsing process: every GPU of this rank once, where there are any, otherwise ``workers`` times the CPU."""
    if options.device != "auto":
        return [options.device] * (workers if options.device == "cpu" else 1)
    if options.name != "stanza":
        return ["cpu"] * workers
    from tree_fairseq.parsing.stanza_parser import visible_gpus

    gpus = visible_gpus()
    local_rank, local_size = int(os.environ.get("LOCAL_RANK", 0)), int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    # Ranks of one machine share its GPUs; where there are more ranks than GPUs, several ranks have the same one.
    mine = gpus[local_rank::local_size] or ([gpus[local_rank % len(gpus)]] if gpus else [])
    return mine or ["cpu"] * workers


def _await_shards(folder: ShardFolder) -> None:
    """Wait until other ranks have finished theirs."""
    while folder.missing():
        time.sleep(_POLL_SECONDS)


def _summary(job: CorpusJob, folder: ShardFolder, progress: Progress) -> CorpusSummary:
    reports = folder.reports()
    return CorpusSummary(
        lines=job.lines,
        sentences=sum(report.sentences for report in reports),
        failed=[line for report in reports for line in report.failed_lines],
        shards=[folder.path(shard) for shard in range(folder.count)],
        parsed=progress.parsed_sentences,
        sentences_per_second=progress.sentences_per_second(),
    )


def _argument_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tree_fairseq.parsing.corpus",
        description="Parse a text file, one sentence (or several) a line, into bracketed trees, one forest a line. An interrupted run is continued by "
        "the same command. Under torchrun the ranks share the shards and rank 0 joins them; all ranks have to see the same folders.",
    )
    parser.add_argument(
        "input", help="text file, UTF-8, tokenised (split into subwords or not) unless --tree-tokenize stanza is given"
    )
    parser.add_argument("output", help="file for the forests")
    parser.add_argument("--shards-dir", metavar="DIR", help="folder for the shards (default: OUTPUT.shards)")
    parser.add_argument(
        "--shard-lines", type=int, default=SHARD_LINES, metavar="N", help="lines of a shard (default: %(default)s)"
    )
    parser.add_argument(
        "--workers",
        type=int,
        default=1,
        metavar="N",
        help="parsing processes where there is no GPU, each of one thread (default: 1)",
    )
    parser.add_argument("--no-progress-bar", action="store_true", help="only log")
    add_parser_arguments(parser.add_argument_group("trees"))
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    given = _argument_parser().parse_args(arguments)
    rank, world_size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    output = Path(given.output)
    shards_dir = Path(given.shards_dir or f"{output}.shards")
    try:
        options = options_from_arguments(given)
        summary = parse_corpus(
            given.input,
            shards_dir,
            options,
            workers=given.workers,
            shard_lines=given.shard_lines,
            cache=given.parse_cache,
            progress=not given.no_progress_bar,
            rank=rank,
            world_size=world_size,
        )
        if rank == 0:
            join_shards(summary.shards, output)
            logger.info(
                "%s: %d lines written, %.0f sentences per second", output, summary.lines, summary.sentences_per_second
            )
    except (TreeFairseqError, OSError, ValueError) as error:
        logger.error("%s", error)
        return 1
    return 0


if __name__ == "__main__":
    # Importing fairseq has set a handler up already, which shows warnings only.
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s | %(levelname)s | %(name)s | %(message)s", stream=sys.stderr, force=True
    )
    sys.exit(main())
