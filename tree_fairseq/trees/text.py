"""Lines and tokens of text files, split where fairseq splits them, and the check of a whole file before work begins."""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tree_fairseq import errors
from tree_fairseq.support.progress import progress_bar

Result = TypeVar("Result")

CHUNK_LINES = 512

# Python's text mode ends a line at "\r", and str.splitlines at all of these, so different readers count different
# numbers of lines in a file that contains one.
_LINE_BREAK = re.compile("[\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]")
_CONTROL_NAMES = (
    "LINE FEED,VERTICAL TAB,FORM FEED,CARRIAGE RETURN,FILE SEPARATOR,GROUP SEPARATOR,RECORD SEPARATOR,UNIT SEPARATOR,"
    "NEXT LINE"
).split(",")
_CONTROLS = dict(zip("\n\x0b\x0c\r\x1c\x1d\x1e\x1f\x85", _CONTROL_NAMES))
# The same characters as bytes of UTF-8. If a block has one of these bytes, the slow reader checks its lines.
_SUSPECT_BYTES = np.isin(np.arange(256), list(b"\x0b\x0c\x1c\x1d\x1e"))
_SUSPECT_CHARACTERS = (b"\xc2\x85", b"\xe2\x80\xa8", b"\xe2\x80\xa9")
_SUSPECT_RETURN = re.compile(rb"\r(?!\n|\Z)")
_BLOCK = 1 << 20
_TO_ESCAPE = re.compile(r"[\s\\]")
_ESCAPED = re.compile(r"\\(?:u([0-9a-f]{4})|(.))")
_ESCAPES = {" ": r"\s", "\\": r"\\"}


def tokens(line: str) -> list[str]:
    """The tokens of a line, split at any run of Unicode whitespace like ``fairseq.tokenizer.tokenize_line`` does."""
    return line.split()


def character_name(character: str) -> str:
    """The name of a character for messages: ``U+00A0 NO-BREAK SPACE``."""
    name = _CONTROLS.get(character) or unicodedata.name(character, "")
    return f"U+{ord(character):04X} {name}".rstrip()


def shorten(text: str) -> str:
    """The beginning of a text, long enough to recognise it in a message."""
    return text if len(text) <= 40 else text[:39] + "…"


def escape_label(label: str) -> str:
    """A label as one nonempty word without blanks; the inverse is `unescape_label`."""
    return _TO_ESCAPE.sub(lambda found: _ESCAPES.get(found[0]) or f"\\u{ord(found[0]):04x}", label) or r"\e"


def unescape_label(word: str) -> str:
    """The label of a word that `escape_label` returned."""
    letters = {"s": " ", "e": ""}
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else letters.get(found[2], found[2]), word)


class FaultyLines:
    """Collects the errors that are raised in ``with`` blocks about lines, so that all faulty lines can be named."""

    def __init__(self) -> None:
        self.errors: list[errors.InputError] = []

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if not isinstance(error, errors.FaultyLinesError) and (
            not isinstance(error, errors.InputError) or error.line is None
        ):
            return False
        self.add(error)
        return True

    def add(self, error: errors.InputError) -> None:
        """Adds the error of a line, or of several."""
        self.errors += error.errors if isinstance(error, errors.FaultyLinesError) else [error]

    def raise_all(self) -> None:
        """Raises the error of the only faulty line, or FaultyLinesError."""
        if self.errors:
            raise errors.FaultyLinesError.of(self.errors, len(self.errors))

    def without_errors(self, outcomes: Iterable[Result | errors.InputError]) -> Iterator[Result]:
        """Adds the errors among the outcomes of `outcome_or_error`, and yields the other ones."""
        for outcome in outcomes:
            if isinstance(outcome, errors.InputError):
                self.add(outcome)
            else:
                yield outcome


def outcome_or_error(function: Callable[[Any], Result], argument: Any) -> Result | errors.InputError:
    """Calls a function in another process; returns its result, or what it raises about lines, as these come first."""
    try:
        return function(argument)
    except errors.InputError as error:
        return error


def check_line(line: str, path: str | os.PathLike | None = None, line_number: int | None = None) -> str:
    """Returns the line; raises LineBreakError for the first character that any reader treats as a line break."""
    if found := _LINE_BREAK.search(line):
        hint = (
            "Some programs end the line here and others do not, so parallel lines would no longer match. Replace the"
            " character by a blank."
        )
        message = f"{character_name(found.group())} inside a line"
        raise errors.LineBreakError(message, path, line_number, found.start() + 1, hint)
    return line


def read_lines(path: str | os.PathLike) -> Iterator[str]:
    r"""Yields the lines of a UTF-8 file, without their line breaks (``\n`` or ``\r\n``).

    Raises LineBreakError if a line has a character that other readers treat as a line break (a lone carriage return,
    U+2028, a form feed, ...), TextFormatError if it is not valid UTF-8, and FaultyLinesError if there are several such
    lines; the lines behind the first one are checked, and not yielded.
    """
    with open(path, "rb") as file:
        yield from decode_lines(file, path)


def decode_lines(raw_lines: Iterable[bytes], path: str | os.PathLike, first: int = 1) -> Iterator[str]:
    """Yields lines like `read_lines`, from lines of bytes; messages name ``path``, and count from ``first``."""
    shown, faulty = list[errors.InputError](), 0
    for number, raw in enumerate(raw_lines, first):
        try:
            line = check_line(decode_line(raw, path, number), path, number)
        except errors.InputError as error:
            shown += [error] * (len(shown) < errors.SHOWN)  # a file in another encoding may have millions
            faulty += 1
        if not faulty:
            yield line
    if shown:
        raise errors.FaultyLinesError.of(shown, faulty)


def decode_line(raw: bytes, path: str | os.PathLike, number: int) -> str:
    """Returns a line of UTF-8 without its line end, and without the byte order mark that a file may begin with.

    TextFormatError names the first byte that is wrong.
    """
    raw = raw.removesuffix(b"\n").removesuffix(b"\r")
    raw = raw.removeprefix(BOM_UTF8) if number == 1 else raw
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        column = len(raw[: error.start].decode("utf-8")) + 1
        is_gzip = number == 1 and raw.startswith(b"\x1f\x8b")
        hint = "Unpack the file with gunzip." if is_gzip else "Convert the file to UTF-8, for instance with iconv."
        message = f"byte 0x{raw[error.start]:02x} is not valid UTF-8 ({error.reason})"
        raise errors.TextFormatError(message, path, number, column, hint) from None


def count_lines_before(text: Path, positions: Iterable[int]) -> list[int]:
    """Returns how many lines of a text begin before each of some ascending positions."""
    counts, newlines, place = [], 0, 0
    with open(text, "rb") as file:
        for position in positions:
            while place < position - 1 and (block := file.read(min(_BLOCK, position - 1 - place))):
                newlines += block.count(b"\n")
                place += len(block)
            counts.append(newlines + 1 if position else 0)
    return counts


class Chunk(NamedTuple):
    """Consecutive lines: the bytes ``start`` to ``end`` of a file; the number of the first line is ``first_line``."""

    start: int
    end: int
    first_line: int


@dataclass(frozen=True)
class TextInput:
    """A file that was read and has one sentence a line; ``size`` is in bytes."""

    path: Path
    lines: int
    size: int
    sha256: str
    chunks: tuple[Chunk, ...]  # they have ``CHUNK_LINES`` lines each, for any number of workers


def inspect_text(path: str | os.PathLike) -> TextInput:
    """Counts the lines of a file, computes its digest and checks that every program sees the same lines.

    Raises InputError without such a file, and LineBreakError and TextFormatError like `read_lines`.
    """
    path = Path(path)
    digest = hashlib.sha256()
    lines, position, offsets, rest = 0, 0, [0], b""
    try:
        file = open(path, "rb")
    except FileNotFoundError:
        raise errors.missing(path) from None
    with file, progress_bar(f"read {path.name}", path.stat().st_size, "B") as bar:
        while block := file.read(_BLOCK):
            bar.update(len(block))
            digest.update(block)
            if not position and not rest and block.startswith(BOM_UTF8):
                offsets = [len(BOM_UTF8)]
            block = rest + block
            end = block.rfind(b"\n") + 1
            whole, rest = block[:end], block[end:]
            _check_block(whole, path)
            newlines = np.flatnonzero(np.frombuffer(whole, np.uint8) == 10)
            # The newlines in this block that end the last line of a chunk.
            first = (-lines - 1) % CHUNK_LINES
            offsets += (newlines[first::CHUNK_LINES] + 1 + position).tolist()
            lines += len(newlines)
            position += end
    _check_block(rest, path)
    size = position + len(rest)
    lines += bool(rest)
    if offsets[-1] != size:
        offsets.append(size)
    chunks = tuple(map(Chunk, offsets, offsets[1:], range(1, lines + 1, CHUNK_LINES)))
    return TextInput(path, lines, size, digest.hexdigest(), chunks)


def write_text(path: Path, lines: Iterable[str]) -> TextInput:
    """Writes lines to a file, and inspects it."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)
    return inspect_text(path)


def _check_block(block: bytes, path: Path) -> None:
    """Calls the strict reader, which reports the place, if these bytes may contain something that it refuses."""
    try:
        block.decode("utf-8")
        suspect = bool(_SUSPECT_BYTES[np.frombuffer(block, np.uint8)].any())
        suspect = suspect or any(character in block for character in _SUSPECT_CHARACTERS)
        suspect = suspect or b"\r" in block and _SUSPECT_RETURN.search(block) is not None
    except UnicodeDecodeError:
        suspect = True
    if suspect:
        for _ in read_lines(path):
            pass


def chunk_bytes(path: Path, chunk: Chunk) -> bytes:
    r"""The lines of a chunk of an inspected file as UTF-8, each of which ends with ``\n``."""
    with open(path, "rb") as file:
        file.seek(chunk.start)
        data = file.read(chunk.end - chunk.start).replace(b"\r\n", b"\n")
    # The last line of a file may have no end.
    return data if data.endswith(b"\n") or not data else data.removesuffix(b"\r") + b"\n"


def chunk_lines(path: Path, chunk: Chunk) -> Iterator[tuple[int, str]]:
    """Yields the numbers and the lines of a chunk of an inspected file, without line ends."""
    for number, line in enumerate(chunk_bytes(path, chunk).split(b"\n")[:-1], start=chunk.first_line):
        yield number, line.decode("utf-8")


def require_parallel(files: Sequence[TextInput]) -> None:
    """Raises LineCountError where the longest file has a line without a counterpart, InputError for empty files."""
    if not files:
        return
    shortest = min(files, key=lambda file: file.lines)
    longest = max(files, key=lambda file: file.lines)
    if shortest.lines != longest.lines:
        raise errors.LineCountError(
            f"this line has no counterpart: the file has {longest.lines} lines, {shortest.path} has {shortest.lines}",
            longest.path,
            shortest.lines + 1,
            hint="Line n of every file of a split must belong together; nothing was parsed or written.",
        )
    if not shortest.lines:
        raise errors.InputError("the file is empty", shortest.path)
