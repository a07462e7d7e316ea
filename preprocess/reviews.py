"""Film reviews: documents of many sentences, ``positive`` or ``negative``.

IMDB (Maas et al. 2011) is a folder of files, ``{train,test}/{pos,neg}/*.txt``, or the archive of that folder. The
polarity dataset of Pang and Lee (2004) is either ``pos.txt`` and ``neg.txt``, with a tokenised document on each line
in the order of the published files, or the archive with a file for each document. It has no published splits: the
literature tests on each tenth in turn.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from pathlib import Path

from preprocess.corpora import CorpusError, clean_line
from preprocess.labelled_lines import Labelled, Splits, hold_out
from preprocess.logical_forms import raw_lines
from preprocess.moses import TokenizerOptions, tokenize_lines
from preprocess.official import unpack
from tree_fairseq.support.python_versions import zip_equal

CLASSES = {"neg": "negative", "pos": "positive"}
FOLDS = 10

_MARKUP = re.compile(r"<[a-zA-Z/][^<>]*>")
_CLITIC = re.compile(r"(?<=\w)(n't|'(?:s|re|ve|ll|d|m))(?!\w)")


def split_clitics(text: str) -> str:
    """Returns a text whose clitics, such as *n't* and *'s*, are words of their own, as in treebanks."""
    return _CLITIC.sub(r" \1", text)


def load_imdb(data: Path, work: Path, valid: int, seed: int, workers: int = 1) -> Splits:
    """Reads the splits of IMDB as Moses tokens; ``valid`` reviews are held out of train.

    Raises CorpusError if folders are missing or empty.
    """
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

    Raises CorpusError if files are missing, or a class has too few documents.

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
