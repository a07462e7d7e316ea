"""Scores translations of CoGnition, English to Chinese: error rates of compounds (Li et al. 2021, section 5), and BLEU.

    python examples/cognition/compounds.py --run runs/treeformer --references words --target-lang zh \\
        --sets test=random test1=cg --against runs/transformer --result result.json

A compound is a noun phrase that may follow a preposition or a verb, such as ``saw the red car on the floor``. Its
translation in a sentence is right if the sentence has a translation of each of its words, and if the words that precede
a noun in Chinese do so.

``--references`` is the folder with ``{subset}.{language}``, the ``lexicon`` and, for a test set of compounds,
``{subset}.compound``. Of such a set ``instance_error_rate`` is the percentage of sentences with a wrong compound, and
``aggregate_error_rate`` the percentage of compounds that are wrong in at least one of their five sentences.
``sacrebleu`` is computed on Chinese text without blanks, with sacreBLEU's tokeniser for Chinese.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tree_fairseq.errors import ScoringError
from tree_fairseq.scoring.measures import MeanMeasure, Measure, TextMeasure, text_metric
from tree_fairseq.scoring.outputs import read_hypotheses, read_text
from tree_fairseq.scoring.runs import RunSet, generated
from tree_fairseq.trees.text import read_lines

CONTEXTS = 5  # number of consecutive sentences with the same compound

PREPOSITIONS = "about around before behind except for from inside like near on to toward towards under with without"
DETERMINERS = "the every any another each"
MODIFIERS = {"he liked": "mod0", "at the store": "mod1", "on the floor": "mod2"}
"""Phrases that follow a noun, and their names in the lexicon."""


@dataclass(frozen=True)
class Compound:
    """The parts of a compound, as the lexicon names them."""

    head: str  # preposition or verb, or ""
    before: tuple[str, ...]  # determiner and adjectives
    noun: str
    modifier: str  # the phrase after the noun, or ""

    @property
    def kind(self) -> str:
        """``NP``, ``VP`` or ``PP``."""
        return "NP" if not self.head else "PP" if self.head in PREPOSITIONS.split() else "VP"

    @property
    def parts(self) -> tuple[str, ...]:
        """All parts that need a translation."""
        return tuple(part for part in (self.head, *self.before, self.noun, self.modifier) if part)


def read_compound(text: str) -> Compound:
    """Parses ``[preposition | verb] [determiner] adjective* noun [modifier]``. Raises ScoringError without a noun."""
    phrase = " ".join(text.split())
    ending = next((ending for ending in MODIFIERS if f" {phrase}".endswith(f" {ending}")), "")
    words = phrase.removesuffix(ending).split()
    if len(words) < 2:
        raise ScoringError(f"{text!r} is not a compound: [preposition or verb] determiner adjectives noun [modifier]")
    head = "" if words[0] in DETERMINERS.split() else words.pop(0)
    *before, noun = words
    return Compound(head, tuple(before), noun, MODIFIERS.get(ending, ""))


def read_lexicon(path: Path) -> dict[str, tuple[str, ...]]:
    """Reads the translations of each word from lines ``word<TAB>translation/translation``.

    A word with an empty translation may be left out. Raises ScoringError if the file is missing or a line is malformed.
    """
    if not path.is_file():
        raise ScoringError(f"{path} is missing: it is eval/lexicon of the repository of CoGnition")
    lexicon = {}
    for number, line in enumerate(read_lines(path), 1):
        word, tab, translations = line.rstrip().partition("\t")
        if not tab:
            raise ScoringError(f"{path}:{number}: not word<TAB>translations")
        lexicon[word] = tuple(translations.split("/"))
    return lexicon


def is_right(compound: Compound, translation: str, lexicon: Mapping[str, Sequence[str]]) -> bool:
    """Returns whether a translation, written without blanks, has the compound.

    Every part needs a translation. For each part before the noun, and for the modifier unless it may belong to a verb,
    at least one translation must precede a translation of the noun. Raises ScoringError if the lexicon lacks a part.
    """
    for part in compound.parts:
        if part not in lexicon:
            raise ScoringError(f"the lexicon has no translation of {part!r}")
        if not any(word in translation for word in lexicon[part]):
            return False
    last = max((translation.rfind(word) for word in lexicon[compound.noun] if word), default=-1)
    ordered = compound.before if compound.kind == "VP" else (*compound.before, compound.modifier)
    for part in filter(None, ordered):
        places = [translation.find(word) for word in lexicon[part] if word and word in translation]
        if places and last >= 0 and min(places) >= last:
            return False
    return True


def in_all_contexts(right: Sequence[bool]) -> list[bool]:
    """Returns whether each compound is right in all its sentences. Raises ScoringError if the last has too few."""
    if len(right) % CONTEXTS:
        raise ScoringError(f"{len(right)} sentences are not {CONTEXTS} for each compound")
    return [all(right[start : start + CONTEXTS]) for start in range(0, len(right), CONTEXTS)]


def read_text_without_blanks(path: Path) -> list[str]:
    """Reads Chinese text."""
    return unbroken(list(read_lines(path)))


def unbroken(lines: Sequence[str]) -> list[str]:
    """Joins Chinese words to text."""
    return ["".join(line.split()) for line in lines]


def read_compounds(path: Path, count: int) -> list[Compound]:
    """Reads the compound of each of ``count`` sentences. Raises ScoringError if those of one are not consecutive."""
    texts = read_text(path, count)
    for start in range(0, count, CONTEXTS):
        if len(set(texts[start : start + CONTEXTS])) > 1:
            raise ScoringError(f"{path}:{start + 1}: not {CONTEXTS} lines of one compound")
    return [read_compound(text) for text in texts]


class CompoundOutcomes(MeanMeasure):
    """Which sentences have a right translation of their compound; metrics are error rates in percent."""

    def __init__(self, right: Sequence[bool]):
        super().__init__({"compound": right})

    def metrics(self, indices: Sequence[int]) -> dict[str, float]:
        """Returns error rates of some sentences, and of compounds, which have all their sentences among them."""
        right = [self.values["compound"][index] for index in indices]
        return {
            f"{name}_error_rate": 100 * (1 - sum(values) / len(values))
            for name, values in (("instance", right), ("aggregate", in_all_contexts(right)))
        }


class CompoundSet(RunSet):
    """Scores translations of CoGnition: error rates of compounds, and BLEU of Chinese."""

    name, primary, outcomes, in_parts = "compounds", "instance_error_rate", "compounds", ("compounds",)

    def __init__(self, args: Namespace, subset: str):
        super().__init__(args, subset)
        self.translations = read_text_without_blanks(args.references / f"{subset}.{args.target_lang}")
        self.count = len(self.translations)
        path = args.references / f"{subset}.compound"
        self.compounds = read_compounds(path, self.count) if path.is_file() else None

    @staticmethod
    def add_arguments(parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("--references", type=Path, required=True, help="folder with target lines, compounds and lexicon")
        add("--target-lang", default="zh", help="suffix of the target lines (default: %(default)s)")

    def measures(self, system: Path) -> dict[str, Measure]:
        """Reads the translations of a run; a set without compounds has BLEU alone."""
        translations = unbroken(read_hypotheses(generated(system, self.subset), self.count))
        metric = text_metric("bleu", tokenize="zh")
        found: dict[str, Measure] = {"sacrebleu": TextMeasure("sacrebleu", metric, [self.translations], translations)}
        if self.compounds is not None:
            lexicon = read_lexicon(self.args.references / "lexicon")
            right = [is_right(compound, text, lexicon) for compound, text in zip(self.compounds, translations)]
            found["compounds"] = CompoundOutcomes(right)
        return found

    def groups(self) -> list[list[str]] | None:
        """The kind of each compound."""
        return None if self.compounds is None else [[compound.kind] for compound in self.compounds]


if __name__ == "__main__":
    sys.exit(CompoundSet.main())
