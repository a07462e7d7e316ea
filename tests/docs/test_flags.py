"""Every flag in a table of README or of a page exists, and takes the value, or no value, that it is shown with."""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.docs.pages import ROOT, name_of, pages
from tests.docs.parsers import known_parsers

# A word that stands for a value, such as FILE, N or SOURCE,TARGET.
PLACEHOLDER = re.compile(r"[A-Z][A-Z_0-9]*([,:.=+][A-Z][A-Z_0-9]*)*|.*…")
_ROW = re.compile(r"^\s*\|(.*)\|\s*$")
_BAR = re.compile(r"(?<!\\)\|")


class ShownFlag(NamedTuple):
    """A flag as a table shows it, with its alternative values."""

    line: int
    header: str
    name: str
    values: list[str]
    names_a_switch: bool  # whether the table is one of flags: a flag without a value is then one that takes none


def flags_of(text: str) -> Iterator[ShownFlag]:
    """The flags in the columns of tables whose header is ``flag``, or ``here`` beside the flag of another program."""
    headers: list[str] = []
    in_block = False
    for number, line in enumerate(text.splitlines(), start=1):
        in_block ^= line.lstrip().startswith("```")
        row = None if in_block else _ROW.match(line)
        if row is None:
            headers = []
            continue
        cells = [cell.replace("\\|", "|").strip() for cell in _BAR.split(row[1])]
        if not headers:
            headers = cells
            continue
        for header, cell in zip(headers, cells):
            if header.startswith("flag") or header == "here":
                for name, values in _shown(cell):
                    yield ShownFlag(number, header, name, values, header != "here")


def _shown(cell: str) -> list[tuple[str, list[str]]]:
    """The flags of a cell; a word after a flag with a value, such as ``balanced``, is another value of it."""
    found: list[tuple[str, list[str]]] = []
    for span in re.findall(r"`([^`]+)`", cell):
        if re.match(r"--?[a-z]", span):
            for flag in re.split(r" (?=--)", span):
                name, _, value = flag.partition(" ")
                found.append((name, re.split(r"\s*\|\s*", value.strip()) if value else []))
        elif found and found[-1][1] and re.fullmatch(r"[\w-]+", span):
            found[-1][1].append(span)
    return found


def actions_of(flag: str, header: str) -> list[argparse.Action]:
    """The options of that name, of the commands that a header names, or of all commands."""
    named = re.findall(r"`([\w -]+)`", header)
    parsers = known_parsers()
    programs = [program for program in parsers if program in named or program.rpartition(" ")[2] in named]
    found = (parser._option_string_actions.get(flag) for name in programs or parsers for parser in parsers[name])
    return [action for action in found if action is not None]


@functools.cache
def recipe_flags() -> frozenset[str]:
    """The options of the recipes in examples/, as their scripts declare them."""
    texts = [path.read_text(encoding="utf-8") for path in ROOT.glob("examples/**/*.sh")]
    names = {name for text in texts for name in re.findall(r'"\$\{([A-Z_]+):=', text)}
    return frozenset("--" + name.lower().replace("_", "-") for name in {*names, "DATA", "OUT", "WORKERS", "TOY"})


def accepts(action: argparse.Action, value: str | None) -> bool:
    if value is not None and PLACEHOLDER.fullmatch(value):
        return action.nargs != 0
    parser = argparse.ArgumentParser(add_help=False)
    parser._add_action(action)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            parser.parse_args([action.option_strings[-1], *([] if value is None else shlex.split(value))])
    except SystemExit:
        return False
    return True


def problems_of(shown: ShownFlag) -> Iterator[str]:
    actions = actions_of(shown.name, shown.header)
    if not actions and shown.header == "here" and shown.name in recipe_flags():
        return
    if not actions:
        yield f"{shown.name} does not exist"
        return
    for value in shown.values:
        if not any(accepts(action, value) for action in actions):
            yield f"{shown.name} does not take {value}"
    if not shown.values and shown.names_a_switch and not any(accepts(action, None) for action in actions):
        yield f"{shown.name} needs a value"


def problems_in(page: Path) -> list[str]:
    shown = flags_of(page.read_text(encoding="utf-8"))
    return [f"{name_of(page)}:{flag.line}: {problem}" for flag in shown for problem in problems_of(flag)]


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_every_flag_exists_and_takes_what_it_is_shown_with(page):
    found = problems_in(page)
    assert not found, "\n".join(found)
