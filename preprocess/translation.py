"""Corpora of translation: Multi30k, IWSLT's TED talks and WMT'14, as published tokenised or from official archives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from preprocess.corpora import Corpus, CorpusError, Pair, PrepareOptions, keep_pair, parallel, read_lines, read_pairs
from preprocess.moses import TokenizerOptions, tokenize_lines
from preprocess.official import find, segments, tagged_lines, unpack

# Multi30k: our split -> stem of the files in the folders data/task1 of the repository
STEMS = {"train": "train", "valid": "val", "test": "test_2016_flickr", "test1": "test_2017_flickr"}
TOKENIZED = "lc.norm.tok"

# the test set of IWSLT'14 De-En in fairseq's preparation, in its order, and the part of it that the En-Fr release has
IWSLT14_TEST = {
    "de-en": ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012"),
    "en-fr": ("TED.dev2010", "TED.tst2010", "TED.tst2011", "TED.tst2012"),
}
VALID_EVERY = 23  # every 23rd training pair goes to the validation set, as in fairseq's preparation
LOWER = {"lower": True}

WMT14_TRAINING = ("europarl-v7.de-en", "commoncrawl.de-en", "news-commentary-v9.de-en")
# No dashes=True: a parser knows "co-operation", not "co @-@ operation". Compound-split BLEU splits hyphens later.
NORMALIZED = {"normalize": True}


def load_multi30k(data: Path, languages: Pair, options: PrepareOptions) -> Corpus:
    """Reads the lower-cased, normalised, tokenised files of task 1 in the repository of Multi30k (Elliott et al. 2016).

    The untokenised target side of a test set is a reference if the folder has it. Raises CorpusError if a tokenised
    file is missing.
    """
    paths = {
        split: [data / f"{stem}.{TOKENIZED}.{language}" for language in languages] for split, stem in STEMS.items()
    }
    for path in (path for sides in paths.values() for path in sides):
        if not path.is_file():
            raise CorpusError(
                f"{path} is missing: --data takes the files of data/task1/tok of "
                "https://github.com/multi30k/dataset (and, for untokenised references, those of data/task1/raw)"
            )
    raw = {split: data / f"{STEMS[split]}.{languages[1]}" for split in ("test", "test1")}
    references = {split: read_lines(path) for split, path in raw.items() if path.is_file()}
    return Corpus({split: read_pairs(*sides) for split, sides in paths.items()}, references)


def _tokenized_pairs(
    paths: list[Path], sides: Iterable[Iterator[str]], languages: Pair, options: PrepareOptions, settings: dict
) -> Iterator[Pair]:
    tokenized = [
        tokenize_lines(lines, TokenizerOptions(language, **settings), options.workers)
        for lines, language in zip(sides, languages)
    ]
    return parallel(*tokenized, names=(str(paths[0]), str(paths[1])))


def _training_pairs(
    folders: list[Path],
    name: str,
    read: Callable[[Path], Iterator[str]],
    languages: Pair,
    options: PrepareOptions,
    settings: dict,
    longest: int,
) -> Iterator[Pair]:
    """Yields the pairs of a corpus of this name whose sides have up to ``longest`` words and similar lengths."""
    paths = [find(folders, f"{name}.{language}") for language in languages]
    for pair in _tokenized_pairs(paths, map(read, paths), languages, options, settings):
        if keep_pair(pair, minimum=1, maximum=longest, ratio=1.5):
            yield pair


def _test_set(
    paths: list[Path], languages: Pair, options: PrepareOptions, settings: dict
) -> tuple[list[Pair], list[str]]:
    """Returns the pairs of one set, and its untokenised target lines."""
    raw = [list(segments(path)) for path in paths]
    return list(_tokenized_pairs(paths, map(iter, raw), languages, options, settings)), raw[1]


def _ted_test_sets(folders: list[Path], names: Iterable[str], release: str, languages: Pair, options: PrepareOptions):
    """Returns the pairs of the named sets one after the other, and their untokenised target lines."""
    pairs: list[Pair] = []
    references: list[str] = []
    for name in names:
        paths = [find(folders, f"IWSLT*.{name}.{release}.{language}.xml") for language in languages]
        more, lines = _test_set(paths, languages, options, LOWER)
        pairs += more
        references += lines
    return pairs, references


def _ted_training_pairs(folders: list[Path], release: str, languages: Pair, options: PrepareOptions) -> list[Pair]:
    return [*_training_pairs(folders, f"train.tags.{release}", tagged_lines, languages, options, LOWER, longest=175)]


def _tokenized_folder(data: Path, languages: Pair) -> Corpus | None:
    """Reads a folder of tokenised ``{train,valid,test}.{language}``; ``train`` may be called ``train_dedup``.

    Returns None if files are missing.
    """
    for train in ("train", "train_dedup"):
        prefixes = {"train": data / train, "valid": data / "valid", "test": data / "test"}
        paths = {split: [Path(f"{prefix}.{language}") for language in languages] for split, prefix in prefixes.items()}
        if all(path.is_file() for group in paths.values() for path in group):
            return Corpus({split: read_pairs(*group) for split, group in paths.items()}, {})
    return None


def load_iwslt14(data: Path, languages: Pair, options: PrepareOptions) -> Corpus:
    """Reads IWSLT'14 German-English or English-French, in either direction, with the splits of fairseq.

    Every 23rd pair goes to the validation set. The test set is the five sets of the release (four with French). Raises
    CorpusError if ``data`` is neither a tokenised folder nor the official release of WIT3 (https://wit3.fbk.eu).
    """
    ready = _tokenized_folder(data, languages)
    if ready is not None:
        return ready
    folders = unpack(data, options.work)
    release = "-".join(sorted(languages))
    pairs = _ted_training_pairs(folders, release, languages, options)
    test, references = _ted_test_sets(folders, IWSLT14_TEST[release], release, languages, options)
    splits = {
        "train": [pair for number, pair in enumerate(pairs, 1) if number % VALID_EVERY],
        "valid": pairs[VALID_EVERY - 1 :: VALID_EVERY],
        "test": test,
    }
    return Corpus(splits, {"test": references})


def load_iwslt13(data: Path, languages: Pair, options: PrepareOptions) -> Corpus:
    """Reads IWSLT'13 English-French in either direction: TED tst2012 is the validation set, tst2013 the test set."""
    ready = _tokenized_folder(data, languages)
    if ready is not None:
        return ready
    folders = unpack(data, options.work)
    valid, _ = _ted_test_sets(folders, ("TED.tst2012",), "en-fr", languages, options)
    test, references = _ted_test_sets(folders, ("TED.tst2013",), "en-fr", languages, options)
    train = _ted_training_pairs(folders, "en-fr", languages, options)
    return Corpus({"train": train, "valid": valid, "test": test}, {"test": references})


def load_wmt14(data: Path, languages: Pair, options: PrepareOptions) -> Corpus:
    """Reads WMT'14 English-German: Europarl v7, Common Crawl and News Commentary v9; newstest2013; newstest2014.

    The test set is the full newstest2014. Raises CorpusError if a file of the official archives is missing.
    """
    folders = unpack(data, options.work)
    source, target = languages
    valid = [find(folders, f"newstest2013-src.{language}.sgm") for language in languages]
    test = [find(folders, f"newstest2014-deen-{side}.sgm") for side in (f"src.{source}", f"ref.{target}")]
    train = (
        pair
        for name in WMT14_TRAINING
        for pair in _training_pairs(folders, name, read_lines, languages, options, NORMALIZED, longest=250)
    )
    validation, _ = _test_set(valid, languages, options, NORMALIZED)
    pairs, references = _test_set(test, languages, options, NORMALIZED)
    return Corpus({"train": train, "valid": validation, "test": pairs}, {"test": references})
