"""IWSLT TED talks, from a tokenised folder or from the official release of WIT3 (https://wit3.fbk.eu)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from preprocess.corpora import Corpus, Pair, PrepareOptions, keep_pair, parallel, read_pairs
from preprocess.moses import TokenizerOptions, tokenize_lines
from preprocess.official import find, segments, tagged_lines, unpack

# the test set of IWSLT'14 De-En in fairseq's preparation, in its order, and the part of it that the En-Fr release has
IWSLT14_TEST = {
    "de-en": ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012"),
    "en-fr": ("TED.dev2010", "TED.tst2010", "TED.tst2011", "TED.tst2012"),
}
VALID_EVERY = 23  # every 23rd training pair goes to the validation set, as in fairseq's preparation


def _tokenized(lines: Iterator[str], language: str, options: PrepareOptions) -> Iterator[str]:
    return tokenize_lines(lines, TokenizerOptions(language, lower=True), options.workers)


def _training_pairs(folders: list[Path], release: str, languages: Pair, options: PrepareOptions) -> list[Pair]:
    paths = [find(folders, f"train.tags.{release}.{language}") for language in languages]
    sides = [_tokenized(tagged_lines(path), language, options) for path, language in zip(paths, languages)]
    pairs = parallel(*sides, names=(str(paths[0]), str(paths[1])))
    return [pair for pair in pairs if keep_pair(pair, minimum=1, maximum=175, ratio=1.5)]


def _test_set(folders: list[Path], names, release: str, languages: Pair, options: PrepareOptions):
    """Returns the pairs of the named sets one after the other, and their untokenised target lines."""
    pairs: list[Pair] = []
    references: list[str] = []
    for name in names:
        paths = [find(folders, f"IWSLT*.{name}.{release}.{language}.xml") for language in languages]
        raw = [list(segments(path)) for path in paths]
        sides = [_tokenized(iter(lines), language, options) for lines, language in zip(raw, languages)]
        pairs.extend(parallel(*sides, names=(str(paths[0]), str(paths[1]))))
        references.extend(raw[1])
    return pairs, references


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

    Every 23rd pair goes to the validation set. The test set is the five sets of the release (four with French).

    Raises CorpusError if ``data`` is neither a tokenised folder nor the official release.
    """
    ready = _tokenized_folder(data, languages)
    if ready is not None:
        return ready
    folders = unpack(data, options.work)
    release = "-".join(sorted(languages))
    pairs = _training_pairs(folders, release, languages, options)
    test, references = _test_set(folders, IWSLT14_TEST[release], release, languages, options)
    splits = {
        "train": [pair for number, pair in enumerate(pairs, 1) if number % VALID_EVERY],
        "valid": pairs[VALID_EVERY - 1 :: VALID_EVERY],
        "test": test,
    }
    return Corpus(splits, {"test": references})


def load_iwslt13(data: Path, languages: Pair, options: PrepareOptions) -> Corpus:
    """Reads IWSLT'13 English-French in either direction: TED tst2012 is the validation set, tst2013 the test set.

    Raises CorpusError if ``data`` is neither a tokenised folder nor the official releases.
    """
    ready = _tokenized_folder(data, languages)
    if ready is not None:
        return ready
    folders = unpack(data, options.work)
    valid, _ = _test_set(folders, ("TED.tst2012",), "en-fr", languages, options)
    test, references = _test_set(folders, ("TED.tst2013",), "en-fr", languages, options)
    train = _training_pairs(folders, "en-fr", languages, options)
    return Corpus({"train": train, "valid": valid, "test": test}, {"test": references})
