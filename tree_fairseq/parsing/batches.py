"""Batches of sentences for a parser, halved where they fail, and its answers as strings, which a cache keeps."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any, TypeVar, Union

from tree_fairseq.errors import DataFolderError, DiskFullError, TreeFairseqError, TreeFormatError
from tree_fairseq.parsing.interface import ParsedText
from tree_fairseq.trees.bracket import read_forest, write_forest
from tree_fairseq.trees.tree import forest_leaves

logger = logging.getLogger(__name__)

Item = TypeVar("Item")
Result = TypeVar("Result")

# A batch holds at most this many words per sentence of the batch size, padding included. So a line of 2,000 words
# shares its batch with few others.
_WORDS = 64


@dataclass(frozen=True)
class Failure:
    """Takes the place of a parser's result, and of the answer to a text, where the parser failed."""

    reason: str


Answers = Mapping[str, Union[str, Failure]]  # the answer to each text


def text_batches(texts: Sequence[str], batch_size: int) -> list[list[str]]:
    """Cuts texts into batches of similar numbers of words, the longest first.

    The batches depend on the texts and their order alone, since the last digits of a parser's scores may depend on the
    other sentences of a batch. A batch has at most ``batch_size`` texts, and fewer where they are long.
    """
    batches: list[list[str]] = []
    words_with_padding = longest = 0
    for text in sorted(texts, key=lambda text: -text.count(" ")):
        if not batches or len(batches[-1]) == batch_size or words_with_padding + longest > _WORDS * batch_size:
            batches.append([])
            words_with_padding, longest = 0, text.count(" ") + 1
        batches[-1].append(text)
        words_with_padding += longest
    return batches


def parse_recovering(
    parse: Callable[[list[Item]], Sequence[Result | None]],
    items: Sequence[Item],
    accept: Callable[[Item, Result], bool],
) -> list[Result | Failure]:
    """Parses a batch; if that fails, parses halves of it, down to single items.

    An exception (also for lack of memory), a wrong number of results, and a result that does not belong to its item
    count as failures of the batch. Only items that fail on their own are given up. Results are never trusted to be in
    order: ``accept`` compares each with its item. A TreeFairseqError concerns all items and is raised.
    """
    results: list[Result | Failure] = [Failure("the parser gave no tree")] * len(items)
    pending = [list(range(len(items)))] if items else []
    while pending:
        batch = pending.pop()
        found, reason = _attempt(parse, [items[position] for position in batch])
        left = []
        for position, result in zip(batch, found if len(found) == len(batch) else repeat(None)):
            if result is not None and accept(items[position], result):
                results[position] = result
                continue
            left.append(position)
            if result is not None:
                reason = reason or "the leaves of the tree are not the words of the sentence"
        if not left:
            continue
        if len(batch) == 1:
            results[batch[0]] = Failure(reason) if reason else results[batch[0]]
        elif len(left) < len(batch):
            # Most succeeded: each of the others is tried alone at once.
            pending.extend([position] for position in reversed(left))
        else:
            middle = (len(batch) + 1) // 2
            pending.extend([batch[middle:], batch[:middle]])
    return results


def _attempt(parse: Callable, items: list) -> tuple[Sequence, str]:
    """Returns the results of one call, or no results and the reason."""
    try:
        found = parse(items)
        return found, f"{len(found)} trees for {len(items)} sentences" if len(found) != len(items) else ""
    except TreeFairseqError:
        raise
    except Exception as error:
        # Only the text is kept: the error holds the frames, and they hold the memory that is needed now.
        reason = f"{type(error).__name__}: {error}"
    halves = "; trying halves of it" if len(items) > 1 else ""
    logger.warning("a batch of %d failed (%s)%s", len(items), reason.splitlines()[0], halves)
    return [], reason


def covers(line: str, parsed: ParsedText) -> bool:
    """Returns whether the leaves are the text of the line, with nothing left out but white space."""
    if forest_leaves(parsed.forest) != ["_".join(line[start:end].split()) for start, end in parsed.offsets]:
        return False
    end_before = 0
    for start, end in [*parsed.offsets, (len(line), len(line))]:
        if start < end_before or line[end_before:start].strip():
            return False
        end_before = end
    return True


def decode_text(answer: str) -> ParsedText | None:
    """Returns the parse that an answer about raw text encodes; None if the answer is not one of ours."""
    try:
        values: dict[str, Any] = json.loads(answer)
        return ParsedText(read_forest(values["trees"]), [(int(start), int(end)) for start, end in values["offsets"]])
    except (ValueError, KeyError, TypeError):
        return None


def parse_texts(parser: Any, kind: str, texts: list[str]) -> list[str | Failure]:
    """Gives a parser one batch and returns its answers.

    A text of the kind ``words`` is the words of a sentence, joined by blanks, and answered by its tree in brackets; one
    of the kind ``text`` is a line of raw text, and answered by a string for :func:`decode_text`.
    """

    if kind == "text":
        lines: list[Any] = parse_recovering(parser.parse_text, texts, covers)
        write = partial(json.dumps, ensure_ascii=False, separators=(",", ":"))
        return _written(lines, lambda line: write({"trees": write_forest(line.forest), "offsets": line.offsets}))
    sentences = [text.split(" ") for text in texts]
    trees: list[Any] = parse_recovering(parser.parse, sentences, lambda words, tree: tree.leaves() == words)
    return _written(trees, lambda tree: write_forest((tree,)))


def _written(results: Iterable[Any], encode: Callable[[Any], str]) -> list[str | Failure]:
    answers = []
    for result in results:
        try:
            answers.append(result if isinstance(result, Failure) else encode(result))
        except TreeFormatError as error:
            answers.append(Failure(f"its tree cannot be written: {error}"))
    return answers


FILE_NAME = "parses.sqlite"

_BUSY_SECONDS = 120
_TABLE = "CREATE TABLE IF NOT EXISTS parses (key BLOB PRIMARY KEY, value TEXT) WITHOUT ROWID"


class ParseCache:
    """The answers of parsers to single texts, which the processes of one machine share.

    Each call is one transaction, so a process that is killed leaves a batch as a whole or nothing of it. Answers belong
    to ``parser``, a name for all that decides them. Raises DiskFullError if the disk is full, and DataFolderError if
    the folder cannot be made or written, or the file is damaged.
    """

    def __init__(self, folder: str | os.PathLike, parser: str):
        self.path = Path(folder) / FILE_NAME
        self._prefix = hashlib.sha256(parser.encode())
        with self._explained():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)
            # A power cut may lose the last batches, which are parsed again.
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.execute(_TABLE)

    def get(self, texts: Iterable[str]) -> dict[str, str]:
        """Returns the known answers by text."""
        query = "SELECT value FROM parses WHERE key = ?"
        with self._explained():
            rows = {text: self._connection.execute(query, [self._key(text)]).fetchone() for text in texts}
        return {text: row[0] for text, row in rows.items() if row}

    def put(self, answers: Mapping[str, str]) -> None:
        """Keeps answers by text, all or none of them; a known answer is not replaced."""
        rows = [(self._key(text), answer) for text, answer in answers.items()]
        with self._explained(), self._connection:
            # IMMEDIATE takes the write lock at once, so that waiting for it cannot fail halfway.
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("INSERT OR IGNORE INTO parses VALUES (?, ?)", rows)

    def _key(self, text: str) -> bytes:
        digest = self._prefix.copy()
        digest.update(text.encode("utf-8", "surrogatepass"))
        return digest.digest()[:16]

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Replaces errors of sqlite and of folders by one that names the file and the way out."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            kind = DiskFullError if "full" in str(error) or "disk I/O" in str(error) else DataFolderError
            message = f"the parse cache {self.path} cannot be used: {error}. Make room, delete it (its sentences are "
            raise kind(message + "parsed again), or choose another place with --parse-cache DIR") from error
