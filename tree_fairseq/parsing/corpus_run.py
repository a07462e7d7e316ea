"""Makes the shards of one rank, from lines to files.

The sentences that share a batch must not depend on the number of processes or on where an earlier run was killed,
because the last digits of a parser's scores, and so now and then a tree, depend on them. So every distinct sentence
belongs to the first shard that has it, each shard's own sentences are cut into batches, and a batch goes to the cache
as a whole. Only sentences that the cache lacks are parsed.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tqdm import tqdm

from tree_fairseq.errors import LeafMismatchError
from tree_fairseq.parsing.arguments import allowed_failures, check_failures
from tree_fairseq.parsing.cache import ParseCache
from tree_fairseq.parsing.line_parser import LineParser, PreparedLine, WrittenLine
from tree_fairseq.parsing.requests import KINDS, Request
from tree_fairseq.parsing.shards import ShardFolder, cut
from tree_fairseq.trees.text import read_lines

logger = logging.getLogger(__name__)

Answer = Callable[[Iterable[Request]], Iterator[tuple[Request, Any]]]
"""Answers requests, in any order."""

_POLL_SECONDS = 0.5
_SECONDS_BETWEEN_LOG_LINES = 30


class Progress:
    """A progress bar with sentences per second and the time that is left, and the counts for the log.

    Args:
        name: of the file, shown before the bar.
        lines: number of lines of this process.
        shown: whether to draw a bar.
    """

    def __init__(self, name: str, lines: int, shown: bool):
        self.parsed_sentences = 0
        self.known_sentences = 0
        self._started: float | None = None
        # Until its sentences are counted, a line is taken for one. In a log file the bar is a line now and then.
        interval = 0.5 if sys.stderr.isatty() else _SECONDS_BETWEEN_LOG_LINES
        times = {"mininterval": interval, "maxinterval": 2 * interval, "smoothing": 0.05}
        self._bar = tqdm(total=lines, desc=name, unit="sent", disable=not shown, **times)

    def planned(self, lines: int, sentences: int, known: int) -> None:
        """Counts the sentences of a shard, some of which are known and need not be parsed."""
        if self._bar.total is not None:
            self._bar.total += sentences - lines
        self.known_sentences += known
        self._started = self._started or time.monotonic()
        self._bar.update(known)

    def skipped(self, lines: int) -> None:
        """Counts a shard that existed already."""
        self._bar.update(lines)

    def parsed(self, sentences: int) -> None:
        """Counts sentences that were parsed."""
        self.parsed_sentences += sentences
        self._bar.update(sentences)

    def sentences_per_second(self) -> float:
        """Returns the sentences parsed per second since the first shard was planned."""
        seconds = time.monotonic() - self._started if self._started is not None else 0.0
        return self.parsed_sentences / seconds if seconds > 0 else 0.0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.close()


@dataclass(frozen=True)
class CorpusJob:
    """The work of a run.

    Args:
        input: the text file.
        lines: number of its lines.
        shard_lines: number of lines of a shard.
        rank: this process among ``world_size``; it makes every ``world_size``-th shard.
        world_size: number of processes that share the work.
    """

    input: Path
    lines: int
    shard_lines: int
    rank: int = 0
    world_size: int = 1

    def blocks(self) -> Iterator[tuple[int, int, list[str]]]:
        """Yields number, first line number and lines of each shard."""
        for shard, lines in enumerate(cut(read_lines(self.input), self.shard_lines)):
            yield shard, shard * self.shard_lines + 1, lines

    def is_mine(self, shard: int) -> bool:
        """Returns whether this rank makes a shard."""
        return shard % self.world_size == self.rank

    def own_lines(self) -> int:
        """Returns the number of lines in this rank's shards."""
        starts = range(self.rank * self.shard_lines, self.lines, self.world_size * self.shard_lines)
        return sum(min(self.shard_lines, self.lines - start) for start in starts)


@dataclass
class _OpenShard:
    """A shard whose sentences are being parsed."""

    number: int
    lines: list[PreparedLine]
    texts: list[str]
    answers: dict[str, str | None] = field(default_factory=dict)
    awaited: int = 0


class SentenceRun:
    """Parses shards through the cache, sentence by sentence."""

    def __init__(
        self,
        job: CorpusJob,
        parser: LineParser,
        cache: ParseCache,
        folder: ShardFolder,
        answer: Answer,
        progress: Progress,
    ):
        self._job = job
        self._parser = parser
        self._cache = cache
        self._folder = folder
        self._answer = answer
        self._progress = progress
        self._keys = parser.parse_keys()
        self._seen: set[bytes] = set()
        self._deferred: list[_OpenShard] = []
        self._failed = 0

    def run(self) -> None:
        """Makes all missing shards of this rank."""
        for request, (answers, reasons) in self._answer(self._requests()):
            texts, shard = request.payload, request.context
            reasons = {texts[position]: reason for position, reason in reasons.items()}
            self._keep(shard, dict(zip(texts, answers, strict=True)), reasons)
            shard.awaited -= 1
            if not shard.awaited:
                self._settle(shard)
        while self._deferred:
            # Other ranks are parsing sentences of these shards.
            self._retry_deferred()
            if self._deferred:
                time.sleep(_POLL_SECONDS)

    def _requests(self) -> Iterator[Request]:
        """Yields the batches to be parsed, shard by shard, and finishes the shards that need none."""
        path = self._job.input
        for number, first_line, lines in self._job.blocks():
            prepared = [self._parser.prepare(line, index, path) for index, line in enumerate(lines, start=first_line)]
            texts = list(dict.fromkeys(text for line in prepared for text in line.texts))
            keys = {text: self._keys.key(text) for text in texts}
            own = [text for text in texts if keys[text] not in self._seen]
            self._seen.update(keys.values())
            if not self._job.is_mine(number):
                continue
            # The sentences of a finished shard are in the cache: the shard was written after them.
            if self._folder.report(number) is not None:
                self._progress.skipped(len(lines))
                continue
            yield from self._shard_requests(_OpenShard(number, prepared, texts), keys, own)

    def _shard_requests(self, shard: _OpenShard, keys: dict[str, bytes], own: list[str]) -> Iterator[Request]:
        known = self._cache.get_many(keys.values(), self._folder.run)
        shard.answers.update((text, known[key]) for text, key in keys.items() if key in known)
        sentences = sum(len(line.texts) for line in shard.lines)
        own_missing = sum(text not in shard.answers for text in own)
        self._progress.planned(len(shard.lines), sentences, sentences - own_missing)
        kind = self._parser.kind
        batches = KINDS[kind].batches(own, self._parser.options.batch_size)
        batches = [missing for batch in batches if (missing := [text for text in batch if text not in shard.answers])]
        shard.awaited = len(batches)
        if not batches:
            self._settle(shard)
        for batch in batches:
            yield Request(kind, batch, shard)

    def _keep(self, shard: _OpenShard, answers: dict[str, str | None], reasons: dict[str, str]) -> None:
        """Keeps the answers to a batch, and stops the run if too many sentences have failed."""
        path, options = self._job.input, self._parser.options
        self._cache.put_many({self._keys.key(text): answer for text, answer in answers.items()}, self._folder.run)
        shard.answers.update(answers)
        self._progress.parsed(len(answers))
        for line in shard.lines if reasons else ():
            self._parser.stop_at_failure(line, shard.answers, reasons, path)
            for text in line.texts:
                if text in reasons:
                    self._failed += 1
                    logger.warning(
                        "%s:%d: flat tree for a sentence that could not be parsed: %s",
                        *(path, line.number, reasons[text].splitlines()[0]),
                    )
        # Where a line may hold several sentences, a share of the sentences is known in the end only.
        limit = options.max_parse_failures
        if not isinstance(limit, int) and options.ssplit != "none":
            return
        if self._failed > allowed_failures(limit, self._job.lines):
            lines = [
                line.number for line in shard.lines if any(shard.answers.get(text, "") is None for text in line.texts)
            ]
            check_failures(limit, self._failed, self._job.lines, lines, str(path))

    def _settle(self, shard: _OpenShard) -> None:
        """Writes a shard if all its sentences are known, and otherwise defers it."""
        self._deferred.append(shard)
        if self._is_complete(shard):
            self._retry_deferred()

    def _is_complete(self, shard: _OpenShard) -> bool:
        missing = {self._keys.key(text): text for text in shard.texts if text not in shard.answers}
        if missing:
            found = self._cache.get_many(missing, self._folder.run)
            shard.answers.update((missing[key], answer) for key, answer in found.items())
        return all(text in shard.answers for text in shard.texts)

    def _retry_deferred(self) -> None:
        waiting, self._deferred = self._deferred, []
        for shard in waiting:
            if self._is_complete(shard):
                self._write(shard)
            else:
                self._deferred.append(shard)

    def _write(self, shard: _OpenShard) -> None:
        finished = []
        for line in shard.lines:
            written = self._parser.finish_at(line, shard.answers, {}, self._job.input)
            if written is None:
                raise LeafMismatchError(
                    f"{self._job.input}:{line.number}: the tree in the parse cache {self._cache.path} is not that of "
                    "the sentence; delete the cache"
                )
            finished.append(written)
        _write_shard(self._folder, shard.number, shard.lines[0].number, finished)


class LineRun:
    """Parses shards line by line, without a cache: for parsers that cost no more than reading."""

    def __init__(self, job: CorpusJob, folder: ShardFolder, answer: Answer, progress: Progress):
        self._job = job
        self._folder = folder
        self._answer = answer
        self._progress = progress

    def run(self) -> None:
        """Makes all missing shards of this rank."""
        for request, written in self._answer(self._requests()):
            shard, first_line = request.context
            _write_shard(self._folder, shard, first_line, written)
            sentences = sum(line.sentences for line in written)
            self._progress.planned(len(written), sentences, 0)
            self._progress.parsed(sentences)

    def _requests(self) -> Iterator[Request]:
        for shard, first_line, lines in self._job.blocks():
            if not self._job.is_mine(shard):
                continue
            if self._folder.report(shard) is None:
                yield Request("lines", (lines, first_line, str(self._job.input)), (shard, first_line))
            else:
                self._progress.skipped(len(lines))


def _write_shard(folder: ShardFolder, shard: int, first_line: int, written: list[WrittenLine]) -> None:
    failed_lines = [number for number, line in enumerate(written, start=first_line) if line.failed]
    sentences, failed = sum(line.sentences for line in written), sum(line.failed for line in written)
    folder.write(shard, [line.written for line in written], sentences, failed_lines, failed)
