"""Converts the folder of a data set into aligned, tokenised splits, the first stage of every recipe.

    python -m preprocess.prepare multi30k --data DIR --source en --target de --output DIR [--subset N]

Writes ``OUTPUT/{split}.{language}``, and ``OUTPUT/raw/{split}.{target}`` if the source publishes untokenised test sets.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from pathlib import Path

from preprocess import described_programs, translation
from preprocess.command import prepare_data_set
from preprocess.corpora import (
    Corpus,
    CorpusError,
    Pair,
    PrepareOptions,
    sample,
    short_pairs,
    write_columns,
    write_lines,
)

LOADERS = {
    "cognition": translation.load_cognition,
    "django": described_programs.load_django,
    "gigaword": translation.load_gigaword,
    "hearthstone": described_programs.load_hearthstone,
    "iwslt13": translation.load_iwslt13,
    "iwslt14": translation.load_iwslt14,
    "iwslt14_en_fr": translation.load_iwslt14,
    "multi30k": translation.load_multi30k,
    "wmt14": translation.load_wmt14,
}


def write_corpus(
    corpus: Corpus,
    output: Path,
    languages: Pair,
    subset: int | None = None,
    limit: int | None = None,
    up_to: int | None = None,
) -> dict[str, int]:
    """Writes a corpus; returns the number of pairs of each split.

    Args:
        subset: number of training pairs to draw with a fixed seed
        limit: number of first pairs of every split to keep, for toy runs
        up_to: words of the longest source that is kept in the training set
    """
    counts = {}
    for split, pairs in corpus.splits.items():
        pairs = itertools.islice(pairs, limit)
        if split == "train":
            pairs = short_pairs(pairs, up_to)
        if split == "train" and subset is not None:
            pairs = sample(pairs, subset)
        counts[split] = write_columns(output / split, languages, pairs)
    for split, lines in corpus.references.items():
        number = write_lines(output / "raw" / f"{split}.{languages[1]}", itertools.islice(lines, limit))
        if number != counts[split]:
            raise CorpusError(f"{split}: {number} untokenised references for {counts[split]} pairs")
    for name, lines in corpus.beside.items():
        split = name.split(".")[0]
        number = write_lines(output / name, itertools.islice(lines, limit) if split in counts else lines)
        if split in counts and number != counts[split]:
            raise CorpusError(f"{name}: {number} lines for {counts[split]} pairs")
    for split, count in counts.items():
        if count == 0:
            raise CorpusError(f"{split} is empty")
    return counts


def main(arguments: list[str] | None = None) -> int:
    """Command line of this module; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m preprocess.prepare", description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=sorted(LOADERS))
    parser.add_argument("--data", type=Path, required=True, help="folder of the data set")
    parser.add_argument("--source", required=True, help="source language")
    parser.add_argument("--target", required=True, help="target language")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--up-to", type=int, help="train on pairs whose sources have at most that many words")
    parser.add_argument("--subset", type=int, help="train on a random sample of that many pairs")
    parser.add_argument("--limit", type=int, help="only the first pairs of every split")
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args(arguments)
    languages = (args.source, args.target)
    args.output.mkdir(parents=True, exist_ok=True)

    def prepare() -> dict[str, int]:
        with tempfile.TemporaryDirectory(dir=args.output.parent) as extracted:
            corpus = LOADERS[args.name](args.data, languages, PrepareOptions(Path(extracted), args.workers))
            return write_corpus(corpus, args.output, languages, args.subset, args.limit, args.up_to)

    return prepare_data_set("prepare", args.name, prepare)


if __name__ == "__main__":
    raise SystemExit(main())
