"""Converts a data set of utterances (or trees) and logical forms into aligned splits, the first stage of its recipe.

    python -m preprocess.semantic_parsing geo --data DIR --output DIR [--valid N] [--keep-valid]
        [--subset N] [--recombine N] [--permute N] [--limit N]

Writes ``OUTPUT/{train,valid,test}.{source,target}``, and ``OUTPUT/test.groups`` if test examples belong to groups. No
token of the data set is replaced. ``fairseq-preprocess`` replaces rare tokens as in the papers: ``--thresholdsrc 2``
for GEO, ATIS and JOBS (source words that occur once are unknown), ``--thresholdsrc 5 --thresholdtgt 5`` for IFTTT. The
scorer compares with the lines written here, so an unknown symbol is never correct.

GEO, ATIS and JOBS are read as Dong and Lapata (2016) prepared them: ``utterance<TAB>logical form`` in ``train.txt``,
``test.txt`` and, optionally, ``dev.txt``. Without ``dev.txt`` the validation examples are drawn from training at
random, because the files of GEO are sorted by length. ATIS is distributed without ``test.txt``: then ``dev.txt`` is the
test set, and the validation examples are drawn from training.

``--recombine`` and ``--permute`` add pairs that are made out of the training pairs alone, after ``--subset``; see
`preprocess.recombination`.
"""

from __future__ import annotations

import argparse
import logging
from dataclasses import dataclass
from pathlib import Path

from preprocess import active_logical, cogs, ifttt
from preprocess.command import prepare_data_set
from preprocess.corpora import CorpusError
from preprocess.logical_forms import (
    Example,
    Splits,
    check_tree,
    hold_out,
    read_columns,
    report_duplicates,
    shorten,
    write_splits,
)
from preprocess.recombination import KIND, KINDS, permute, recombine, report_overlap
from tree_fairseq.trees.notations import NOTATIONS, notation_named

logger = logging.getLogger(__name__)

COLUMNS = ("utterance", "logical form")


@dataclass(frozen=True)
class Corpus:
    """The notation of a corpus, and the number of validation examples to draw if ``dev.txt`` is missing."""

    notation: str
    valid: int


CORPORA = {"geo": Corpus("bracket", 100), "atis": Corpus("bracket", 400), "jobs": Corpus("prolog", 100)}


def read_examples(path: Path, notation: str) -> list[Example]:
    """Reads the examples of one file."""
    reader = notation_named(notation)
    return [
        Example(utterance, check_tree(form, reader, path, number))
        for number, (utterance, form) in enumerate(read_columns(path, COLUMNS), 1)
    ]


def load_utterances(data: Path, notation: str, valid: int, seed: int = 1, keep_valid: bool = False) -> Splits:
    """Reads the splits of GEO, ATIS or JOBS."""
    paths = {name: data / f"{name}.txt" for name in ("train", "dev", "test")}
    there = {name for name, path in paths.items() if path.is_file()}
    if "train" not in there or not there & {"dev", "test"}:
        missing = paths["train"] if "train" not in there else paths["test"]
        raise CorpusError(
            f"{missing} is missing: --data takes a folder with train.txt, test.txt and, optionally, dev.txt, "
            f"whose lines are {'<TAB>'.join(COLUMNS)}"
        )
    read = {name: read_examples(paths[name], notation) for name in sorted(there)}
    train, test = read["train"], read["test"] if "test" in there else read["dev"]
    if there >= {"dev", "test"}:
        validation = read["dev"]
        if keep_valid:
            train = [*train, *validation]
    else:
        if "test" not in there:
            logger.info("%s is missing: dev.txt is the test set", paths["test"])
        train, validation = hold_out(train, valid, seed, keep_valid)
    return {"train": train, "valid": validation, "test": test}


ABOUT = {
    "geo": "questions about geography, lambda calculus",
    "atis": "questions about flights, lambda calculus",
    "jobs": "questions about job offers, Prolog",
    "ifttt": "titles of IFTTT recipes and their programs",
    "cogs": "COGS, with variable-free logical forms or its own",
    "active_logical": "active sentences and logical forms, tree to tree",
}


def load(args: argparse.Namespace) -> Splits:
    """Returns the splits of the data set that a command line names. Raises CorpusError."""
    if args.name in CORPORA:
        return load_utterances(args.data, args.notation, args.valid, args.seed, args.keep_valid)
    if args.name == "ifttt":
        return ifttt.load(args.data, args.text)
    if args.name == "cogs":
        return cogs.load(args.data, args.targets, args.generalization_sample)
    return active_logical.load(args.data, args.direction, args.deeper)


def recombination_kinds(text: str) -> tuple[str, ...]:
    """Reads strategies of recombination. Raises ArgumentTypeError if one of them is unknown."""
    kinds = tuple(text.split(","))
    if unknown := [kind for kind in kinds if not KIND.fullmatch(kind)]:
        message = f"no way to recombine: {unknown[0]!r}; there are entities, phrases and concat2 to concat9"
        raise argparse.ArgumentTypeError(message)
    return kinds


def enlarge(splits: Splits, args: argparse.Namespace) -> Splits:
    """Adds the pairs that ``--recombine`` and ``--permute`` ask for to train. Raises CorpusError."""
    train = splits["train"]
    made = recombine(train, args.recombine, args.recombine_by, args.notation, args.seed) if args.recombine else []
    if made:
        report_overlap(splits, made)
    if args.permute:
        made += permute(train, args.permute, args.notation, args.seed)
    return {**splits, "train": [*train, *made]}


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m preprocess.semantic_parsing", description=__doc__.splitlines()[0])
    names = parser.add_subparsers(dest="name", metavar="NAME", required=True)
    parsers = {name: names.add_parser(name, help=about, description=about) for name, about in ABOUT.items()}
    for each in parsers.values():
        each.add_argument("--data", type=Path, required=True, help="folder of the data set")
        each.add_argument("--output", type=Path, required=True)
        each.add_argument("--source", default="nl", help="suffix of the source files (default: %(default)s)")
        each.add_argument("--target", default="lf", help="suffix of the target files (default: %(default)s)")
        each.add_argument("--subset", type=int, help="train on a random sample of that many examples")
        each.add_argument("--limit", type=int, help="only the first examples of every split")
        each.add_argument("--seed", type=int, default=1, help="seed of random draws (default: %(default)s)")
    for name, corpus in CORPORA.items():
        _add_utterance_arguments(parsers[name], corpus)
    add = parsers["ifttt"].add_argument
    add("--text", choices=sorted(ifttt.TEXTS), default="title", help="text of recipes (default: %(default)s)")
    add = parsers["cogs"].add_argument
    meaning = "kind of logical forms (default: %(default)s)"
    add("--targets", choices=cogs.TARGETS, default=cogs.VARIABLE_FREE, help=meaning)
    meaning = "write the test sets to another folder, too, with original forms in the place of variable-free ones"
    add("--original-forms", type=Path, metavar="DIR", help=meaning)
    meaning = "draw N examples of the generalization set as test2, evenly from its categories"
    add("--generalization-sample", type=int, metavar="N", help=meaning)
    add = parsers["active_logical"].add_argument
    meaning = "both: the published mixture (default: %(default)s)"
    add("--direction", choices=active_logical.DIRECTIONS, default="both", help=meaning)
    meaning = "make test2: N pairs of test with further adjectives, and so deeper"
    add("--deeper", type=int, metavar="N", help=meaning)
    return parser.parse_args(arguments)


def _add_utterance_arguments(parser: argparse.ArgumentParser, corpus: Corpus) -> None:
    for flag, default, meaning in (
        ("--valid", corpus.valid, "draw N validation examples from train if dev.txt is not the validation set"),
        ("--recombine", 0, "add N pairs by data recombination (Jia and Liang 2016)"),
        ("--permute", 0, "add N training pairs with the children of and, or in another order"),
    ):
        parser.add_argument(flag, type=int, default=default, metavar="N", help=f"{meaning} (default: %(default)s)")
    parser.add_argument("--keep-valid", action="store_true", help="keep the validation examples in training, too")
    meaning = "notation of the logical forms (default: %(default)s)"
    parser.add_argument("--notation", choices=sorted(NOTATIONS), default=corpus.notation, help=meaning)
    meaning = f"how: entities, phrases, concat2, concat3, ... (default: {','.join(KINDS)})"
    parser.add_argument("--recombine-by", type=recombination_kinds, default=KINDS, metavar="KIND,...", help=meaning)


def prepare(args: argparse.Namespace) -> dict[str, int]:
    """Writes the splits that the command line asks for; returns the number of pairs of each."""
    splits = shorten(load(args), args.subset, args.limit, args.seed)
    if args.name in CORPORA:
        splits = enlarge(splits, args)
    report_duplicates(splits)
    if args.name == "cogs" and args.original_forms:
        write_splits(cogs.original_forms(splits), args.original_forms, (args.source, args.target))
    return write_splits(splits, args.output, (args.source, args.target))


def main(arguments: list[str] | None = None) -> int:
    """Command line of this module; returns the exit status."""
    args = _arguments(arguments)
    return prepare_data_set("semantic_parsing", args.name, lambda: prepare(args))


if __name__ == "__main__":
    raise SystemExit(main())
