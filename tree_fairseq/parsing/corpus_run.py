"""Makes the shards of one rank, from lines to files.

The sentences that share a batch must not depend on the number of processes or on where an earlier run was killed,
because the last digits of a parser's scores, and so now and then a tree, depend on them. So every distinct sentence
belongs to the first shard that has it, each shard's own sentences are cut into batches, and a batch goes to the cache
as a whole. Only sentences that the cache lacks are parsed.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from tree_fairseq.parsing.cache import ParseCache, SeenKeys
from tree_fairseq.parsing.line_parser import LineParser, ParsedLine, PreparedLine
from tree_fairseq.parsing.parsers import check_failures
from tree_fairseq.parsing.requests import Answers, Failure, Request, text_batches
from tree_fairseq.support.progress import Patience, progress_bar
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.trees.text import read_lines

logger = logging.getLogger(__name__)

Answer = Callable[[Iterable[Request]], Iterator[tuple[Request, Any]]]
"""Answers requests, in any order."""

_POLL_SECONDS = 0.5


class Progress:
    """A bar with the speed and the time that is left for this process's lines of a file; its ``with`` block ends it."""

    def __init__(self, path: Path, lines: int, shown: bool = True):
        self.parsed_sentences = 0
        self.known_sentences = 0
        self._path = path
        self._opened = time.monotonic()
        self._started: float | None = None
        # Until its sentences are counted, a line is taken for one.
        self._bar = progress_bar(path.name, lines, "sentences", shown)

    def planned(self, lines: int, sentences: int, known: int) -> None:
        """Counts the sentences of some lines; the known ones need not be parsed."""
        self._bar.total += sentences - lines
        self.known_sentences += known
        self._started = self._started or time.monotonic()
        self._bar.update(known)

    def skipped(self, lines: int) -> None:
        """Counts lines that an earlier run has finished."""
        self._bar.update(lines)

    def parsed(self, sentences: int) -> None:
        """Counts sentences that were parsed."""
        self.parsed_sentences += sentences
        self._bar.update(sentences)

    def done(self, lines: int, sentences: int) -> None:
        """Counts lines that were parsed without a plan."""
        self._started = self._started or self._opened
        self.planned(lines, sentences, 0)
        self.parsed(sentences)

    def sentences_per_second(self) -> float:
        """Returns the speed since the first lines were planned."""
        seconds = time.monotonic() - self._started if self._started is not None else 0.0
        return self.parsed_sentences / seconds if seconds > 0 else 0.0

    def log(self, lines: int, sentences: int, flat_lines: int) -> None:
        """Logs the counts of the whole file, and the speed of this process."""
        logger.info(
            "%s: %d sentences on %d lines, %d parsed, %d known, %d lines with a flat tree, %.1f s, %.0f sentences/s",
            *(self._path.name, sentences, lines, self.parsed_sentences, self.known_sentences, flat_lines),
            *(time.monotonic() - self._opened, self.sentences_per_second()),
        )

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.close()


@dataclass(frozen=True)
class ShardReport:
    """Counts and sha256 of a finished shard; ``failed_lines`` are numbered from 1 in the whole file."""

    lines: int
    sentences: int
    failed_lines: list[int]
    failed_sentences: int
    digest: str

    @classmethod
    def of(cls, lines: Sequence[ParsedLine], first_line: int, digest: str = "") -> ShardReport:
        """Counts lines, the first of which has the given number."""
        failed = [number for number, line in enumerate(lines, start=first_line) if line.failed]
        sentences, failures = sum(line.sentences for line in lines), sum(line.failed for line in lines)
        return cls(len(lines), sentences, failed, failures, digest)


class Receiver(Protocol):
    """Receives the parsed lines of each shard: a folder of shards, or something else in its place.

    Sentences that failed in an earlier attempt at the same ``run`` are not tried again.
    """

    run: str

    def is_finished(self, shard: int) -> bool:
        """Returns whether the lines of a shard are not needed, as an earlier attempt has made it."""

    def write(self, shard: int, first_line: int, lines: Sequence[ParsedLine]) -> None:
        """Takes the lines of a shard."""


@dataclass(frozen=True)
class CorpusJob:
    """A text file of so many lines, of which rank ``rank`` of ``world_size`` makes every ``world_size``-th shard."""

    input: Path
    lines: int
    shard_lines: int
    rank: int = 0
    world_size: int = 1

    def blocks(self) -> Iterator[tuple[int, int, list[str]]]:
        """Yields number, first line number and lines of each shard, the last of which may be shorter."""
        shard, lines = 0, iter(read_lines(self.input))
        while block := list(islice(lines, self.shard_lines)):
            yield shard, shard * self.shard_lines + 1, block
            shard += 1

    def is_mine(self, shard: int) -> bool:
        """Returns whether this rank makes a shard."""
        return shard % self.world_size == self.rank

    def own_lines(self) -> int:
        """Returns the number of lines in this rank's shards."""
        starts = range(self.rank * self.shard_lines, self.lines, self.world_size * self.shard_lines)
        return sum(min(self.shard_lines, self.lines - start) for start in starts)


def run_lines(job: CorpusJob, folder: Receiver, answer: Answer, progress: Progress) -> None:
    """Makes all missing shards of this rank without a cache: for parsers that cost no more than reading."""

    def requests() -> Iterator[Request]:
        for shard, first_line, lines in filter(lambda block: job.is_mine(block[0]), job.blocks()):
            if folder.is_finished(shard):
                progress.skipped(len(lines))
            else:
                yield Request("lines", (lines, first_line, str(job.input)), (shard, first_line))

    for request, written in answer(requests()):
        shard, first_line = request.context
        folder.write(shard, first_line, written)
        progress.done(len(written), sum(line.sentences for line in written))


@dataclass
class _OpenShard:
    """A shard whose sentences are being parsed."""

    number: int
    lines: list[PreparedLine]
    texts: list[str]
    answers: dict[str, str | Failure] = field(default_factory=dict)
    awaited: int = 0


@dataclass
class SentenceRun:
    """Parses shards through the cache, sentence by sentence."""

    job: CorpusJob
    parser: LineParser
    cache: ParseCache
    folder: Receiver
    answer: Answer
    progress: Progress

    def __post_init__(self) -> None:
        self._keys = self.parser.parse_keys()
        self._deferred: list[_OpenShard] = []
        self._failed = 0

    def run(self) -> None:
        """Makes all missing shards of this rank."""
        with contextlib.closing(SeenKeys()) as seen:
            self._parse(seen)
        if self.progress.parsed_sentences and self.parser.needs_labels(self.cache):
            # The models are loaded there and need not be loaded here.
            [(_, labels)] = self.answer([Request("labels", None)])
            self.parser.note_labels(labels, self.cache)

    def _parse(self, seen: SeenKeys) -> None:
        for request, answers in self.answer(self._requests(seen)):
            shard = request.context
            self._keep(shard, dict(zip_equal(request.payload, answers)))
            shard.awaited -= 1
            if not shard.awaited:
                self._settle(shard)
        patience = Patience()
        while self._deferred:
            # Other ranks are parsing sentences of these shards.
            self._settle()
            if self._deferred:
                number = self._deferred[0].number
                waiting = f"shard {number:06d} of {self.job.input} waits for sentences of another rank"
                patience.watch((len(self._deferred), self.cache.state()), lambda: waiting)
                time.sleep(_POLL_SECONDS)

    def _requests(self, seen: SeenKeys) -> Iterator[Request]:
        """Yields the batches to be parsed, shard by shard, and finishes the shards that need none."""
        path = self.job.input
        for number, first_line, lines in self.job.blocks():
            prepared = [self.parser.prepare(line, index, path) for index, line in enumerate(lines, start=first_line)]
            texts = list(dict.fromkeys(text for line in prepared for text in line.texts))
            keys = {text: self._keys.key(text) for text in texts}
            new = seen.add(list(keys.values()))
            own = [text for text in texts if keys[text] in new]
            if not self.job.is_mine(number):
                continue
            # The sentences of a finished shard are in the cache: the shard was written after them.
            if self.folder.is_finished(number):
                self.progress.skipped(len(lines))
            else:
                yield from self._shard_requests(_OpenShard(number, prepared, texts), own)

    def _shard_requests(self, shard: _OpenShard, own: list[str]) -> Iterator[Request]:
        self._look_up(shard)
        sentences = sum(len(line.texts) for line in shard.lines)
        own_missing = sum(text not in shard.answers for text in own)
        self.progress.planned(len(shard.lines), sentences, sentences - own_missing)
        batches = text_batches(own, self.parser.options.batch_size)
        batches = [missing for batch in batches if (missing := [text for text in batch if text not in shard.answers])]
        shard.awaited = len(batches)
        if not batches:
            self._settle(shard)
        for batch in batches:
            yield Request(self.parser.kind, batch, shard)

    def _keep(self, shard: _OpenShard, answers: Answers) -> None:
        """Keeps the answers to a batch, and stops the run if too many sentences have failed."""
        path, options = self.job.input, self.parser.options
        failures = {text: answer.reason for text, answer in answers.items() if isinstance(answer, Failure)}
        kept = {self._keys.key(text): answer if isinstance(answer, str) else None for text, answer in answers.items()}
        self.cache.put_many(kept, self.folder.run)
        shard.answers.update(answers)
        self.progress.parsed(len(answers))
        for line in shard.lines if failures else ():
            self.parser.stop_at_failure(line, shard.answers, path)
            for reason in (failures[text] for text in line.texts if text in failures):
                self._failed += 1
                message = "%s:%d: flat tree for a sentence that could not be parsed: %s"
                logger.warning(message, path, line.number, reason.splitlines()[0])
        # Where a line may hold several sentences, a share of the sentences is known in the end only.
        limit = options.max_parse_failures
        if isinstance(limit, int) or options.ssplit == "none":
            failed = {text for text, answer in shard.answers.items() if isinstance(answer, Failure)}
            lines = (line.number for line in shard.lines if not failed.isdisjoint(line.texts))
            check_failures(limit, self._failed, self.job.lines, lines, str(path))

    def _look_up(self, shard: _OpenShard) -> None:
        """Takes the answers that a shard still needs from the cache, as far as it has them."""
        missing = {self._keys.key(text): text for text in shard.texts if text not in shard.answers}
        found = self.cache.get_many(missing, self.folder.run) if missing else {}
        for key, answer in found.items():
            shard.answers[missing[key]] = Failure("the parser failed on it before") if answer is None else answer

    def _settle(self, *shards: _OpenShard) -> None:
        """Writes those of these and the deferred shards whose sentences are all known, and defers the others."""
        waiting, self._deferred = [*self._deferred, *shards], []
        for shard in waiting:
            self._look_up(shard)
            if all(text in shard.answers for text in shard.texts):
                path, cache = self.job.input, self.cache.path
                lines = [self.parser.finish(line, shard.answers, path, cache) for line in shard.lines]
                self.folder.write(shard.number, shard.lines[0].number, lines)
            else:
                self._deferred.append(shard)


class CacheRun(SentenceRun):
    """Parses the sentences of its shards into the cache, and leaves the lines to somebody else."""

    def _settle(self, *shards: _OpenShard) -> None:
        """Does nothing: what a batch gave is in the cache."""
