"""Parses text into trees: a whole corpus into a file, or a few lines to look at.

    tree-fairseq parse --text 'the old man sees the boat' --tree-parser right-branching --format pretty
    tree-fairseq parse sentences.en --format svg > trees.svg
    echo 'the man sleeps' | tree-fairseq parse --parser-dir models --format json --spans

    tree-fairseq parse train.en train.trees --workers 4
    torchrun --nproc-per-node 4 -m tree_fairseq.commands.parse train.en train.trees

A text, a file or a pipe goes to the standard output. With OUTPUT, a file is parsed in shards by several processes; the
same command continues a run that was interrupted. Under torchrun the ranks share the shards and rank 0 joins them.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from tree_fairseq.commands.tree_formats import FORMATS, TreeFormat
from tree_fairseq.errors import TreeFairseqError
from tree_fairseq.parsing.corenlp_output import READERS
from tree_fairseq.parsing.corpus import SHARD_LINES, parse_corpus
from tree_fairseq.parsing.dependencies import parse_dependencies, write_conllu
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import add_parser_arguments, options_from_arguments
from tree_fairseq.parsing.shards import join_shards
from tree_fairseq.support.error_reports import drop_output, failed
from tree_fairseq.trees.bracket import read_forest
from tree_fairseq.trees.text import decode_lines, read_lines
from tree_fairseq.trees.tree import Forest, forest_leaves

logger = logging.getLogger(__name__)

_LINES_AT_ONCE = 4  # times the batch size: enough for batches of similar length
_MARKS = tuple(".,;:!?")


def _parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    about, _, course = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="tree-fairseq parse",
        usage="tree-fairseq parse (--text TEXT | INPUT | < INPUT) [--format NAME] [options]\n"
        "       tree-fairseq parse INPUT OUTPUT [--workers N] [options]",
        description=f"{about}\n\n{course}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("input", nargs="?", help="text file, UTF-8, a sentence (or several) a line; - is the standard input")
    add("output", nargs="?", help="file for the trees of a whole corpus, one forest a line")
    group = parser.add_argument_group("text to look at")
    add = group.add_argument
    add("--text", action="append", metavar="TEXT", help="a line of text in place of a file; may be given again")
    formats = "; ".join(f"{name}: {help}" for name, help in FORMATS.items())
    add("--format", choices=tuple(FORMATS), default="brackets", help=f"{formats} (default: brackets)")
    add("--binarize", action="store_true", help="give every node at most two children: (A b c d) is (A b (@A c d))")
    add("--spans", action="store_true", help="show the tokens [start, end) below each constituent, as in NP[0:2]")
    reading = "; ".join(f"{name}: {reader.help}" for name, reader in READERS.items())
    add("--read", choices=tuple(READERS), help=f"the input consists of trees already. {reading}")
    group = parser.add_argument_group("corpora (with OUTPUT)")
    add = group.add_argument
    add("--shards-dir", metavar="DIR", help="folder for the shards (default: OUTPUT.shards)")
    add(
        "--shard-lines",
        type=int,
        metavar="N",
        help=f"lines of a shard (default: {SHARD_LINES}, and fewer in a short file, so that all ranks have work)",
    )
    add("--workers", type=int, metavar="N", help="parsing processes where there is no GPU (default: 1)")
    add("--no-progress-bar", action="store_true", help="show log lines only")
    add_parser_arguments(parser.add_argument_group("trees"))
    args = parser.parse_args(arguments)
    _check(parser, args)
    return args


def _check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Ends the program with a message where options do not go together."""
    if args.text is not None and args.input is not None:
        parser.error(f"--text and the file {args.input} are two texts: leave one of them out")
    if args.output is None:
        for flag in ("shards_dir", "shard_lines", "workers", "parse_cache"):
            if getattr(args, flag) is not None:
                name = flag.replace("_", "-")
                parser.error(f"--{name} is for a corpus: tree-fairseq parse INPUT OUTPUT --{name} ...")
        if args.text is None and args.input is None and sys.stdin is not None and sys.stdin.isatty():
            parser.error("no text: give --text 'a sentence', a file, or a pipe (- reads what you type)")
    elif args.input == "-":
        parser.error("a corpus is read from a file; without OUTPUT, - is the standard input")
    elif args.format in ("svg", "conllu") or args.read is not None:
        option = f"--format {args.format}" if args.read is None else f"--read {args.read}"
        parser.error(f"{option} writes to the standard output: leave out {args.output}, and add > {args.output}")
    if args.format == "conllu" and (args.binarize or args.spans or args.read):
        parser.error("--format conllu has dependencies and no trees: leave out --binarize, --spans and --read")


def _corpus(args: argparse.Namespace) -> None:
    """Parses a file in shards and joins them."""
    rank, world_size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    output, form = Path(args.output), TreeFormat(args.format, args.binarize, args.spans)
    summary = parse_corpus(
        args.input,
        Path(args.shards_dir or f"{output}.shards"),
        options_from_arguments(args),
        workers=1 if args.workers is None else args.workers,
        shard_lines=args.shard_lines,
        cache=args.parse_cache,
        progress=not args.no_progress_bar,
        rank=rank,
        world_size=world_size,
    )
    if rank > 0:
        return

    def convert(lines: Iterator[str]) -> Iterator[str]:
        forests = map(read_forest, lines)
        return form.write((" ".join(forest_leaves(forest)), forest) for forest in forests)

    join_shards(summary.shards, output, None if form.is_plain else convert)
    logger.info("%s: %d lines written, %.0f sentences per second", output, summary.lines, summary.sentences_per_second)


def _lines(args: argparse.Namespace) -> Iterator[str]:
    if args.text is not None:
        return iter(args.text)
    return decode_lines(sys.stdin.buffer, "standard input") if args.input in (None, "-") else read_lines(args.input)


def _place(args: argparse.Namespace) -> str:
    return "--text" if args.text is not None else "standard input" if args.input in (None, "-") else args.input


def _parsed(args: argparse.Namespace, parser: LineParser) -> Iterator[tuple[str, Forest]]:
    """Yields each line with its forest, some lines at a time."""
    first, warned = 1, parser.kind == "text" or parser.parser is None
    for lines in _portions(args, parser):
        if not warned and (raw := next(filter(None, map(_joined_end, lines)), None)):
            warned = True
            logger.warning(
                "the text is not tokenised: %r is one token. Tokenise it, or add --tree-tokenize parser, with which "
                "stanza, corenlp and spacy find the tokens",
                raw,
            )
        for number, (line, parsed) in enumerate(zip(lines, parser.parse_lines(lines, first, _place(args))), first):
            if parsed.failed:
                logger.warning("%s:%d: %d sentences have a flat tree", _place(args), number, parsed.failed)
            yield line, parsed.forest
        first += len(lines)


def _joined_end(line: str) -> str | None:
    """Returns the last word of a line if its full stop has not been cut off, as in text that people write."""
    words = line.split()
    is_joined = len(words) > 1 and len(words[-1]) > 2 and words[-1].endswith(_MARKS) and words[-1][:-1].isalpha()
    return words[-1] if is_joined else None


def _portions(args: argparse.Namespace, parser: LineParser) -> Iterator[list[str]]:
    """Yields the lines in lists, which are parsed together: one at a time where a person types them."""
    is_typed = args.input == "-" and sys.stdin.isatty()
    size = 1 if is_typed else _LINES_AT_ONCE * parser.options.batch_size
    lines = _lines(args)
    while portion := list(islice(lines, size)):
        yield portion


def _dependencies(args: argparse.Namespace, parser: LineParser) -> Iterator[str]:
    """Yields the text in CoNLL-U."""
    number = 0
    for lines in _portions(args, parser):
        if parser.kind == "text":
            parsed = parser.parse_lines(lines, number + 1, _place(args))
            sentences = [[tree.leaves() for tree in line.forest] for line in parsed]
        else:
            prepared = [parser.prepare(line, number + k, _place(args)) for k, line in enumerate(lines, 1)]
            sentences = [[text.split(" ") for text in line.texts] for line in prepared]
        found = iter(parse_dependencies(parser.parser, parser.options.name, [s for line in sentences for s in line]))
        for line in sentences:
            number += 1
            yield from write_conllu(str(number), list(islice(found, len(line))))


def _look(args: argparse.Namespace) -> None:
    """Parses a text, a file or a pipe to the standard output."""
    options = options_from_arguments(args)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    form = None if args.format == "conllu" else TreeFormat(args.format, args.binarize, args.spans, width)
    if args.read is not None:
        text = "\n".join(_lines(args))
        trees = READERS[args.read].read(text, _place(args))
        parts: Iterable[str] = form.write((" ".join(tree.leaves()), (tree,)) for tree in trees)
    else:
        parser = LineParser(options)
        parts = _dependencies(args, parser) if form is None else form.write(_parsed(args, parser))
    for part in parts:
        sys.stdout.write(part)
        sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns exit status 1 if the text cannot be parsed."""
    args = _parse_arguments(arguments)
    try:
        (_look if args.output is None else _corpus)(args)
    except BrokenPipeError:
        drop_output()
    except (TreeFairseqError, OSError, ValueError) as error:
        return failed(error, logger)
    return 0


if __name__ == "__main__":
    # torchrun or fairseq may have set a handler up already, which shows warnings only.
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s | %(levelname)s | %(name)s | %(message)s", stream=sys.stderr, force=True
    )
    sys.exit(main())
