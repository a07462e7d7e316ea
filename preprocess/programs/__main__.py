"""Writes generated programs and their translations, one on each line.

All files of a split (train, valid, test) have the same number of lines: bracketed trees in ``SPLIT.for`` and
``SPLIT.lam`` (or ``SPLIT.cs`` and ``SPLIT.js``), and the tokens of the same programs in ``SPLIT.raw.for`` and so on.
No program occurs twice in all splits. The same arguments write the same bytes.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext
from pathlib import Path

from preprocess.corpora import CorpusError
from preprocess.programs import coffeescript, for2lam
from preprocess.programs.javascript import JavaScriptCompiler, NodeError, default_modules
from preprocess.programs.splits import SPLITS, write_splits


def arguments_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m preprocess.programs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--output", type=Path, required=True, help="folder to write to")
    for split, size in (("train", 100_000), ("valid", 10_000), ("test", 10_000)):
        shared.add_argument(f"--{split}", type=int, default=size, help="number of programs (default %(default)s)")
    shared.add_argument("--test-as", metavar="NAME", help="write the test set alone, as files of this name")
    shared.add_argument("--seed", type=int, default=1, help="seed of random draws (default %(default)s)")
    shared.add_argument("--workers", type=int, default=1, help="processes that draw; the result does not depend on it")

    programs = commands.add_parser("for2lam", parents=[shared], help="FOR to LAMBDA")
    programs.add_argument("--setting", choices=sorted(for2lam.SETTINGS), required=True)
    programs.add_argument(
        "--data",
        type=Path,
        help="with --setting rebuild: folder of validation_For.json and test_For.json, which become valid and test",
    )

    scripts = commands.add_parser("coffeescript", parents=[shared], help="CoffeeScript to JavaScript, or back")
    scripts.add_argument("--setting", choices=sorted(coffeescript.SETTINGS), required=True)
    scripts.add_argument(
        "--node-modules",
        type=Path,
        default=default_modules(),
        help="folder for the CoffeeScript compiler and the JavaScript parser, which npm fetches (default %(default)s)",
    )
    scripts.add_argument("--toy", action="store_true", help="draw only programs that can be translated without Node")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Command line of this module; returns the exit status."""
    parser = arguments_parser()
    options = parser.parse_args(arguments)
    sizes = {split: getattr(options, split) for split in SPLITS}
    if min(sizes.values()) < 0 or options.workers < 1:
        parser.error("the numbers of programs must not be negative, and --workers must be at least 1")
    try:
        if options.command == "for2lam":
            if options.data is not None and options.setting != "rebuild":
                parser.error("--data needs --setting rebuild, whose programs alone are published")
            splits = for2lam.data_set(options.setting, sizes, options.seed, options.workers, options.data)
            suffixes = for2lam.SUFFIXES
        else:
            with nullcontext() if options.toy else JavaScriptCompiler(options.node_modules) as compiler:
                splits = coffeescript.data_set(options.setting, sizes, options.seed, compiler, options.workers)
            suffixes = coffeescript.SUFFIXES
    except (CorpusError, NodeError) as error:
        print(f"{options.command}: {error}", file=sys.stderr)
        return 1
    if options.test_as:
        splits = {options.test_as: splits["test"]}
    write_splits(options.output, suffixes, splits)
    return 0


if __name__ == "__main__":
    sys.exit(main())
