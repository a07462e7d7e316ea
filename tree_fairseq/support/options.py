"""Definition and refusal of options, which users give as flags, and the choice of a command by its name.

fairseq makes a flag of each field of a dataclass of options. A flag that does not work in some combination is refused
before any work, never ignored.
"""

from __future__ import annotations

import functools
import logging
import pkgutil
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, fields
from pathlib import Path
from typing import Any, Callable, Optional

from tree_fairseq.errors import InputError, TreeFairseqError, did_you_mean
from tree_fairseq.support.logs import drop_output, failed, log_to_standard_error, prepare_streams

Flags = Mapping[str, dict[str, Any]]  # the settings of ``add_argument``, by flag

# Defaults of fairseq's and ours that switch an option off.
_SWITCHED_OFF = (None, False, -1, "sequence")


def option(default: Any, text: str, **published: Any) -> Any:
    """A field of a dataclass of fairseq's options: its default, and its help.

    ``published=`` is the value of the paper for an option of :mod:`tree_fairseq.nn.published`.
    """
    return field(default=default, metadata={"help": text, **published})


def flag_of(name: str) -> str:
    """The flag of an option: ``--print-alignment`` for ``print_alignment``."""
    return "--" + name.replace("_", "-")


def given_flags(args: object, *names: str) -> dict[str, bool]:
    """Whether options were given, by flag; ``args`` is a namespace or a configuration, and may lack them."""
    return {flag_of(name): getattr(args, name, None) not in _SWITCHED_OFF for name in names}


def changed_options(cfg: object, kind: type) -> set[str]:
    """Returns the names of the options of a dataclass that do not have their default in a configuration."""
    return {own.name for own in fields(kind) if getattr(cfg, own.name, own.default) != own.default}


def refuse_flags(
    flags: Mapping[str, object], partner: str, error: type[Exception] = InputError, advice: str = "leave it out"
) -> None:
    """Raises an error about the first flag that was given: any true value of the table counts.

    The message says that it does not work with ``partner``, such as ``--task tree_insertion``, and ends in ``advice``.
    """
    for flag, is_given in flags.items():
        if is_given:
            raise error(f"{flag} does not work with {partner}; {advice}")


def given_arguments(parser: ArgumentParser, arguments: Sequence[str] | None) -> frozenset[str]:
    """Returns the names of the arguments that a command line gives, also of those that have their default value."""
    names = vars(parser.parse_args(arguments))
    parsed = vars(parser.parse_args(arguments, Namespace(**dict.fromkeys(names))))
    return frozenset(name for name, value in parsed.items() if value is not None)


def refuse_unread(given: Collection[str], unread: Mapping[str, str], mode: str = "") -> None:
    """Raises InputError about the first argument that was given and that the command, in this mode, does not read.

    ``unread`` has for each such argument what does read it, or the way out, as the end of the sentence.
    """
    for name, way_out in unread.items():
        if name in given:
            raise InputError(f"{flag_of(name)} would be ignored{mode and ' with '}{mode}: {way_out}")


def command(run: Callable[[Optional[Sequence[str]]], Optional[int]]) -> Callable[..., int]:
    """Makes a function the main program of a command, which returns the exit status.

    Errors of this package and errors about files are logged, and the status is 1. A reader of the output that wants no
    more, as ``head`` does, ends the command with status 0.
    """

    @functools.wraps(run)
    def main(arguments: Sequence[str] | None = None) -> int:
        try:
            return run(sys.argv[1:] if arguments is None else list(map(str, arguments))) or 0
        except BrokenPipeError:
            drop_output()
            return 0
        except (TreeFairseqError, OSError) as error:
            return failed(error, logging.getLogger(run.__module__))

    return main


# What commands print for --help: torch and fairseq, which their parsers need, take seconds to import.
_HELP = Path(__file__).parents[1] / "commands" / "help"


def run_command(program: str, commands: Mapping[str, tuple[str, str]], arguments: Sequence[str]) -> int:
    """Runs the command that the first argument names, and returns its exit status; 2 if the name is unknown.

    ``commands`` have, by name, the function, such as ``commands.check:main``, and a description for ``--help``.
    """
    prepare_streams()
    name, *rest = arguments
    lines = [f"usage: {program} NAME [options], NAME one of"]
    lines += [f"  {known:<14} {about}" for known, (_, about) in commands.items()]
    listing = "\n".join([*lines, f"Options of each: {program} NAME --help"])
    if name in ("-h", "--help"):
        return command(lambda _: print(listing, flush=True))(())
    if name not in commands:
        sys.stderr.write(f"{program} has no {name!r}. {did_you_mean(name, commands) or listing}\n")
        return 2
    known = _HELP / f"{program} {name}.txt".replace("tree-fairseq ", "", 1).replace(" ", "-")
    if rest in (["-h"], ["--help"]) and known.exists():
        return command(lambda _: print(known.read_text(encoding="utf-8"), end="", flush=True))(())
    if any("\0" in argument for argument in rest):
        sys.stderr.write("an argument holds a null character, which no file has in its name\n")
        return 2
    log_to_standard_error()  # before fairseq is imported, which sets its own log up
    return command(pkgutil.resolve_name(f"tree_fairseq.{commands[name][0]}"))(rest)
