"""Published sets of subject-verb agreement: Linzen, Dupoux and Goldberg (2016), and the part of it that Gulordava et al. (2018) test on.

The whole set is ``agr_50_mostcommon_10K.tsv``, perhaps gzipped: a table with a sentence and the places of subject and verb
a row, not split. The part is ``subj_agr_filtered.text``, a sentence a line, and ``.gold``, in the same order: the verb's
position from 0, its right and its wrong form, and the number of attractors (nouns of the other number) before it.
"""

from __future__ import annotations

import csv
import gzip
import logging
import random
from collections.abc import Iterator
from pathlib import Path

from preprocess.agreement_subjects import PLURAL, SINGULAR
from preprocess.corpora import CorpusError
from preprocess.labelled_lines import Labelled, Splits
from preprocess.logical_forms import raw_lines

logger = logging.getLogger(__name__)

TABLE = "agr_50_mostcommon_10K.tsv"
TEST = "subj_agr_filtered"

TRAIN_SHARE, VALID_SHARE = 0.09, 0.01
"""Of the whole set, as in the paper; nine tenths test."""

_IRREGULAR = {("is", "are"), ("was", "were"), ("has", "have")}
_TAGS = {"VBZ": SINGULAR, "VBP": PLURAL}
_COLUMNS = ("orig_sentence", "verb_index", "verb_pos", "n_diff_intervening")


def example(words: list[str], number: str, attractors: int) -> Labelled:
    """The words before a verb, in lower case as in the test sets, and the verb's number."""
    return Labelled(" ".join(words).lower(), number, (f"attractors_{attractors}",))


def form_number(right: str, wrong: str) -> str | None:
    """The number of a verb's form, given its other form; None where they do not differ in the third person's ending."""
    right, wrong = right.lower(), wrong.lower()
    if _is_singular(right, wrong):
        return SINGULAR
    return PLURAL if _is_singular(wrong, right) else None


def find(data: Path, *names: str) -> Path | None:
    """The first file of one of these names, in the folder or below it."""
    for name in names:
        if found := sorted(path for path in data.rglob(name) if path.is_file()):
            return found[0]
    return None


def load_test(text: Path) -> list[Labelled]:
    """The test sentences; those whose two forms do not tell the number are left out, and counted.

    Args:
        text: path of ``subj_agr_filtered.text``; ``.gold`` stands beside it

    Raises:
        CorpusError: a line of ``.gold`` is malformed, or not of its sentence
    """
    gold = text.with_suffix(".gold")
    sentences, rows = list(raw_lines(text)), list(raw_lines(gold))
    if len(sentences) != len(rows):
        raise CorpusError(f"{gold} has {len(rows)} lines, {text} has {len(sentences)}")
    lines, unclear = [], []
    for number, (sentence, row) in enumerate(zip(sentences, rows), 1):
        words, columns = sentence.split(), row.split("\t")
        if len(columns) != 4 or not columns[0].isdecimal() or not columns[3].isdecimal():
            raise CorpusError(f"{gold}:{number}: not index<TAB>right verb<TAB>wrong verb<TAB>attractors")
        place, right, wrong = int(columns[0]), columns[1], columns[2]
        if not 0 < place < len(words) or words[place].lower() != right.lower():
            raise CorpusError(f"{gold}:{number}: word {place} of the sentence is not {right!r}")
        if (form := form_number(right, wrong)) is None:
            unclear.append(number)
            continue
        lines.append(example(words[:place], form, int(columns[3])))
    if unclear:
        logger.info(
            "%s: %d of %d sentences are left out, their two forms do not tell the number: lines %s",
            gold,
            len(unclear),
            len(rows),
            ", ".join(map(str, unclear)),
        )
    return lines


def load_table(path: Path, test_size: int | None, seed: int) -> Splits:
    """The whole set, drawn into splits.

    Args:
        path: of the table
        test_size: a random sample of that many test examples; None for all, about 1.4 million
        seed: of the draw

    Raises:
        CorpusError: the table is malformed
    """
    lines = list(_rows(path))
    random.Random(seed).shuffle(lines)
    train, valid = int(TRAIN_SHARE * len(lines)), int(VALID_SHARE * len(lines))
    # What follows is in random order, so its beginning is a sample.
    test = lines[train + valid :][:test_size]
    return {"train": lines[:train], "valid": lines[train : train + valid], "test": test}


def _rows(path: Path) -> Iterator[Labelled]:
    with (
        gzip.open(path, "rt", encoding="utf-8", newline="")
        if path.suffix == ".gz"
        else open(path, encoding="utf-8", newline="") as stream
    ):
        table = csv.DictReader(stream, delimiter="\t")
        if missing := [name for name in _COLUMNS if name not in (table.fieldnames or ())]:
            raise CorpusError(f"{path} has no column {missing[0]}")
        for row in table:
            words, verb, attractors = (
                (row["orig_sentence"] or "").split(),
                row["verb_index"] or "",
                row["n_diff_intervening"] or "",
            )
            if (
                row["verb_pos"] not in _TAGS
                or not verb.isdecimal()
                or not 1 < int(verb) <= len(words)
                or not attractors.isdecimal()
            ):
                raise CorpusError(
                    f"{path}:{table.line_num}: the row does not tell a verb and its place in the sentence"
                )
            yield example(words[: int(verb) - 1], _TAGS[row["verb_pos"]], int(attractors))


def _is_singular(form: str, other: str) -> bool:
    regular = {other + "s", other + "es"} | ({other[:-1] + "ies"} if other.endswith("y") else set())
    return (form, other) in _IRREGULAR or form in regular
