"""Lines and tokens of text files, split exactly where fairseq splits them."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator

from tree_fairseq.errors import LineBreakError, TextFormatError

# Python's text mode ends a line at "\r", and str.splitlines at all of these, so different readers count different
# numbers of lines in a file that contains one.
_LINE_BREAK = re.compile("[\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]")
_CONTROL_NAMES = {
    "\n": "LINE FEED",
    "\r": "CARRIAGE RETURN",
    "\x0b": "VERTICAL TAB",
    "\x0c": "FORM FEED",
    "\x1c": "FILE SEPARATOR",
    "\x1d": "GROUP SEPARATOR",
    "\x1e": "RECORD SEPARATOR",
    "\x1f": "UNIT SEPARATOR",
    "\x85": "NEXT LINE",
}
_BLOCK = 1 << 20


def tokens(line: str) -> list[str]:
    """The tokens of a line, split at any run of Unicode whitespace like ``fairseq.tokenizer.tokenize_line`` does."""
    return line.split()


def character_name(character: str) -> str:
    """The name of a character for messages: ``U+00A0 NO-BREAK SPACE``."""
    name = _CONTROL_NAMES.get(character) or unicodedata.name(character, "")
    return f"U+{ord(character):04X} {name}".rstrip()


def shorten(text: str) -> str:
    """The beginning of a text, long enough to recognise it in a message."""
    return text if len(text) <= 40 else text[:39] + "…"


def check_line(line: str, path: str | os.PathLike | None = None, line_number: int | None = None) -> str:
    """Returns the line if it contains no character that any reader treats as a line break.

    Raises:
        LineBreakError: with the place of the first such character
    """
    found = _LINE_BREAK.search(line)
    if found:
        raise LineBreakError(
            f"{character_name(found.group())} inside a line",
            path,
            line_number,
            found.start() + 1,
            "Some programs end the line here and others do not, so parallel lines would no longer match. Replace the"
            " character by a blank.",
        )
    return line


def read_lines(path: str | os.PathLike) -> Iterator[str]:
    r"""Yields the lines of a UTF-8 file, without their line breaks (``\n`` or ``\r\n``).

    Raises:
        LineBreakError: a line contains a character that other readers treat as a line break (a lone carriage return,
            U+2028, a form feed, ...)
        TextFormatError: a line is not valid UTF-8
        OSError: the file cannot be read
    """
    with open(path, "rb") as file:
        for number, raw in enumerate(file, start=1):
            raw = raw.removesuffix(b"\n").removesuffix(b"\r")
            try:
                line = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                column = len(raw[: error.start].decode("utf-8")) + 1
                hint = "Convert the file to UTF-8, for instance with iconv."
                message = f"byte 0x{raw[error.start]:02x} is not valid UTF-8 ({error.reason})"
                raise TextFormatError(message, path, number, column, hint) from None
            yield check_line(line, path, number)


def count_lines(path: str | os.PathLike) -> int:
    """The number of lines that `read_lines` would yield, counted in bytes without decoding or checking them."""
    count = 0
    last = b"\n"
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            count += block.count(b"\n")
            last = block[-1:]
    return count + (last != b"\n")
