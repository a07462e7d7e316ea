"""Subject-verb agreement: the number of a verb is predicted from the words before it.

    python -m preprocess.agreement --data DIR --training FOLDER_OR_FILE ... --output DIR [parser flags]

Writes ``OUTPUT/{train,valid,test}.tsv``, a line ``prefix<TAB>singular|plural`` in lower case for each example, and
``OUTPUT/test.groups``, the number of attractors. ``--data`` contains either the test set of Gulordava et al. (2018),
which is a part of the set of Linzen et al. (2016), or the whole set of Linzen et al., which needs no other training
data. ``--generated-test`` writes a second test set of generated examples, ``test1``.

Training examples are extracted from trees (``*.mrg``, ``*.trees``) and from tokenised text (any other file, a sentence
or a document on each line). Text is parsed, because the parse of a whole sentence shows which noun is the subject of a
verb, and for the tags of the words of ``--grammar``. The parse is used for nothing else: only the words of the prefix
are written, because the rest of the sentence would reveal the number to a parser of the prefixes.

Few natural examples have attractors. ``--grammar`` adds generated ones to train, ``--repeat-attractors`` repeats the
natural ones there, and ``--valid-attractors`` makes a validation set half of whose examples have attractors.
"""

from __future__ import annotations

import argparse
import logging
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from preprocess.agreement_grammar import Lexicon, count_tags, generate
from preprocess.agreement_linzen import TABLE, TEST, example, load_table, load_test
from preprocess.agreement_subjects import agreements
from preprocess.command import prepare_data_set
from preprocess.corpora import CorpusError, find_file, raw_lines, sample
from preprocess.labelled_lines import Labelled, Splits, hold_out, report, shorten, write_splits
from tree_fairseq.errors import InputError
from tree_fairseq.parsing.corpus import parse_corpus
from tree_fairseq.parsing.parsers import add_parser_arguments, options_from_arguments
from tree_fairseq.parsing.ray_engine import pool_for
from tree_fairseq.support.processes import ProcessPool
from tree_fairseq.trees.bracket import read_forest

logger = logging.getLogger(__name__)

TREE_SUFFIXES = (".mrg", ".trees")


def sources(paths: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Returns the training files and the validation files.

    In a folder these are the files called train, and valid or dev. A path to a file is a training file. Raises
    CorpusError if a path is missing, or a folder has no training file.
    """
    train: list[Path] = []
    valid: list[Path] = []
    for path in paths:
        if path.is_file():
            train.append(path)
            continue
        files = sorted(file for file in path.glob("*.*") if file.is_file())
        if not (found := [file for file in files if file.name.startswith("train.")]):
            raise CorpusError(f"{path} holds neither train.mrg (trees) nor train.txt (text) with training sentences")
        train += found
        valid += [file for file in files if file.name.startswith(("dev.", "valid."))]
    return train, valid


def parsed_lines(path: Path, work: Path, args: argparse.Namespace, pool: ProcessPool) -> Iterator[str]:
    """Parses a text, with unfinished parses in ``work``; yields the forest of each line. Raises ParserError."""
    folder, options = Path(tempfile.mkdtemp(dir=work), "parsed"), options_from_arguments(args)
    for trees, _ in parse_corpus(path, folder, options, pool=pool, cache=args.parse_cache).shards:
        yield from raw_lines(trees)


def found_in(
    paths: Iterable[Path], parse: Callable[[Path], Iterable[str]], tagged: Counter[tuple[str, str]] | None = None
) -> list[Labelled]:
    """Returns the examples in files of trees and of text."""
    lines: list[Labelled] = []
    for path in paths:
        before, trees = len(lines), 0
        bracketed = raw_lines(path) if path.suffix in TREE_SUFFIXES else parse(path)
        for number, line in enumerate(bracketed, 1):
            try:
                forest = read_forest(line)
            except InputError as error:
                raise CorpusError(str(error.at(path, number))) from error
            trees += len(forest)
            if tagged is not None:
                count_tags(forest, tagged)
            lines += [example(found.prefix, found.number, found.attractors) for found in agreements(forest)]
        logger.info("%s: %d examples in %d trees", path, len(lines) - before, trees)
    return lines


def has_attractors(line: Labelled) -> bool:
    """Whether nouns of the other number come between the subject and the verb of an example."""
    return line.groups != ("attractors_0",)


def validate_on_attractors(
    train: list[Labelled], valid: list[Labelled], size: int, seed: int
) -> tuple[list[Labelled], list[Labelled]]:
    """Moves ``size`` examples with attractors from train to valid, and keeps as many in valid without attractors."""
    places = [place for place, line in enumerate(train) if has_attractors(line)]
    if size > len(places):
        raise CorpusError(f"--valid-attractors {size}: only {len(places)} training examples have attractors")
    moved = set(random.Random(seed).sample(places, size))
    hard = [train[place] for place in sorted(moved)] + [line for line in valid if has_attractors(line)]
    easy = [line for line in valid if not has_attractors(line)]
    rest = [line for place, line in enumerate(train) if place not in moved]
    return rest, hard + sample(easy, min(len(hard), len(easy)), seed)


def enrich(splits: Splits, args: argparse.Namespace, tagged: Counter[tuple[str, str]]) -> Splits:
    """Repeats natural training examples with attractors, and adds generated ones to train and as a second test set."""
    natural = Counter(group for line in splits["train"] for group in line.groups)
    logger.info("natural training examples: %s", ", ".join(f"{name} {natural[name]}" for name in sorted(natural)))
    train = [line for line in splits["train"] for _ in range(args.repeat_attractors if has_attractors(line) else 1)]
    splits = {**splits, "train": train}
    if args.grammar or args.generated_test:
        lexicon = Lexicon.of(tagged)
        sizes = ", ".join(f"{len(words.words)} {number}" for number, words in lexicon.nouns.items())
        logger.info("generating %d and %d examples with nouns of texts: %s", args.grammar, args.generated_test, sizes)
        train += generate(lexicon, args.grammar, args.seed, {line.text for line in splits["test"]})
    if args.generated_test:
        known = {line.text for lines in splits.values() for line in lines}
        splits["test1"] = list(generate(lexicon, args.generated_test, args.seed + 1, known))
    return splits


def load(args: argparse.Namespace, work: Path) -> Splits:
    """Returns the splits that a command line asks for."""
    if (table := find_file(args.data, TABLE, f"{TABLE}.gz")) is not None and not args.training:
        if args.grammar or args.generated_test or args.valid_attractors or args.repeat_attractors != 1:
            raise CorpusError(
                "--grammar, --generated-test, --valid-attractors and --repeat-attractors are for --training; the whole "
                "set needs none"
            )
        return load_table(table, args.test_size, args.seed)
    if (text := find_file(args.data, f"{TEST}.text")) is None:
        raise CorpusError(f"{args.data} holds neither {TEST}.text and {TEST}.gold nor {TABLE}.gz")
    test = load_test(text)  # its errors must be found before hours of parsing
    train_paths, valid_paths = sources(args.training or [args.data])
    tagged: Counter[tuple[str, str]] = Counter()
    with pool_for(args) as pool:
        parse = partial(parsed_lines, work=work, args=args, pool=pool)
        train = found_in(train_paths, parse, tagged)
        valid = found_in(valid_paths, parse)
    if not valid_paths:
        train, valid = hold_out(train, args.valid, args.seed)
    if args.valid_attractors:
        train, valid = validate_on_attractors(train, valid, args.valid_attractors, args.seed)
    return enrich({"train": train, "valid": valid, "test": test}, args, tagged)


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m preprocess.agreement", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the test set, or of the whole set")
    parser.add_argument(
        "--training",
        type=Path,
        nargs="+",
        metavar="PATH",
        help="folders with train.mrg or train.txt, or files (default: the folder of --data)",
    )
    parser.add_argument("--output", type=Path, required=True)
    for flag, default, meaning in (
        ("--valid", 400, "hold N examples out of train if there is no validation file"),
        ("--valid-attractors", 0, "move N training examples with attractors to valid; keep as many there without"),
        ("--repeat-attractors", 1, "write each training example with attractors N times"),
        ("--grammar", 0, "add N generated examples to train, with words of the training texts"),
        ("--generated-test", 0, "write a second test set, test1, of N other generated examples"),
        ("--test-size", None, "test on a random sample of N examples of the whole set"),
        ("--limit", None, "keep a random sample of N examples of every split"),
        ("--seed", 1, "seed of random draws"),
        ("--workers", 1, "processes that parse text"),
    ):
        parser.add_argument(flag, type=int, default=default, metavar="N", help=f"{meaning} (default: %(default)s)")
    add_parser_arguments(parser.add_argument_group("parser", "parser of the training text"))
    parser.set_defaults(tree_ssplit="punct")
    return parser.parse_args(arguments)


def prepare(args: argparse.Namespace) -> dict[str, int]:
    """Writes the splits that the command line asks for; returns the number of examples of each."""
    args.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=args.output) as work:
        splits = load(args, Path(work))
    splits = shorten(splits, args.limit, args.seed)
    # Attractors matter in the test sets only.
    splits = {
        split: lines if split.startswith("test") else [line._replace(groups=()) for line in lines]
        for split, lines in splits.items()
    }
    report(splits)
    return write_splits(splits, args.output, "tsv")


def main(arguments: list[str] | None = None) -> int:
    """Command line of this module; returns the exit status."""
    args = _arguments(arguments)
    return prepare_data_set("agreement", "agreement", lambda: prepare(args))


if __name__ == "__main__":
    raise SystemExit(main())
