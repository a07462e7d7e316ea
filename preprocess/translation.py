"""Corpora of translation and of headlines, as they are published: tokenised, or in official archives.

Shared tasks publish archives, ``train.tags`` files, and XML and SGM test sets.
"""

from __future__ import annotations

import html
import random
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from preprocess.corpora import (
    Corpus,
    CorpusError,
    Pair,
    PrepareOptions,
    clean_line,
    find_file,
    keep_pair,
    parallel,
    raw_lines,
    read_lines,
    read_pairs,
)
from preprocess.fetch import unpack
from preprocess.moses import TokenizerOptions, tokenize_lines

_SEGMENT = re.compile(r"<seg[^>]*>(.*?)</seg>", re.IGNORECASE | re.DOTALL)
# lines of a train.tags file that contain no text; titles and descriptions are text and stay
_META = re.compile(r"^\s*<(/?doc|url|talkid|keywords|speaker|reviewer|translator)\b", re.IGNORECASE)
_TAG = re.compile(r"</?(title|description)>", re.IGNORECASE)


def find(folders: list[Path], pattern: str) -> Path:
    """Returns the first file, by sorted path, whose name matches the glob ``pattern`` under one of ``folders``."""
    for folder in folders:
        found = sorted(path for path in folder.rglob(pattern) if path.is_file() and not path.name.startswith("."))
        if found:
            return found[0]
    places = ", ".join(str(folder) for folder in folders)
    raise CorpusError(f"no file named {pattern} under {places}")


def segments(path: Path) -> Iterator[str]:
    """Yields the text of each ``<seg>`` of an XML or SGM test set, with entities resolved.

    The file is read as text, because these files are not well-formed XML (bare ampersands).
    """
    text = path.read_text(encoding="utf-8")
    for match in _SEGMENT.finditer(text):
        # fairseq's preparation of the same sets replaces typographic apostrophes, too
        yield clean_line(html.unescape(match.group(1))).replace("\u2019", "'")


def tagged_lines(path: Path) -> Iterator[str]:
    """Yields the text lines of a ``train.tags`` file, without metadata and without title and description tags."""
    for line in read_lines(path):
        if not _META.match(line):
            yield clean_line(_TAG.sub("", line))


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
# Hyphens stay: a parser knows "co-operation", not "co @-@ operation". Compound-split BLEU splits hyphens later.
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


COMPOUND_STEMS = {"train": "train", "valid": "valid", "test": "test", "test1": "cg-test/cg-test"}


def load_cognition(data: Path, languages: Pair, options: PrepareOptions) -> Corpus:
    """Reads CoGnition (Li et al. 2021), English to Chinese, with a test set of compounds that training does not have.

    Chinese sentences are segmented into words. ``--data`` is a clone of the repository of the authors
    (https://github.com/yafuly/CoGnition), or a folder with the files of its folders ``data`` and ``eval``. ``test`` is
    the random test set and ``test1`` the test set of compounds; ``test1.compound`` has the compound of each line.
    ``lexicon`` has the translations of the words of compounds.
    """
    folder = data / "data" if (data / "data").is_dir() else data
    splits = {
        split: read_pairs(*(_compound_file(folder / f"{stem}.{language}") for language in languages))
        for split, stem in COMPOUND_STEMS.items()
    }
    lexicon = find_file(data, "lexicon") or data / "eval" / "lexicon"
    beside = {
        "test1.compound": read_lines(_compound_file(folder / f"{COMPOUND_STEMS['test1']}.compound")),
        "lexicon": _lexicon(_compound_file(lexicon)),
    }
    return Corpus(splits, {}, beside)


def _compound_file(path: Path) -> Path:
    if not path.is_file():
        raise CorpusError(
            f"{path} is missing: --data takes a clone of https://github.com/yafuly/CoGnition, "
            "with data/ and eval/lexicon"
        )
    return path


def _lexicon(path: Path) -> Iterator[str]:
    """Yields the lines of the lexicon, ``word<TAB>translation/translation``."""
    for number, line in enumerate(raw_lines(path), 1):
        if line.count("\t") != 1:
            raise CorpusError(f"{path}:{number}: not word<TAB>translations")
        yield line


SIDES = ("article", "title")
DRAWN = 500
"""Number of training pairs that become the validation set if the test set is missing, at most a tenth of all."""


def load_gigaword(data: Path, languages: Pair, options: PrepareOptions) -> Corpus:
    """Reads Gigaword headlines (Graff et al. 2003; Rush et al. 2015): the first sentence of an article, and its title.

    The files are those of https://github.com/harvardnlp/sent-summary in their folders: the articles and titles of
    ``train`` and of ``valid.*.filter``, gzipped or not, and the 1,951 lines of the test set in ``Giga``. Samples are
    distributed without the test set. Then the validation lines become the test set, and the validation set is drawn
    from the training lines.
    """
    train = _filled(_headlines(_headline_paths(data, "train.{}.txt")))
    valid = _filled(_headlines(_headline_paths(data, "valid.{}.filter.txt")))
    test = [find_file(data, name, f"{name}.gz") for name in ("input.txt", "task1_ref0.txt")]
    if all(test):
        return Corpus({"train": train, "valid": valid, "test": _headlines(test)}, {})
    pairs = list(train)
    drawn = set(random.Random(1).sample(range(len(pairs)), min(DRAWN, len(pairs) // 10)))
    splits = {
        "train": [pair for index, pair in enumerate(pairs) if index not in drawn],
        "valid": [pairs[index] for index in sorted(drawn)],
        "test": valid,
    }
    return Corpus(splits, {})


def _headline_paths(data: Path, name: str) -> list[Path]:
    paths = [find_file(data, name.format(side), f"{name.format(side)}.gz") for side in SIDES]
    for side, path in zip(SIDES, paths):
        if path is None:
            raise CorpusError(
                f"{data} has no {name.format(side)}: --data takes the files of "
                "https://github.com/harvardnlp/sent-summary"
            )
    return paths


def _headlines(paths: list[Path]) -> Iterator[Pair]:
    return parallel(*map(read_lines, paths), names=(str(paths[0]), str(paths[1])))


def _filled(pairs: Iterator[Pair]) -> Iterator[Pair]:
    """Returns the pairs whose sides are both not empty."""
    return (pair for pair in pairs if all(pair))
