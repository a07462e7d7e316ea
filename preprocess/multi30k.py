"""Multi30k (Elliott et al. 2016), task 1: the lower-cased, normalised, tokenised files of the data set's repository."""

from __future__ import annotations

from pathlib import Path

from preprocess.corpora import Corpus, CorpusError, Pair, PrepareOptions, read_lines, read_pairs

# our split -> stem of the files in the folders data/task1 of the repository
STEMS = {"train": "train", "valid": "val", "test": "test_2016_flickr", "test1": "test_2017_flickr"}
TOKENIZED = "lc.norm.tok"


def load(data: Path, languages: Pair, options: PrepareOptions) -> Corpus:
    """Reads the splits of the folder, and the untokenised target side of each test set that the folder has.

    Raises CorpusError if a tokenised file is missing.
    """
    for stem in STEMS.values():
        for language in languages:
            path = data / f"{stem}.{TOKENIZED}.{language}"
            if not path.is_file():
                raise CorpusError(
                    f"{path} is missing: --data takes the files of data/task1/tok of "
                    "https://github.com/multi30k/dataset (and, for untokenised references, those of data/task1/raw)"
                )
    splits = {
        split: read_pairs(*(data / f"{stem}.{TOKENIZED}.{language}" for language in languages))
        for split, stem in STEMS.items()
    }
    references = {}
    for split in ("test", "test1"):
        raw = data / f"{STEMS[split]}.{languages[1]}"
        if raw.is_file():
            references[split] = read_lines(raw)
    return Corpus(splits, references)
