"""Overnight (Wang et al. 2015): aligned splits of one domain, and lower bounds on the steps of decoding.

    python -m preprocess.overnight prepare --data DIR --domain NAME --output DIR [--simplify merged|none]
        [--valid SHARE] ...
    python -m preprocess.overnight bounds --data DIR [--domain NAME ...]

``DIR`` contains the files ``NAME.paraphrases.{train,test}.examples`` of SEMPRE. ``prepare`` writes utterances and
logical forms in the notation ``bracket`` to ``OUTPUT/{train,valid,test}.{nl,lf}``; the validation split is drawn from
the training file. The order of the conditions of a filter and of the parts of a concatenation does not matter: score
simplified forms with ``--unordered filter call-SW:concat``.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from preprocess.command import prepare_data_set, run_command
from preprocess.corpora import CorpusError, clean_line
from preprocess.logical_forms import Example, Splits, hold_out, raw_lines, report_duplicates, shorten, write_splits
from preprocess.overnight_bounds import bounds, table
from preprocess.overnight_simplify import simplify
from tree_fairseq.errors import InputError, SymbolTreeError
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Tree

SIMPLIFICATIONS = ("merged", "none")
NOTATION = notation_named("bracket")
_START = "(example"


class Query(NamedTuple):
    """An utterance, its logical form, and the number of the first line of the example."""

    utterance: str
    form: Tree
    line: int


def read_examples(path: Path) -> Iterator[Query]:
    """Yields the examples of a file of SEMPRE.

    Raises CorpusError if the file is missing, is not UTF-8, has no examples, or has a malformed example; the message
    names file and line.
    """
    start, parts = 0, []
    for number, line in enumerate(raw_lines(path), 1):
        if line.startswith(_START):
            if parts:
                yield _read_example(path, start, parts)
            start, parts = number, [line]
        elif parts:
            parts.append(line)
        elif line.strip():
            raise CorpusError(f"{path}:{number}: an example begins with {_START}")
    if not parts:
        raise CorpusError(f"{path} holds no examples")
    yield _read_example(path, start, parts)


def read_forms(path: Path, simplification: str = "merged") -> Iterator[tuple[str, Tree]]:
    """Yields the utterances and forms of a file, simplified (``merged``) or as they are (``none``).

    Raises:
        CorpusError: as `read_examples`, or a form cannot be simplified
    """
    for query in read_examples(path):
        try:
            yield query.utterance, simplify(query.form) if simplification == "merged" else query.form
        except SymbolTreeError as error:
            raise CorpusError(str(error.at(path, query.line))) from error


def examples_file(data: Path, domain: str, split: str) -> Path:
    """Returns the file of a domain. If it is missing, raises CorpusError, which names the domains of the folder."""
    path = data / f"{domain}.paraphrases.{split}.examples"
    if not path.is_file():
        raise CorpusError(f"{path} is missing; the folder has {', '.join(domains(data)) or 'no domain'}")
    return path


def domains(data: Path) -> list[str]:
    """Returns the domains whose test sets a folder contains."""
    return sorted(path.name.partition(".")[0] for path in data.glob("*.paraphrases.test.examples"))


def load(data: Path, domain: str, simplification: str = "merged", share: float = 0.2, seed: int = 1) -> Splits:
    """Reads the splits of a domain.

    Raises CorpusError if a file is missing or malformed, or the share leaves a split empty.

    Args:
        share: share of the training file that becomes the validation split
        seed: seed of the draw
    """
    splits = {}
    for split in ("train", "test"):
        forms = read_forms(examples_file(data, domain, split), simplification)
        splits[split] = [Example(utterance, NOTATION.write(form)) for utterance, form in forms]
    train, valid = hold_out(splits["train"], round(share * len(splits["train"])), seed)
    return {"train": train, "valid": valid, "test": splits["test"]}


def _read_example(path: Path, number: int, lines: list[str]) -> Query:
    try:
        example = NOTATION.read(" ".join(lines).strip(), path=path, line_number=number)
    except InputError as error:
        raise CorpusError(str(error)) from error
    fields = {field.label: field.children for field in example.children}
    utterance, form = (fields.get(name, ()) for name in ("utterance", "targetFormula"))
    if len(utterance) != 1 or len(form) != 1:
        raise CorpusError(f'{path}:{number}: an example has one (utterance "...") and one (targetFormula (...))')
    text = re.fullmatch(r'"(.*)"', utterance[0].label)
    words = clean_line(re.sub(r"\\(.)", r"\1", text[1])) if text else ""
    if not words:
        raise CorpusError(f"{path}:{number}: the utterance is not a text in quotation marks: {utterance[0].label}")
    return Query(words, form[0], number)


def _prepare(args: argparse.Namespace) -> dict[str, int]:
    splits = load(args.data, args.domain, args.simplify, args.valid, args.seed)
    splits = shorten(splits, args.subset, args.limit, args.seed)
    report_duplicates(splits)
    return write_splits(splits, args.output, (args.source, args.target))


def _bounds(args: argparse.Namespace) -> None:
    names = args.domain or domains(args.data)
    if not names:
        raise CorpusError(f"{args.data} holds no NAME.paraphrases.test.examples")
    rows = {name: bounds(form for _, form in read_forms(examples_file(args.data, name, "test"))) for name in names}
    sys.stdout.write(table(rows))


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m preprocess.overnight", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    prepare = commands.add_parser("prepare", help="write aligned splits", description="Write the splits of a domain.")
    prepare.add_argument("--domain", required=True)
    prepare.add_argument("--output", type=Path, required=True)
    prepare.add_argument(
        "--simplify",
        choices=SIMPLIFICATIONS,
        default="merged",
        help=(
            "merged: calls and filters are merged, unordered children sorted; none: as published (default: %(default)s)"
        ),
    )
    prepare.add_argument(
        "--valid", type=float, default=0.2, help="share of train to validate on (default: %(default)s)"
    )
    prepare.add_argument("--source", default="nl", help="suffix of the utterances (default: %(default)s)")
    prepare.add_argument("--target", default="lf", help="suffix of the forms (default: %(default)s)")
    prepare.add_argument("--subset", type=int, help="train on a random sample of that many examples")
    prepare.add_argument("--limit", type=int, help="only the first examples of every split")
    prepare.add_argument("--seed", type=int, default=1, help="seed of random draws (default: %(default)s)")
    steps = commands.add_parser(
        "bounds",
        help="lower bounds on decoding steps",
        description="Print lower bounds on the decoding steps of test sets.",
    )
    steps.add_argument("--domain", nargs="+", help="default: all domains of the folder")
    for each in (prepare, steps):
        each.add_argument("--data", type=Path, required=True, help="folder of the .examples files")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Command line of this module; returns the exit status."""
    args = _arguments(arguments)
    if args.command == "prepare":
        return prepare_data_set("overnight", args.domain, lambda: _prepare(args))
    return run_command("overnight", lambda: _bounds(args))


if __name__ == "__main__":
    raise SystemExit(main())
