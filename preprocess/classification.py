"""Converts a data set of texts or trees and their classes into splits, the first stage of its recipe.

    python -m preprocess.classification sst5 --data DIR --output DIR [--limit N]

Writes ``OUTPUT/{train,valid,test}.trees`` (SST, if the data contain trees) or ``OUTPUT/{train,valid,test}.tsv``, the
two formats that ``fairseq-preprocess --task tree_classification`` reads.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from preprocess import reviews, sentiment_treebank
from preprocess.command import prepare_data_set
from preprocess.labelled_lines import Splits, report, shorten, write_splits

ABOUT = {
    "sst5": "Stanford Sentiment Treebank, five classes at every node",
    "sst2": "the same without neutral sentences, two classes",
    "imdb": "IMDB reviews, raw text",
    "movie_reviews": "polarity dataset 2.0, tokenised documents",
}
_VALID = {"imdb": 2500, "movie_reviews": 180}


def load(args: argparse.Namespace, work: Path) -> tuple[Splits, str]:
    """Returns the splits of the data set that a command line names, and the suffix of their files.

    Raises CorpusError if files are missing or malformed and FetchError if an archive cannot be extracted.
    """
    if args.name == "sst5":
        return sentiment_treebank.load_trees(args.data, sentiment_treebank.FIVE), "trees"
    if args.name == "sst2":
        return sentiment_treebank.load_trees(args.data, sentiment_treebank.TWO), "trees"
    if args.name == "imdb":
        return reviews.load_imdb(args.data, work, args.valid, args.seed, args.workers), "tsv"
    return reviews.load_polarity(args.data, work, args.fold, args.valid, args.seed), "tsv"


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m preprocess.classification", description=__doc__.splitlines()[0])
    names = parser.add_subparsers(dest="name", metavar="NAME", required=True)
    parsers = {name: names.add_parser(name, help=about, description=about) for name, about in ABOUT.items()}
    for name, each in parsers.items():
        each.add_argument("--data", type=Path, required=True, help="folder of the data set")
        each.add_argument("--output", type=Path, required=True)
        each.add_argument("--limit", type=int, help="a random sample of that many examples of every split")
        each.add_argument("--seed", type=int, default=1, help="seed of random draws (default: %(default)s)")
        if name in _VALID:
            each.add_argument(
                "--valid",
                type=int,
                default=_VALID[name],
                help="examples held out of train to validate on (default: %(default)s)",
            )
    parsers["imdb"].add_argument(
        "--workers", type=int, default=1, help="processes that tokenise (default: %(default)s)"
    )
    parsers["movie_reviews"].add_argument(
        "--fold",
        type=int,
        default=1,
        choices=range(1, reviews.FOLDS + 1),
        metavar=f"1..{reviews.FOLDS}",
        help="the tenth to test on, in the order of the files (default: %(default)s)",
    )
    return parser.parse_args(arguments)


def prepare(args: argparse.Namespace) -> dict[str, int]:
    """Writes the splits that the command line asks for; returns the number of examples of each."""
    args.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=args.output) as work:
        splits, suffix = load(args, Path(work))
    splits = shorten(splits, args.limit, args.seed)
    report(splits)
    return write_splits(splits, args.output, suffix)


def main(arguments: list[str] | None = None) -> int:
    """Command line of this module; returns the exit status."""
    args = _arguments(arguments)
    return prepare_data_set("classification", args.name, lambda: prepare(args))


if __name__ == "__main__":
    raise SystemExit(main())
