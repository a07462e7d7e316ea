"""Parses text into trees: a whole corpus into a file, or a few lines to look at.

    tree-fairseq parse --text 'the old man sees the boat' --tree-parser right-branching --format pretty
    tree-fairseq parse sentences.en --format svg > trees.svg
    echo 'the man sleeps' | tree-fairseq parse --parser-dir models --format json --spans
    tree-fairseq parse --read python --text 'print(x + 1)' --format svg > program.svg

    tree-fairseq parse train.en train.trees --workers 4

    tree-fairseq parse train.en train.trees --engine ray --ray-address auto
    tree-fairseq parse train.en train.trees --engine slurm --workers 100 | sbatch

    tree-fairseq parse train.en train.trees --shard 3/100
    tree-fairseq parse --join train.trees

A text, a file or a pipe goes to the standard output. With OUTPUT, a file is parsed in shards, which are kept in
OUTPUT.shards: the same command continues a run that was stopped. --shard parses one shard (0/100 to 99/100), and
needs nothing of the others; on any machines, in any order and number, they join to the same trees. --engine slurm
writes the script of an array of jobs that do so.
"""

from __future__ import annotations

import argparse
import logging
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from tree_fairseq.commands.tree_formats import FORMATS, TreeFormat
from tree_fairseq.errors import InputError, OutsideTreeError, UnclosedTreeError, did_you_mean
from tree_fairseq.parsing.corenlp_parser import read_corenlp
from tree_fairseq.parsing.corpus import ShardReport, parse_corpus, parse_shard_alone, shards_of
from tree_fairseq.parsing.joining import finished_shards, join_shards
from tree_fairseq.parsing.line_parser import LineParser, require_read
from tree_fairseq.parsing.parsers import ARGUMENTS, add_parser_arguments, check_failures, options_from_arguments
from tree_fairseq.parsing.pieces import with_kind_of
from tree_fairseq.parsing.ray_engine import pool_for
from tree_fairseq.source_code.registry import registered_languages
from tree_fairseq.support.files import standard_input
from tree_fairseq.support.options import command, given_arguments, refuse_unread
from tree_fairseq.trees.notations import NOTATIONS, notation_named, notation_names
from tree_fairseq.trees.text import FaultyLines, decode_lines, read_lines
from tree_fairseq.trees.tree import Forest
from tree_fairseq.trees.treebanks import left_out_message, penn_trees, strange_labels

logger = logging.getLogger(__name__)

READERS = {"penn": "trees of a treebank, each over any number of lines", "corenlp": "CoreNLP's JSON"}
"""Forms of files for ``--read`` that are no notations."""

_LINES_AT_ONCE = 4  # times the batch size: enough for batches of similar length


def _shard(text: str) -> tuple[int, int]:
    index, _, count = text.partition("/")
    if not (index.isdecimal() and count.isdecimal() and int(index) < int(count)):
        raise argparse.ArgumentTypeError(f"I/N with I from 0 to N-1, such as 0/8, not {text!r}")
    return int(index), int(count)


def _reading(name: str) -> str:
    try:
        return name if name in READERS else notation_named(name) and name
    except InputError as error:
        near = did_you_mean(name, [*READERS, *notation_names()]) or f"Others are {' and '.join(READERS)}."
        raise argparse.ArgumentTypeError(f"{error} {near}") from None


def _parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tree-fairseq parse",
        usage="tree-fairseq parse (--text TEXT | INPUT | < INPUT) [--format NAME] [options]\n"
        "       tree-fairseq parse INPUT OUTPUT [--engine NAME] [--workers N | --shard I/N] [options]\n"
        "       tree-fairseq parse --join OUTPUT [options]",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("input", nargs="?", help="text file, UTF-8, a sentence (or several) a line; - is the standard input")
    add("output", nargs="?", help="file for the trees of a whole corpus, one forest a line")
    add = parser.add_argument_group("text to look at").add_argument
    add("--text", action="append", metavar="TEXT", help="a line of text in place of a file; may be given again")
    formats = "; ".join(f"{name}: {help}" for name, help in FORMATS.items())
    add("--format", choices=tuple(FORMATS), default="brackets", help=f"{formats} (default: brackets)")
    add("--binarize", action="store_true", help="give every node at most two children: (A b c d) is (A b (@A c d))")
    add("--spans", action="store_true", help="show the tokens [start, end) below each constituent, as in NP[0:2]")
    reading = "; ".join(f"{name}: {help}" for name, help in READERS.items())
    names = ", ".join(registered_languages()), ", ".join(NOTATIONS)
    programs = f"{names[0]}: programs, one a line; {names[1]}: trees in this notation, one a line"
    add("--read", type=_reading, metavar="NAME", help=f"the input is not text to be parsed. {reading}; {programs}")
    add = parser.add_argument_group("corpora (with OUTPUT)").add_argument
    text = "parsing processes where there is no GPU; with slurm, jobs (default: 1)"
    add("--workers", type=int, default=1, metavar="N", help=text)
    add("--shard", type=_shard, metavar="I/N", help="parse shard I of N shards alone, with I from 0 to N-1")
    add("--join", metavar="OUTPUT", help="check that all shards of OUTPUT are finished, and write it")
    add_parser_arguments(parser.add_argument_group("trees"), engines=("local", "ray", "slurm"))
    args = parser.parse_args(arguments)
    _check(parser, args)
    try:
        refuse_unread(given_arguments(parser, arguments), *_unread(args))
        if args.read is None:
            require_read(options_from_arguments(args))
    except InputError as error:
        parser.error(str(error))
    args.arguments = arguments
    return args


_PARSING = (*ARGUMENTS.values(), "parse_cache")
# All of them with --read penn, and the first three, about words and labels, with --read corenlp.
_READ_OF_TREES = ("keep_empty", "tree_strip_function_tags", "tree_tag_separators", "on_parse_error")


def _unread(args: argparse.Namespace) -> tuple[dict[str, str], str]:
    """Returns the arguments that the command does not read in the mode of ``args``, with the way out, and the mode."""
    corpus = dict.fromkeys(("shard", "workers", "engine", "ray_address"), "it goes with a corpus, INPUT OUTPUT")
    form = dict.fromkeys(
        ("format", "binarize", "spans"), "a corpus is written in brackets, which --tree-parser brackets writes anew"
    )
    if args.join is not None:
        own = (name for name in _PARSING if name != "max_parse_failures")
        return form | dict.fromkeys(("text", *corpus, *own), "give it where the shards are parsed"), "--join"
    if args.read is not None:
        own = _READ_OF_TREES[: {"penn": 4, "corenlp": 3}.get(args.read, 0)]
        parsing = [name for name in _PARSING if name not in own]
        way_out = "nothing is parsed. tree-fairseq parse --tree-parser brackets reads trees with the flags of parsers"
        return {**dict.fromkeys(parsing, way_out), **corpus}, f"--read {args.read}"
    if args.output is None:
        return {**corpus, "max_parse_failures": corpus["workers"]}, "a text to look at"
    of_shards = {**form, "max_parse_failures": "it goes with --join"}
    if args.shard is not None:
        alone = dict.fromkeys(("workers", "engine", "ray_address"), "it goes with the whole corpus, without --shard")
        return {**of_shards, **alone}, "--shard"
    return (of_shards, "--engine slurm") if args.engine == "slurm" else (form, "a corpus")


def _check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if args.text is not None and args.input is not None:
        parser.error(f"--text and the file {args.input} are two texts: leave one of them out")
    if args.output is None and args.join is None:
        if args.text is None and args.input is None and sys.stdin is not None and sys.stdin.isatty():
            parser.error("no text: give --text 'a sentence', a file, or a pipe (- reads what you type)")
    elif args.input == "-":
        parser.error("a corpus is read from a file; without OUTPUT, - is the standard input")
    elif args.output is not None and Path(args.input).resolve() == Path(args.output).resolve():
        parser.error(f"the trees would replace the text in {args.input}: name another OUTPUT")
    elif args.join is not None and args.input is not None:
        parser.error(f"--join {args.join} reads its shards: leave out {args.input}")
    elif args.read is not None:
        output = args.output or args.join
        parser.error(f"--read {args.read} writes to the standard output: leave out {output}, and add > {output}")


# The script of an array of jobs, each of which parses one shard.
_SCRIPT = """#!/bin/sh
#SBATCH --array=0-{last} --cpus-per-task=1 --requeue
# Give this to sbatch. When its jobs have ended: tree-fairseq parse --join {output}
exec tree-fairseq parse {arguments} --shard "$SLURM_ARRAY_TASK_ID/{count}"
"""


def _corpus(args: argparse.Namespace) -> None:
    if args.engine == "slurm":
        own = argparse.ArgumentParser(add_help=False)
        own.add_argument("--engine")
        own.add_argument("--workers")
        rest, count = shlex.join(own.parse_known_args(args.arguments)[1]), max(args.workers, 1)
        sys.stdout.write(_SCRIPT.format(last=count - 1, count=count, arguments=rest, output=shlex.quote(args.output)))
        return
    folder = Path(f"{args.output}.shards")
    options = with_kind_of(options_from_arguments(args), read_lines(args.input), args.input)
    if args.shard is not None:
        index, count = args.shard
        shard = shards_of(args.input, folder, count)[index]
        report = parse_shard_alone(shard, LineParser(options, cache=args.parse_cache))
        counts = report.lines, report.sentences, len(report.failures)
        logger.info("%s: %d lines, %d sentences, %d with a flat tree", shard.trees, *counts)
        return
    with pool_for(args) as pool:
        corpus = parse_corpus(args.input, folder, options, pool=pool, cache=args.parse_cache)
    _write(corpus.shards, Path(args.output))
    logger.info("%s: %d lines written", args.output, corpus.lines)


def _join(args: argparse.Namespace) -> None:
    shards = finished_shards(Path(f"{args.join}.shards"))
    lines, flat = 0, []
    for _, report in shards:
        flat += [lines + line for line, _ in report.failures]
        lines += report.lines
    sentences = sum(report.sentences for _, report in shards)
    limit = options_from_arguments(args).max_parse_failures
    check_failures(limit, len(flat), sentences, dict.fromkeys(flat), args.join, f"{args.join}.shards")
    _write(shards, Path(args.join))
    logger.info("%s: %d lines written, %d sentences, %d with a flat tree", args.join, lines, sentences, len(flat))


def _write(shards: Sequence[tuple[Path, ShardReport]], output: Path) -> None:
    join_shards(shards, output)
    # Processes that were killed have left them.
    for path in Path(f"{output}.shards").glob(".*-of-*.tmp"):
        path.unlink(missing_ok=True)


def _source(args: argparse.Namespace) -> tuple[str, Iterator[str]]:
    """The name of the text in messages, and its lines."""
    if args.text is not None:
        return "--text", iter(args.text)
    if args.input in (None, "-"):
        return "standard input", decode_lines(standard_input(), "standard input")
    return args.input, read_lines(args.input)


def _parsed(args: argparse.Namespace, parser: LineParser) -> Iterator[tuple[str, Forest]]:
    """Yields each line with its forest, some lines at a time; raises InputError for all lines that are not trees."""
    place, source = _source(args)
    faults, left_out, labels = FaultyLines(), Counter[str](), set[str]()
    skips = args.read is not None and parser.options.on_parse_error == "skip-pair"
    for first, lines in _portions(args, source, parser, left_out):
        parser.options = with_kind_of(parser.options, lines, place)
        with faults:
            parsed = parser.parse_lines(lines, first, place)
        if faults.errors:
            if _is_typed(args):
                break
            continue
        for number, (line, own) in enumerate(zip(lines, parsed), first):
            left_out += own.left_out
            if own.failed:
                fate = "left out:" if skips else "a flat tree for" if own.sentences else "without a tree:"
                logger.warning("%s:%d: %s %s", place, number, fate, "; ".join(own.failures))
            if parser.options.tag_separators:
                labels.update(node.label for tree in own.forest for node in tree.subtrees())
            if args.read is None:
                yield line, own.forest
            elif not (skips and own.failed):
                yield from ((" ".join(tree.leaves()), (tree,)) for tree in own.forest)
    for error in faults.errors if args.read is not None else ():
        error.column = None  # the tree may have had several lines
        if isinstance(error, OutsideTreeError) and error.hint.startswith("A line holds"):
            error.hint = "Between trees are only blank lines, and lines that begin with <, %, #, ; or *."
        if isinstance(error, UnclosedTreeError):
            error.hint = "Close every bracket of the tree that begins here."
    faults.raise_all()
    if left_out := +left_out:
        logger.info("%s: left out, as no words: %s", place, left_out_message(left_out))
    if strange := strange_labels(labels):
        logger.warning("labels may still have function tags: %s. --tree-tag-separators names their sign", strange)


def _is_typed(args: argparse.Namespace) -> bool:
    return args.input == "-" and sys.stdin.isatty()


def _portions(
    args: argparse.Namespace, lines: Iterator[str], parser: LineParser, left_out: Counter[str]
) -> Iterator[tuple[int, Sequence[str]]]:
    """Yields the lines in lists, which are parsed together, with the number of the first one."""
    if args.read == "penn":
        yield from ((number, [tree]) for number, tree in penn_trees("\n".join(lines), left_out))
        return
    first, size = 1, 1 if _is_typed(args) else _LINES_AT_ONCE * parser.options.batch_size
    while portion := list(islice(lines, size)):
        yield first, portion
        first += len(portion)


def _look(args: argparse.Namespace) -> None:
    if args.input not in (None, "-"):
        Path(args.input).stat()  # a file that is not there is named before a parser loads its models
    ready_made = {} if args.read is None else {"tree_parser": "brackets"}
    options = options_from_arguments(argparse.Namespace(**{**vars(args), **ready_made}))
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    is_program = args.read is not None and args.read not in READERS
    form = TreeFormat(args.format, args.binarize, args.spans, width, is_program)
    if is_program:
        notation, (place, lines) = notation_named(args.read), _source(args)
        read = ((line, notation.read(line, place, number)) for number, line in enumerate(lines, start=1))
        parts: Iterable[str] = form.write((line, (tree,)) for line, tree in read)
    elif args.read == "corenlp":
        place, lines = _source(args)
        trees = read_corenlp("\n".join(lines), place)
        parts = form.write((" ".join(tree.leaves()), options.conventions.apply((tree,), Counter())) for tree in trees)
    else:
        parts = form.write(_parsed(args, LineParser(options, cache=args.parse_cache)))
    for part in parts:
        sys.stdout.write(part)
        sys.stdout.flush()


@command
def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    args = _parse_arguments(arguments)
    (_join if args.join is not None else _look if args.output is None else _corpus)(args)
