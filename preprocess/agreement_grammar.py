"""Sentence beginnings from a small grammar of English, whose verbs would agree with a noun that others may hide.

Texts have few beginnings with several attractors (nouns of the other number between a subject and its verb), so that a
model that follows the nearest noun is nearly always right on them. The grammar draws the number of the subject and the
number of attractors evenly. The nouns, adjectives, names and verbs are those of the training texts, by their tags.

A beginning has, in this order: perhaps a clause, a phrase or an adverb that leads in; the subject; its modifiers, which
are prepositional phrases, relative clauses, participles and coordinations; perhaps an adverb. A modifier belongs to the
subject or to the last noun before it.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

from preprocess.agreement_linzen import example, third_persons
from preprocess.agreement_subjects import COMMON_NOUNS, NUMBERS, PLURAL, SINGULAR
from preprocess.corpora import CorpusError
from preprocess.labelled_lines import Labelled
from tree_fairseq.trees.tree import Forest

MAX_ATTRACTORS = 4

_Choice = TypeVar("_Choice")

_LEAST_COUNT = 2
_LEAST_SHARE = 0.8
_OPEN_CLASSES = ("JJ", "NNP", "VBD", "VBN", "VBG", "VBZ", "VBP", *COMMON_NOUNS)
_NO_FULL_VERBS = frozenset("is are was were be been being am has have had having does do did 's 're 've 'm 'd".split())

_DETERMINERS = {
    SINGULAR: "the the the the a a a this that each every one another his her their its our no any".split(),
    PLURAL: "the the the the the these those some many several two three most all both few his their its other".split(),
}
_PREPOSITIONS = "of of of of of in in in for from with on by to about between at near under against behind".split()
_LEADING = "in in in for with on at by after before during".split()
_PRONOUNS = "i we you they he she it".split()
_SUBORDINATORS = "if when because while although since as though".split()
_ADVERBS = "also often still generally usually now always never only even probably".split()
_CONNECTIVES = "however therefore today thus moreover also".split()


class Words:
    """Words to draw from, each with a weight that is the square root of its count."""

    def __init__(self, counts: Mapping[str, int]):
        self.words = sorted(counts)
        self._totals = list(accumulate(counts[word] ** 0.5 for word in self.words))

    def draw(self, generator: random.Random) -> str:
        """Draws a word."""
        return generator.choices(self.words, cum_weights=self._totals)[0]


@dataclass(frozen=True)
class Lexicon:
    """The words of the open classes.

    Attributes:
        nouns: common nouns of each number
        present: verbs in the present tense; the form of the plural for each form of the singular
        others: words by tag, of ``JJ`` (adjectives), ``NNP`` (names), ``VBD``, ``VBN`` and ``VBG`` (verbs)
    """

    nouns: Mapping[str, Words]
    present: Mapping[str, str]
    others: Mapping[str, Words]

    @classmethod
    def of(cls, tagged: Mapping[tuple[str, str], int]) -> Lexicon:
        """Keeps words that occur at least twice with a tag, and for the most part with this tag."""
        totals: Counter[str] = Counter()
        for (_, word), count in tagged.items():
            totals[word] += count
        kept: dict[str, dict[str, int]] = defaultdict(dict)
        for (tag, word), count in tagged.items():
            # Participles are past forms, too, and verbs are nouns; only the number of a noun must be certain.
            least = _LEAST_SHARE * totals[word] if tag in COMMON_NOUNS else 0.4 * totals[word]
            if count >= max(_LEAST_COUNT, least) and len(word) > 2 and word.isalpha() and word not in _NO_FULL_VERBS:
                kept[tag][word] = count
        # A verb is drawn in both forms, so both must be in the texts.
        plural = {form: word for word in kept["VBP"] for form in third_persons(word)}
        present = {form: plural[form] for form in sorted(kept["VBZ"]) if form in plural}
        if missing := [tag for tag in _OPEN_CLASSES if not kept[tag]] or [] if present else ["VBZ and VBP of one verb"]:
            raise CorpusError(
                "the training texts have too few words for --grammar and --generated-test: none is tagged "
                f"{missing[0]} twice"
            )
        nouns = {number: Words(kept[tag]) for tag, number in COMMON_NOUNS.items()}
        return cls(nouns, present, {tag: Words(kept[tag]) for tag in ("JJ", "NNP", "VBD", "VBN", "VBG")})


def count_tags(forest: Forest, counts: Counter[tuple[str, str]]) -> None:
    """Counts the words of the open classes of a line, in lower case, by their tags."""
    for tree in forest:
        counts.update((tag, word.lower()) for word, tag in tree.tagged_words() if tag in _OPEN_CLASSES)


@dataclass
class _Subject:
    """A beginning under construction: the number of its subject and of its last noun, and the numbers to come."""

    number: str
    last: str
    coming: list[str]

    def noun(self) -> str:
        """Takes the number of the next noun."""
        self.last = self.coming.pop(0)
        return self.last


class Grammar:
    """Draws beginnings."""

    def __init__(self, lexicon: Lexicon, seed: int):
        self._lexicon = lexicon
        self._random = random.Random(seed)

    def beginning(self) -> tuple[list[str], str, int]:
        """Returns the words before a verb, the number of the verb, and how many attractors precede it."""
        number, attractors = self._random.choice(NUMBERS), self._random.randrange(MAX_ATTRACTORS + 1)
        other = PLURAL if number == SINGULAR else SINGULAR
        coming = [other] * attractors
        while self._random.random() < 0.3:
            coming.insert(self._random.randrange(len(coming) + 1), number)
        words = self._lead_in() if self._random.random() < 0.35 else []
        words += self._phrase(number)
        state = _Subject(number, number, coming)
        while state.coming:
            words += self._modifier(state)
        if self._random.random() < 0.08:
            words += self._pick([[","], [",", *self._name(), ","], ["that", self._pick(_PRONOUNS), self._word("VBD")]])
        if self._random.random() < 0.12:
            words.append(self._pick(_ADVERBS))
        return words, number, attractors

    def _modifier(self, state: _Subject) -> list[str]:
        """Draws a modifier with one noun or two of those to come."""
        # A modifier of the subject may be told from one of the last noun by nothing but the number of a verb.
        modified = self._pick((state.number, state.last))
        kinds: list[tuple[int, Callable[[], list[str]]]] = [
            (9, lambda: [self._pick(_PREPOSITIONS), *self._phrase(state.noun())]),
            (2, lambda: [self._pick(("that", "which", "who")), self._verb(modified), *self._phrase(state.noun())]),
            (2, lambda: [*self._pick(([], ["that"], ["which"])), *self._clause(state.noun())]),
            (
                2,
                lambda: [self._word("VBN"), self._pick(("by", "in", "for", "to", "with")), *self._phrase(state.noun())],
            ),
            (1, lambda: [self._word("VBG"), *self._phrase(state.noun())]),
            (1, lambda: ["that", self._pick(_PRONOUNS), self._word("VBD"), "in", *self._phrase(state.noun())]),
        ]
        if len(state.coming) > 1:
            pair = ("and", "or", ",")
            kinds += [
                (3, lambda: [self._pick(_PREPOSITIONS), *self._phrase(state.noun()), self._pick(pair),
                             *self._phrase(state.noun())]),
                (1, lambda: ["that", *self._clause(state.noun()), *self._phrase(state.noun())]),
            ]  # fmt: skip
            if state.coming[0] == SINGULAR:
                kinds.append((4, lambda: [self._pick(_PREPOSITIONS), *self._compound(state)]))
        if state.number == PLURAL:
            # Of a plural subject, a second conjunct is an attractor like others; two singular nouns would be a plural.
            kinds.append((1, lambda: ["and", *self._phrase(state.noun())]))
        weights = [weight for weight, _ in kinds]
        return self._random.choices(kinds, weights)[0][1]()

    def _lead_in(self) -> list[str]:
        """Draws what comes before the subject, with nouns of any number that belong to no verb to come."""
        numbers = [self._random.choice(NUMBERS) for _ in range(3)]
        first, second, third = (self._phrase(number) for number in numbers)
        pronoun, past = self._pick(_PRONOUNS), self._word("VBD")
        return self._pick(
            [
                [self._pick(_LEADING), *first, ","],
                [self._pick(_LEADING), *first, "of", *second, ","],
                [self._pick(_CONNECTIVES), ","],
                [self._pick(_SUBORDINATORS), *first, past, *second, ","],
                [self._pick(_SUBORDINATORS), pronoun, past, *first, ","],
                [*first, self._verb(numbers[0]), "that"],
                [pronoun, past, "that"],
                [*first, past, *second, *self._pick(([",", "and"], [",", "but"], [";"], ["and"]))],
                [pronoun, past, *first, "where"],
                [*first, "of", *second, past, *third, ",", "and"],
            ]
        )

    def _phrase(self, number: str) -> list[str]:
        """Draws a noun phrase whose head has the number and is its only common noun."""
        chance = self._random.random()
        if chance < 0.08:
            start = [*self._name(), "'s"]
        elif chance < (0.18 if number == SINGULAR else 0.35):
            start = []
        else:
            start = [self._pick(_DETERMINERS[number])]
        adjectives = self._random.choices((0, 1, 2), (6, 4, 1))[0]
        return [*start, *(self._word("JJ") for _ in range(adjectives)), self._lexicon.nouns[number].draw(self._random)]

    def _compound(self, state: _Subject) -> list[str]:
        """Draws a noun phrase of two nouns, the first of them singular."""
        first = self._phrase(state.noun())
        return [*first, self._lexicon.nouns[state.noun()].draw(self._random)]

    def _clause(self, number: str) -> list[str]:
        """Draws a subject and its verb."""
        return [*self._phrase(number), self._verb(number)]

    def _verb(self, number: str) -> str:
        """Draws a verb, in the past or in the present, whose form then shows the number."""
        if self._random.random() < 0.4:
            return self._word("VBD")
        if self._random.random() < 0.3:
            return self._random.choice(("is", "has", "was") if number == SINGULAR else ("are", "have", "were"))
        singular = self._random.choice(list(self._lexicon.present))
        return singular if number == SINGULAR else self._lexicon.present[singular]

    def _name(self) -> list[str]:
        """Draws a name of one word or two."""
        return [self._word("NNP") for _ in range(self._random.choice((1, 2)))]

    def _word(self, tag: str) -> str:
        return self._lexicon.others[tag].draw(self._random)

    def _pick(self, choices: Sequence[_Choice]) -> _Choice:
        return self._random.choice(choices)


def generate(lexicon: Lexicon, size: int, seed: int, excluded: Collection[str] = ()) -> Iterator[Labelled]:
    """Yields examples.

    Args:
        excluded: texts that are not generated, such as those of a test set
    """
    grammar = Grammar(lexicon, seed)
    while size > 0:
        drawn = example(*grammar.beginning())
        if drawn.text not in excluded:
            size -= 1
            yield drawn
