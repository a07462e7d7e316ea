"""Derivations: the content of a sentence, from which both languages are generated."""

from __future__ import annotations

from dataclasses import dataclass

from preprocess.english_german.lexicon import Adjective, Noun
from preprocess.english_german.verbs import Verb

TENSES = ("present", "past", "perfect", "pluperfect", "future", "can", "must", "should", "may")
PLURAL_ONLY = ("some", "many", "two", "three", "four", "five", "all")


@dataclass(frozen=True)
class NounPhrase:
    """A noun phrase.

    Exactly one of ``noun``, ``pronoun``, ``name`` and ``nominalized`` (an English adjective used as a plural noun) is
    set. ``determiner`` is the English word, or "". ``pronoun`` is the English nominative: I, you, he, she, we, they.
    """

    noun: Noun | None = None
    plural: bool = False
    determiner: str = ""
    adjectives: tuple[Adjective, ...] = ()
    pronoun: str = ""
    name: str = ""
    nominalized: str = ""
    modifier: PrepositionalPhrase | None = None
    relative: Relative | None = None
    conjunct: NounPhrase | None = None


@dataclass(frozen=True)
class PrepositionalPhrase:
    """A preposition, given by its English words ("in front of"), and its noun phrase."""

    preposition: str
    noun_phrase: NounPhrase


@dataclass(frozen=True)
class Relative:
    """A relative clause.

    ``gap`` is the role of its head inside the clause, "subject" or "object". ``pronoun`` is the English relative
    pronoun, or "" if English leaves it out.
    """

    clause: Clause
    gap: str
    pronoun: str


@dataclass(frozen=True)
class Adverbial:
    """An adverb or an adverbial phrase, with its part of speech: "RB", "NP" (every day) or "PP" (in the evening)."""

    english: str
    german: str
    kind: str


@dataclass(frozen=True)
class Subordinate:
    """An adverbial clause and its English conjunction."""

    conjunction: str
    clause: Clause
    fronted: bool


@dataclass(frozen=True)
class Clause:
    """One clause, without word order.

    Args:
        subject: None in an infinitive, in a conjunct that shares it and in a question for it. In a relative clause
            whose gap is the subject, this is its head, for agreement.
        verb: None for the copula, whose ``predicate`` is an adjective or a noun phrase.
        tense: one of TENSES.
        progressive: English says "is sleeping"; only with present and past.
        passive: the object is the subject, and ``agent`` is the noun phrase of a by-phrase.
        object, receiver: the object, with the case or preposition that the verb governs, and the person who receives
            it.
        receiver_first: English says "gives the child a book" and not "gives a book to the child".
        particle_last: English says "picks the child up" and not "picks up the child".
        goal: direction or location, for verbs that need one. instrument, place: free phrases of the verb.
        frequency: an adverb such as "often". time: an adverbial, at the front of the clause if ``time_fronted``.
            manner: an adverb such as "slowly".
        complement: a that-clause, whether-clause or infinitive, depending on the frame of the verb.
        subordinate: an adverbial clause. conjunct: a second verb phrase with the same subject.
        question: "" for a statement, or "yes-no", "subject" (who sees), "object" (what does he see), "object-person"
            (who does he see), "where", "why", "when".
    """

    subject: NounPhrase | None
    verb: Verb | None
    tense: str = "present"
    progressive: bool = False
    passive: bool = False
    negated: bool = False
    object: NounPhrase | None = None
    receiver: NounPhrase | None = None
    receiver_first: bool = False
    particle_last: bool = False
    agent: NounPhrase | None = None
    goal: PrepositionalPhrase | None = None
    instrument: PrepositionalPhrase | None = None
    place: PrepositionalPhrase | None = None
    frequency: Adverbial | None = None
    time: Adverbial | None = None
    time_fronted: bool = False
    manner: Adverbial | None = None
    complement: Clause | None = None
    predicate: Adjective | NounPhrase | None = None
    subordinate: Subordinate | None = None
    conjunct: Clause | None = None
    question: str = ""


@dataclass(frozen=True)
class Sentence:
    """A main clause, or two with a coordinating conjunction ("and", "but")."""

    clause: Clause
    conjunction: str = ""
    second: Clause | None = None


@dataclass(frozen=True)
class Agreement:
    """Person (1 to 3) and number, with which a finite verb agrees."""

    person: int
    plural: bool


PERSONS = {
    "I": Agreement(1, False),
    "you": Agreement(2, False),
    "he": Agreement(3, False),
    "she": Agreement(3, False),
    "we": Agreement(1, True),
    "they": Agreement(3, True),
}


def agreement(subject: NounPhrase) -> Agreement:
    """Returns person and number of a subject.

    Coordinated subjects are plural, and first person if one of them is first person.
    """
    if subject.conjunct is not None:
        return Agreement(min(_person(subject), _person(subject.conjunct)), True)
    if subject.pronoun:
        return PERSONS[subject.pronoun]
    return Agreement(3, subject.plural or bool(subject.nominalized))


def _person(part: NounPhrase) -> int:
    return PERSONS[part.pronoun].person if part.pronoun else 3
