"""CoGnition (Li et al. 2021), English to Chinese, with a test set of compounds that do not occur in training.

Chinese sentences are segmented into words. ``--data`` is a clone of the repository of the authors
(https://github.com/yafuly/CoGnition), or a folder with the files of its folders ``data`` and ``eval``. ``test`` is the
random test set and ``test1`` the test set of compounds; ``test1.compound`` has the compound of each line. ``lexicon``
has the translations of the words of compounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from preprocess.corpora import Corpus, CorpusError, Pair, PrepareOptions, read_lines, read_pairs
from preprocess.logical_forms import raw_lines

STEMS = {"train": "train", "valid": "valid", "test": "test", "test1": "cg-test/cg-test"}


def load(data: Path, languages: Pair, options: PrepareOptions) -> Corpus:
    """Reads the splits of the folder, the compounds and the lexicon. Raises CorpusError if a file is missing."""
    folder = data / "data" if (data / "data").is_dir() else data
    splits = {
        split: read_pairs(*(_file(folder / f"{stem}.{language}") for language in languages))
        for split, stem in STEMS.items()
    }
    lexicon = next(
        (path for path in (data / "eval" / "lexicon", data / "lexicon") if path.is_file()), data / "eval" / "lexicon"
    )
    beside = {
        "test1.compound": read_lines(_file(folder / f"{STEMS['test1']}.compound")),
        "lexicon": _lexicon(_file(lexicon)),
    }
    return Corpus(splits, {}, beside)


def _file(path: Path) -> Path:
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
