"""Ranks of torchrun that share the parsing of a command: rank 0 builds, and all of them fill its parse cache.

Rank 0 announces each text that it needs parsed, by a file in a folder that all ranks see, on whatever machine they are.
Every rank then parses its shards of that text. When all have, rank 0 finds every sentence in the cache, and goes on as
if it were alone, so its files have the same bytes. A rank that is stopped or late is waited for. Where one was killed,
torchrun ends the others of its machine, those of other machines say that they wait, and the same command goes on with
the parses that are in the cache.
"""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Callable

from tree_fairseq.errors import InputError
from tree_fairseq.parsing.cache import ParseCache
from tree_fairseq.parsing.corpus_run import CorpusJob
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.support.files import file_sha256, read_json, remove_folder, write_json
from tree_fairseq.support.progress import WARN_SECONDS, Patience

logger = logging.getLogger(__name__)

_ATTEMPT = "attempt.json"
_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class SharedText:
    """A text to be parsed by all ranks.

    Attributes:
        job: the text and its shards
        options: of the parser
        cache: folder of the parse cache
        run: its name in the cache
    """

    job: CorpusJob
    options: ParserOptions
    cache: str
    run: str


Fill = Callable[[SharedText], None]
"""Parses the shards of the job's own rank, into the cache."""


class LeadingRank:
    """Rank 0, in a ``with`` block; ``folder``, which may be that of a killed attempt, is removed in the end.

    ``command`` tells this work from any other; ranks of another command wait for their own.
    """

    def __init__(self, folder: Path, command: str, world_size: int):
        self.world_size = world_size
        self._folder, self._command = folder, command
        self._attempt, self._texts = uuid.uuid4().hex, 0

    def __enter__(self) -> LeadingRank:
        self._folder.mkdir(parents=True, exist_ok=True)
        # Ranks that came first may wait on a killed attempt. They end when they find none, so there always is one.
        for text in self._folder.glob("text-*.json"):
            text.unlink()
        write_json(self._folder / _ATTEMPT, {"attempt": self._attempt, "command": self._command})
        return self

    def __exit__(self, *error: object) -> None:
        remove_folder(self._folder)

    def share(self, text: SharedText, fill: Fill) -> None:
        """Has a text parsed by all ranks, and waits until every sentence is in the cache."""
        self._texts += 1
        job = CorpusJob(Path(os.path.abspath(text.job.input)), text.job.lines, text.job.shard_lines, 0, self.world_size)
        text = SharedText(job, text.options, os.path.abspath(text.cache), text.run)
        write_json(self._folder / f"text-{self._texts}.json", {**_to_json(text), "sha256": file_sha256(job.input)})
        fill(text)
        with ParseCache(text.cache) as cache:
            self._await(f"done-{self._texts}", lambda rank: f"{_shards_of(job, rank)} of {job.input}", cache.state)

    def dismiss(self) -> None:
        """Lets the others end; waits for those that have not come yet, as they would wait for this rank."""
        self._await("hello", lambda rank: "its start", lambda: None)
        remove_folder(self._folder)

    def _await(self, kind: str, work: Callable[[int], str], state: Callable[[], object]) -> None:
        """Waits for a file of this attempt from each of the other ranks; the state changes while they are at work."""
        waiting = set(range(1, self.world_size))
        patience = Patience()
        while waiting := {rank for rank in waiting if not self._has(f"{kind}-{rank}")}:
            rank = min(waiting)
            owed = f"rank {rank} of {self.world_size} has not finished {work(rank)}"
            patience.watch((len(waiting), state()), lambda: owed)
            time.sleep(_POLL_SECONDS)

    def _has(self, name: str) -> bool:
        return read_json(self._folder / f"{name}.json") == self._attempt


def help_parsing(folder: Path, command: str, rank: int, world_size: int, fill: Fill) -> None:
    """Parses the shards of this rank, of everything that rank 0 announces, until that needs no more parses.

    Raises what the parser raises, and InputError if rank 0 works at another command.
    """
    for attempt, name, found in _announced(folder, command, rank, world_size):
        text = _from_json(found, rank)
        try:
            if file_sha256(text.job.input) != found["sha256"]:
                raise InputError(f"rank {rank} sees another text than rank 0", text.job.input)
            logger.info("rank %d: %s, %d of %d lines", rank, text.job.input, text.job.own_lines(), text.job.lines)
            fill(text)
        except Exception:
            if _read(folder / _ATTEMPT, "attempt") == attempt:
                raise
            # Rank 0 has started anew, or has failed and says why.
            continue
        _note(folder / f"done-{name}-{rank}.json", attempt)
    logger.info("rank %d: rank 0 has all parses", rank)


def _announced(folder: Path, command: str, rank: int, world_size: int) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yields the attempt, number and contents of each announced text, until rank 0 has removed the folder.

    A killed attempt with another number of ranks has other shares, so its texts are left alone.
    """
    attempt, number, patience = None, 1, Patience()
    while True:
        state = read_json(folder / _ATTEMPT)
        if state is None and attempt is not None:
            return
        if state is not None and state["command"] == command:
            if state["attempt"] != attempt:
                attempt, number = state["attempt"], 1
                _note(folder / f"hello-{rank}.json", attempt)
            found = read_json(folder / f"text-{number}.json")
            if found is not None and found["job"]["world_size"] == world_size:
                yield state["attempt"], number, found
                number, patience = number + 1, Patience()
                continue
        if attempt is None:
            if state is not None and patience.seconds > WARN_SECONDS:
                raise InputError(
                    "rank 0 builds this folder from other files or options",
                    hint="Give all ranks the same command, and the same files on every machine.",
                )
            patience.watch(None, lambda: f"rank {rank} waits for rank 0")
        time.sleep(_POLL_SECONDS)


def _note(path: Path, attempt: str) -> None:
    try:
        write_json(path, attempt)
    except FileNotFoundError:
        pass  # rank 0 has ended, or begins anew


def _read(path: Path, name: str) -> Any:
    return (read_json(path) or {}).get(name)


def _to_json(text: SharedText) -> dict[str, Any]:
    return {
        **asdict(text),
        "job": {**asdict(text.job), "input": str(text.job.input)},
        "options": text.options.to_json(),
    }


def _from_json(found: dict[str, Any], rank: int) -> SharedText:
    job = CorpusJob(**{**found["job"], "input": Path(found["job"]["input"]), "rank": rank})
    return SharedText(job, ParserOptions.from_json(found["options"]), found["cache"], found["run"])


def _shards_of(job: CorpusJob, rank: int) -> str:
    shards = [str(shard) for shard in range(rank, -(-job.lines // job.shard_lines), job.world_size)]
    return f"shards {', '.join(shards[:4])}{', ...' if len(shards) > 4 else ''} (of {job.shard_lines} lines each)"
