"""Converts a data set of texts or trees and their classes into splits, the first stage of its recipe.

    python -m preprocess.classification sst5 --data DIR --output DIR [--limit N]

Writes ``OUTPUT/{train,valid,test}.trees`` (SST, if the data contain trees) or ``OUTPUT/{train,valid,test}.tsv``, the
two formats that ``fairseq-preprocess --task tree_classification`` reads.

The Stanford Sentiment Treebank (Socher et al. 2013) has a class from 0 to 4 at every node. SST-2 maps 0 and 1 to 0,
3 and 4 to 1, leaves out sentences whose root is neutral (2), and marks neutral nodes of the other sentences as
unlabelled, as Tai, Socher and Manning (2015) do. IMDB (Maas et al. 2011) is a folder of files,
``{train,test}/{pos,neg}/*.txt``, or its archive. The polarity dataset of Pang and Lee (2004) is either ``pos.txt`` and
``neg.txt``, with a tokenised document on each line in the order of the published files, or its archive. It has no
published splits: the literature tests on each tenth in turn.
"""

from __future__ import annotations

import argparse
import html
import logging
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path

from preprocess.command import prepare_data_set
from preprocess.corpora import CorpusError, clean_line, raw_lines
from preprocess.fetch import unpack
from preprocess.labelled_lines import Labelled, Splits, hold_out, report, shorten, write_splits
from preprocess.moses import TokenizerOptions, tokenize_lines
from tree_fairseq.errors import InputError
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.trees.bracket import read_forest, write_forest
from tree_fairseq.trees.tree import Tree

logger = logging.getLogger(__name__)

UNLABELLED = "-"
FIVE = {name: name for name in "01234"}
TWO = {"0": "0", "1": "0", "2": UNLABELLED, "3": "1", "4": "1"}

_SPLITS = {"train": "train", "valid": "dev", "test": "test"}


def load_trees(data: Path, classes: dict[str, str]) -> Splits:
    """Reads the splits of a folder with ``{train,dev,test}.txt``, directly or in its folder ``trees``.

    Args:
        classes: new class for each of the five; sentences whose root becomes `UNLABELLED` are left out and counted
    """
    splits = {}
    for split, name in _SPLITS.items():
        path = _find(data, f"{name}.txt")
        trees = [_relabelled(line, classes, path, number) for number, line in enumerate(raw_lines(path), 1)]
        splits[split] = [Labelled(write_forest((tree,)), tree.label) for tree in trees if tree.label != UNLABELLED]
        if left := len(trees) - len(splits[split]):
            logger.info("%s: %d of %d sentences are neutral and left out", path, left, len(trees))
    return splits


def _find(data: Path, name: str) -> Path:
    """Returns the file in ``trees/``, as in the published archive, or else directly in the folder."""
    inner = data / "trees" / name
    return inner if inner.is_file() else data / name


def _relabelled(line: str, classes: dict[str, str], path: Path, number: int) -> Tree:
    try:
        forest = read_forest(
            line.replace("\N{NO-BREAK SPACE}", "_"), path=path, line_number=number
        )  # "8\u00a01/2" is one word
    except InputError as error:
        raise CorpusError(str(error)) from error
    if len(forest) != 1:
        raise CorpusError(f"{path}:{number}: {len(forest)} trees where one is expected")
    for node in forest[0].preorder():
        if not node.is_leaf and node.label not in classes:
            raise CorpusError(f"{path}:{number}: the label {node.label!r} is not a class from 0 to 4")
    tree = forest[0].map_labels(classes.__getitem__)
    return tree.map_leaves([_plain(word) for word in tree.leaves()])


def _plain(word: str) -> str:
    """Returns a word without the backslashes of the treebank: ``and\\/or`` is ``and/or``."""
    return word.replace("\\/", "/").replace("\\*", "*")


CLASSES = {"neg": "negative", "pos": "positive"}
FOLDS = 10

_MARKUP = re.compile(r"<[a-zA-Z/][^<>]*>")
_CLITIC = re.compile(r"(?<=\w)(n't|'(?:s|re|ve|ll|d|m))(?!\w)")


def split_clitics(text: str) -> str:
    """Returns a text whose clitics, such as *n't* and *'s*, are words of their own, as in treebanks."""
    return _CLITIC.sub(r" \1", text)


def load_imdb(data: Path, work: Path, valid: int, seed: int, workers: int = 1) -> Splits:
    """Reads the splits of IMDB as Moses tokens; ``valid`` reviews are held out of train."""
    for folder in unpack(data, work):
        for root in (folder, folder / "aclImdb"):
            if (root / "train").is_dir():
                train, test = (_tokenized(_documents(root / split), workers) for split in ("train", "test"))
                train, held_out = hold_out(train, valid, seed)
                return {"train": train, "valid": held_out, "test": test}
    raise CorpusError(
        f"{data} holds neither train/pos, train/neg, test/pos and test/neg nor the archive aclImdb_v1.tar.gz"
    )


def load_polarity(data: Path, work: Path, fold: int, valid: int, seed: int) -> Splits:
    """Reads the polarity dataset. A tenth of each class is the test set; ``valid`` documents are held out of the rest.

    Args:
        work: folder to extract an archive into
        fold: number of the tenth, from 1, in the order of the files: fold 1 has the files cv000 to cv099
    """
    train, test = [], []
    for name, documents in _polarity_classes(data, work).items():
        if len(documents) < FOLDS:
            raise CorpusError(f"{data}: {len(documents)} documents of {name} are too few for {FOLDS} folds")
        first, last = (len(documents) * part // FOLDS for part in (fold - 1, fold))
        lines = [Labelled(split_clitics(document), name) for document in documents]
        test += lines[first:last]
        train += lines[:first] + lines[last:]
    train, held_out = hold_out(train, valid, seed)
    return {"train": train, "valid": held_out, "test": test}


def _polarity_classes(data: Path, work: Path) -> dict[str, list[str]]:
    """Returns the documents of each class, in order."""
    if all((data / f"{part}.txt").is_file() for part in CLASSES):
        return {name: [clean_line(line) for line in raw_lines(data / f"{part}.txt")] for part, name in CLASSES.items()}
    for folder in unpack(data, work):
        root = folder / "txt_sentoken"
        if root.is_dir():
            documents = _documents(root)
            return {name: [line.text for line in documents if line.name == name] for name in CLASSES.values()}
    raise CorpusError(f"{data} holds neither pos.txt and neg.txt nor the archive review_polarity.tar.gz")


def _documents(root: Path) -> list[Labelled]:
    """Reads the files of ``root/pos`` and ``root/neg``, sorted by name; removes markup and resolves entities."""
    lines = []
    for part, name in CLASSES.items():
        paths = sorted((root / part).glob("*.txt"))
        if not paths:
            raise CorpusError(f"{root / part} holds no *.txt")
        for path in paths:
            text = " ".join(raw_lines(path))
            lines.append(Labelled(clean_line(html.unescape(_MARKUP.sub(" ", text))), name))
    return lines


def _tokenized(lines: Iterable[Labelled], workers: int) -> list[Labelled]:
    lines = list(lines)
    tokens = tokenize_lines((line.text for line in lines), TokenizerOptions("en", normalize=True), workers)
    return [line._replace(text=text) for line, text in zip_equal(lines, tokens)]


ABOUT = {
    "sst5": "Stanford Sentiment Treebank, five classes at every node",
    "sst2": "the same without neutral sentences, two classes",
    "imdb": "IMDB reviews, raw text",
    "movie_reviews": "polarity dataset 2.0, tokenised documents",
}
_VALID = {"imdb": 2500, "movie_reviews": 180}


def load(args: argparse.Namespace, work: Path) -> tuple[Splits, str]:
    """Returns the splits of the data set that a command line names, and the suffix of their files."""
    if args.name == "sst5":
        return load_trees(args.data, FIVE), "trees"
    if args.name == "sst2":
        return load_trees(args.data, TWO), "trees"
    if args.name == "imdb":
        return load_imdb(args.data, work, args.valid, args.seed, args.workers), "tsv"
    return load_polarity(args.data, work, args.fold, args.valid, args.seed), "tsv"


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
        choices=range(1, FOLDS + 1),
        metavar=f"1..{FOLDS}",
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
