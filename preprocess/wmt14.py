"""WMT'14 English-German from the official archives.

Training on Europarl v7, Common Crawl and News Commentary v9; validation on newstest2013, test on newstest2014.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from preprocess.corpora import Corpus, Pair, PrepareOptions, keep_pair, parallel, read_lines
from preprocess.moses import TokenizerOptions, tokenize_lines
from preprocess.official import find, segments, unpack

TRAINING = ("europarl-v7.de-en", "commoncrawl.de-en", "news-commentary-v9.de-en")


def _tokenized(lines: Iterator[str], language: str, options: PrepareOptions) -> Iterator[str]:
    # No dashes=True: a parser knows "co-operation", not "co @-@ operation". Compound-split BLEU splits hyphens later.
    return tokenize_lines(lines, TokenizerOptions(language, normalize=True), options.workers)


def _training_pairs(folders: list[Path], languages: Pair, options: PrepareOptions) -> Iterator[Pair]:
    for corpus in TRAINING:
        paths = [find(folders, f"{corpus}.{language}") for language in languages]
        sides = [_tokenized(read_lines(path), language, options) for path, language in zip(paths, languages)]
        for pair in parallel(*sides, names=(str(paths[0]), str(paths[1]))):
            if keep_pair(pair, minimum=1, maximum=250, ratio=1.5):
                yield pair


def _test_set(folders: list[Path], patterns: Pair, languages: Pair, options: PrepareOptions):
    """Returns the pairs of one set, and its untokenised target lines."""
    paths = [find(folders, pattern) for pattern in patterns]
    raw = [list(segments(path)) for path in paths]
    sides = [_tokenized(iter(lines), language, options) for lines, language in zip(raw, languages)]
    return list(parallel(*sides, names=(str(paths[0]), str(paths[1])))), raw[1]


def load(data: Path, languages: Pair, options: PrepareOptions) -> Corpus:
    """Reads the three training corpora, newstest2013 for validation, and the full newstest2014 for test.

    Raises CorpusError if a file of the official archives is missing.
    """
    folders = unpack(data, options.work)
    source, target = languages
    valid, _ = _test_set(
        folders, (f"newstest2013-src.{source}.sgm", f"newstest2013-src.{target}.sgm"), languages, options
    )
    test, references = _test_set(
        folders, (f"newstest2014-deen-src.{source}.sgm", f"newstest2014-deen-ref.{target}.sgm"), languages, options
    )
    return Corpus(
        {"train": _training_pairs(folders, languages, options), "valid": valid, "test": test}, {"test": references}
    )
