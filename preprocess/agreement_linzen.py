"""The published data sets of subject-verb agreement.

The set of Linzen, Dupoux and Goldberg (2016) is ``agr_50_mostcommon_10K.tsv``, which may be gzipped: a table without
splits whose rows have a sentence and the positions of its subject and verb. Gulordava et al. (2018) test on a part of
it: ``subj_agr_filtered.text`` has a sentence on each line, and ``.gold`` has, in the same order, the position of the
verb from 0, its right and its wrong form, and the number of attractors (nouns of the other number) before it.
"""

from __future__ import annotations

import csv
import logging
import random
from collections.abc import Iterator
from pathlib import Path

from preprocess.agreement_subjects import PLURAL, SINGULAR
from preprocess.corpora import CorpusError, raw_lines
from preprocess.labelled_lines import Labelled, Splits

logger = logging.getLogger(__name__)

TABLE = "agr_50_mostcommon_10K.tsv"
TEST = "subj_agr_filtered"

TRAIN_SHARE, VALID_SHARE = 0.09, 0.01
"""Shares of the whole set, as in the paper; the other nine tenths are the test set."""

_IRREGULAR = {("is", "are"), ("was", "were"), ("has", "have")}
_TAGS = {"VBZ": SINGULAR, "VBP": PLURAL}
_COLUMNS = ("orig_sentence", "verb_index", "verb_pos", "n_diff_intervening")


def example(words: list[str], number: str, attractors: int) -> Labelled:
    """Returns an example: the words before a verb, in lower case as in the test sets, and the number of the verb."""
    return Labelled(" ".join(words).lower(), number, (f"attractors_{attractors}",))


def form_number(right: str, wrong: str) -> str | None:
    """Returns the number of a verb form, given the other form of the verb.

    None means that the two forms do not differ in the ending of the third person.
    """
    right, wrong = right.lower(), wrong.lower()
    if _is_singular(right, wrong):
        return SINGULAR
    return PLURAL if _is_singular(wrong, right) else None


def load_test(text: Path) -> list[Labelled]:
    """Reads the test sentences. Those whose two verb forms do not show the number are left out and logged."""
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
            "%s: %d of %d sentences are left out because their two forms do not show the number: lines %s",
            gold,
            len(unclear),
            len(rows),
            ", ".join(map(str, unclear)),
        )
    return lines


def load_table(path: Path, test_size: int | None, seed: int) -> Splits:
    """Reads the whole set and splits it at random.

    Args:
        test_size: number of test examples to sample; None for all, about 1.4 million
    """
    lines = list(_rows(path))
    random.Random(seed).shuffle(lines)
    train, valid = int(TRAIN_SHARE * len(lines)), int(VALID_SHARE * len(lines))
    # The lines are in random order, so the first of the rest are a random sample.
    test = lines[train + valid :][:test_size]
    return {"train": lines[:train], "valid": lines[train : train + valid], "test": test}


def _rows(path: Path) -> Iterator[Labelled]:
    table = csv.DictReader((f"{line}\n" for line in raw_lines(path)), delimiter="\t")
    if missing := [name for name in _COLUMNS if name not in (table.fieldnames or ())]:
        raise CorpusError(f"{path} has no column {missing[0]}")
    for row in table:
        sentence, verb, tag, attractors = (row[name] or "" for name in _COLUMNS)
        words = sentence.split()
        has_verb = tag in _TAGS and verb.isdecimal() and 1 < int(verb) <= len(words)
        if not has_verb or not attractors.isdecimal():
            raise CorpusError(f"{path}:{table.line_num}: the row does not have a verb and its position")
        yield example(words[: int(verb) - 1], _TAGS[tag], int(attractors))


def _is_singular(form: str, other: str) -> bool:
    return (form, other) in _IRREGULAR or form in third_persons(other)


def third_persons(verb: str) -> list[str]:
    """Returns the regular forms that the third person singular of a verb may have."""
    return [verb + "s", verb + "es", *([verb[:-1] + "ies"] if verb.endswith("y") else [])]
