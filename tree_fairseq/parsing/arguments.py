"""The flags about trees, the same for every command that parses, and the limit on sentences that fail."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence

from tree_fairseq.errors import TooManyParseFailuresError
from tree_fairseq.parsing.parsers import ParserOptions, parser_names

_LINES_SHOWN = 20


def allowed_failures(limit: int | float, sentences: int) -> int:
    """Returns how many of so many sentences may fail: the limit, or its share (a float), but then at least one."""
    return limit if isinstance(limit, int) else max(1, int(limit * sentences)) if limit > 0 else 0


def check_failures(limit: int | float, failed: int, sentences: int, failed_lines: Sequence[int], path: str) -> None:
    """Raises TooManyParseFailuresError, with the numbers of the lines, if too many sentences failed."""
    allowed = allowed_failures(limit, sentences)
    if failed <= allowed:
        return
    shown = ", ".join(map(str, failed_lines[:_LINES_SHOWN])) + (", ..." if len(failed_lines) > _LINES_SHOWN else "")
    raise TooManyParseFailuresError(
        f"{path}: {failed} of {sentences} sentences could not be parsed, --max-parse-failures allows {allowed}. "
        f"Lines: {shown}. With a higher limit the same command ends at once, as their flat trees are kept"
    )


def add_parser_arguments(
    group: argparse._ArgumentGroup | argparse.ArgumentParser,
    default_parser: str | None = "stanza",
    default_lang: str | None = "en",
) -> None:
    """Adds the flags; without ``default_lang``, the names of the files give the language."""
    parsers = f": {', '.join(parser_names())}, or MODULE:PARSER for a parser of your own"
    for option in dataclasses.fields(ParserOptions):
        flag, text = option.metadata["flag"], option.metadata["help"]
        if isinstance(option.default, bool):
            group.add_argument(flag, action="store_true", help=text)
            continue
        default = {"name": default_parser, "lang": default_lang}.get(option.name, option.default)
        shown = "as the files are named" if option.name == "lang" and default is None else default
        text += (parsers if option.name == "name" else "") + (f" (default: {shown})" if shown is not None else "")
        group.add_argument(flag, default=default, help=text, **option.metadata["argument"])
    text = "folder that keeps parses, to be shared between runs (default: in the destination)"
    group.add_argument("--parse-cache", metavar="DIR", help=text)


def options_from_arguments(arguments: argparse.Namespace) -> ParserOptions:
    """Returns the options that were given on a command line; raises ValueError for one that is out of range."""
    values = {}
    for option in dataclasses.fields(ParserOptions):
        value = getattr(arguments, option.metadata["flag"][2:].replace("-", "_"))
        # A switch turns its option into the opposite.
        values[option.name] = value != option.default if isinstance(option.default, bool) else value
    return ParserOptions(**values)
