"""Draws random derivations that make sense: verbs select their subjects, objects and tools."""

from __future__ import annotations

import random
from dataclasses import replace

from preprocess.english_german.derivation import (
    Clause,
    NounPhrase,
    PrepositionalPhrase,
    Relative,
    Sentence,
    Subordinate,
)
from preprocess.english_german.lexicon import NAMES, NOMINALIZED, adjectives_for, nouns_of
from preprocess.english_german.phrases import FREQUENCIES, MANNERS, PERSON, TIMES, PhraseSampler, is_light
from preprocess.english_german.verbs import Verb, verbs

ANIMATE = frozenset(["person", "animal"])
ORIGINS = ("from", "village city castle forest factory")
BELONGINGS = ("with", "hat beard bag umbrella coat dog")
# Weights of the frames of main clauses.
FRAMES = {
    "transitive": 40,
    "intransitive": 12,
    "dative": 9,
    "ditransitive": 10,
    "prepositional": 9,
    "located": 4,
    "directed": 7,
    "placed": 5,
    "that": 9,
    "whether": 4,
    "infinitive": 6,
    "copula": 6,
}
PLAIN_FRAMES = tuple("transitive intransitive dative ditransitive prepositional located directed placed".split())
MAIN_TENSES = {"present": 30, "past": 34, "perfect": 12, "future": 10, "can": 5, "must": 4, "should": 3, "may": 2}
STATIVE = frozenset("know need love trust please understand believe hope find lose forget".split())
"""Verbs that sound odd in the progressive and with adverbs of manner."""


class Sampler(PhraseSampler):
    """Draws derivations; the same state of ``rng`` gives the same sentences.

    Args:
        depth: greatest number of nested clauses
    """

    def __init__(self, rng: random.Random, depth: int = 3):
        super().__init__(rng)
        self.depth = depth

    def sentence(self) -> Sentence:
        """Draws a sentence: mostly a statement, sometimes a question or two coordinated statements."""
        kind = self.rng.random()
        if kind < 0.12:
            return Sentence(self.question())
        if kind < 0.20:
            conjunction = self.rng.choice(("and", "but"))
            return Sentence(self.statement(2), conjunction, self.statement(2))
        return Sentence(self.statement(self.depth))

    def statement(self, depth: int) -> Clause:
        """Draws a main clause, which may have either an adverbial clause or a second verb phrase."""
        frame = self.weighted(FRAMES if depth > 1 else {name: FRAMES[name] for name in (*PLAIN_FRAMES, "copula")})
        clause = self.clause(frame, self.weighted(MAIN_TENSES), depth)
        if clause.complement is None and depth > 1 and self.chance(0.16):
            return replace(clause, subordinate=self.subordinate(clause.tense, depth - 1), time_fronted=False)
        fitting = _frames_for(clause.subject, PLAIN_FRAMES)
        if frame in PLAIN_FRAMES and not clause.negated and fitting and self.chance(0.08):
            second = self.clause(self.rng.choice(fitting), clause.tense, 1, subject=clause.subject)
            if not second.passive:
                second = replace(second, subject=None, time=None, frequency=None, negated=False, progressive=False)
                return replace(clause, conjunct=second)
        return clause

    def subordinate(self, tense: str, depth: int) -> Subordinate:
        """Draws an adverbial clause whose tense agrees with that of the main clause."""
        past = tense in ("past", "perfect", "pluperfect")
        of_past = ("because", "although", "when", "while", "before", "after")
        conjunction = self.rng.choice(of_past if past else ("because", "although", "if", "when"))
        inner = "pluperfect" if conjunction == "after" else "past" if past else "present"
        frame = self.rng.choice(PLAIN_FRAMES)
        clause = self.clause(frame, inner, depth)
        return Subordinate(conjunction, replace(clause, time=None, time_fronted=False), self.chance(0.5))

    def question(self) -> Clause:
        """Draws a yes-no question or a question with a question word."""
        kind = self.rng.choice(("yes-no", "yes-no", "subject", "object", "object-person", "where", "why", "when"))
        frames = {
            "object": "transitive",
            "object-person": ("transitive", "dative", "prepositional"),
            "where": ("transitive", "intransitive", "located"),
        }
        allowed = frames.get(kind, PLAIN_FRAMES)
        frame = allowed if isinstance(allowed, str) else self.rng.choice(allowed)
        tense = self.rng.choice(("present", "past", "perfect", "future", "can"))
        gap = "object" if kind.startswith("object") else ""
        clause = self.clause(frame, tense, 1, gap=gap, person_gap=kind == "object-person")
        clause = replace(clause, question=kind, negated=False, frequency=None, manner=None, time_fronted=False)
        clause = replace(clause, passive=False, agent=None)
        if kind == "subject":
            return replace(clause, subject=None)
        if kind == "where":
            return replace(clause, place=None, goal=None)
        return replace(clause, time=None) if kind == "when" else clause

    def clause(
        self,
        frame: str,
        tense: str,
        depth: int,
        *,
        subject: NounPhrase | None = None,
        gap: str = "",
        person_gap: bool = False,
        head: NounPhrase | None = None,
    ) -> Clause:
        """Draws a clause of ``frame`` in ``tense``.

        Args:
            frame: a key of the verb tables, or "copula"
            tense: one of TENSES
            depth: greatest number of nested clauses, this one included
            subject: the subject if it is fixed
            gap: "object" leaves the object out
            person_gap: whether the omitted object is a person
            head: the noun phrase that a relative clause modifies; the verb must fit it
        """
        if frame == "copula":
            return self.copula(tense, depth, subject)
        verb = self.verb(frame, subject, gap, head, person_gap)
        if subject is None and verb.base == "man" and self.chance(0.5):
            # The garden path: the old man the boat.
            subject = NounPhrase(nominalized=self.rng.choice(sorted(NOMINALIZED)), determiner="the")
        elif subject is None:
            subject = self.noun_phrase(verb.subjects, depth - 1, pronouns=True)
        progressive = self.chance(0.15) and tense in ("present", "past") and _is_action(verb)
        clause = self.adjuncts(Clause(subject, verb, tense, progressive=progressive))
        if frame in ("that", "whether", "infinitive"):
            return self.with_complement(clause, depth)
        clause = self.with_objects(clause, depth, gap)
        passive = frame == "transitive" and not (gap or head or verb.particle or clause.instrument)
        passive = passive and not (clause.object.pronoun or clause.progressive)
        if passive and tense in ("present", "past", "must") and self.chance(0.10):
            agent = clause.subject if not clause.subject.pronoun and self.chance(0.6) else None
            return replace(clause, passive=True, subject=clause.object, object=None, manner=None, agent=agent)
        return clause

    def verb(self, frame: str, subject: NounPhrase | None, gap: str, head: NounPhrase | None, person_gap: bool) -> Verb:
        """Draws a verb of ``frame`` that fits ``subject`` and, if it has a gap, ``head``."""
        fitting = []
        for verb in verbs(frame):
            if subject is not None and not verb.subjects & _classes(subject):
                continue
            if gap == "object" and head is not None and not verb.objects & head.noun.classes:
                continue
            asks_for_person = verb.objects <= ANIMATE and "person" in verb.objects
            if gap == "object" and head is None and person_gap != asks_for_person:
                continue
            fitting.append(verb)
        return self.rng.choice(fitting)

    def copula(self, tense: str, depth: int, subject: NounPhrase | None) -> Clause:
        """Draws a clause with the copula: he is old; the woman was a teacher."""
        subject = subject or self.noun_phrase(ANIMATE | {"thing", "vehicle", "food"}, depth - 1, pronouns=True)
        tense = tense if tense in ("present", "past", "perfect", "future") else "past"
        if subject.noun is None or "person" in subject.noun.classes and self.chance(0.2):
            plural = subject.pronoun in ("we", "they") or subject.plural or subject.conjunct is not None
            plural = plural or bool(subject.nominalized)
            noun = self.rng.choice(nouns_of(PERSON))
            predicate = NounPhrase(noun, plural=plural, determiner="" if plural else "a")
        else:
            predicate = self.rng.choice(adjectives_for(subject.noun))
        return self.adjuncts(Clause(subject, None, tense, predicate=predicate), manner=False)

    def adjuncts(self, clause: Clause, manner: bool = True) -> Clause:
        """Adds at most one of a negation, an adverb of frequency, a time and an adverb of manner."""
        kind = self.rng.random()
        times = TIMES.get({"pluperfect": "past"}.get(clause.tense, clause.tense), TIMES["future"])
        if clause.tense == "perfect":
            times = ()
        if kind < 0.10:
            clause = replace(clause, negated=True)
        elif kind < 0.20 and clause.tense in ("present", "past", "perfect") and not clause.progressive:
            clause = replace(clause, frequency=self.rng.choice(FREQUENCIES))
        elif kind < 0.42 and times:
            clause = replace(clause, time=self.rng.choice(times), time_fronted=self.chance(0.5))
        elif kind < 0.48 and manner and _is_action(clause.verb):
            if clause.verb.frame in ("transitive", "intransitive", "directed"):
                clause = replace(clause, manner=self.rng.choice(MANNERS))
        return clause

    def with_complement(self, clause: Clause, depth: int) -> Clause:
        """Adds the complement of a verb of saying, asking or trying."""
        frame = clause.verb.frame
        if frame == "infinitive":
            wanted = _frames_for(clause.subject, ("transitive", "dative", "ditransitive", "directed", "placed"))
            inner = self.clause(self.rng.choice(wanted), "present", 1, subject=clause.subject)
            if inner.passive:
                return self.with_complement(clause, depth)
            inner = replace(inner, subject=None, negated=False, frequency=None, time=None, progressive=False)
            return replace(clause, complement=inner)
        past = clause.tense in ("past", "perfect")
        of_past = ("past", "past", "pluperfect")
        tense = self.rng.choice(of_past if past else ("present", "present", "past", "future", "perfect"))
        inner = self.clause(self.rng.choice((*PLAIN_FRAMES, "copula")), tense, depth - 1)
        time = clause.time if clause.time_fronted else None
        inner = replace(inner, time_fronted=False)
        return replace(clause, complement=inner, manner=None, progressive=False, time=time)

    def with_objects(self, clause: Clause, depth: int, gap: str) -> Clause:
        """Adds the objects of the frame of the verb, and sometimes a tool or a place."""
        verb, frame = clause.verb, clause.verb.frame
        negated = clause.negated
        if frame in ("transitive", "dative", "ditransitive", "prepositional", "placed") and gap != "object":
            pronouns = verb.objects <= ANIMATE and frame != "ditransitive"
            thing = self.noun_phrase(verb.objects, depth - 1, pronouns, plain=negated)
            thing = replace(thing, modifier=None) if frame == "placed" else self.attributed(thing, verb)
            particle_last = bool(verb.particle) and (bool(thing.pronoun) or is_light(thing) and self.chance(0.5))
            clause = replace(clause, object=thing, particle_last=particle_last)
        if frame == "ditransitive":
            receiver = self.noun_phrase(PERSON, 0, pronouns=True)
            receiver_first = self.chance(0.6) and not verb.particle
            thing = None if gap == "object" else replace(clause.object, modifier=None)
            clause = replace(clause, receiver=receiver, receiver_first=receiver_first, object=thing)
        if frame in ("located", "directed", "placed"):
            clause = replace(clause, goal=self.goal(verb))
        if clause.object is not None and clause.object.relative is not None:
            # A phrase after the relative clause would seem to belong to it.
            time = clause.time if clause.time_fronted else None
            receiver_first = clause.receiver is not None and not verb.particle
            return replace(clause, time=time, manner=None, receiver_first=receiver_first)
        free = self.rng.random()
        if verb.instruments and free < 0.45:
            clause = replace(clause, instrument=PrepositionalPhrase("with", self.simple(verb.instruments)))
        elif free > 0.88 and frame in ("transitive", "intransitive", "prepositional") and not negated:
            clause = replace(clause, place=self.location())
        return clause

    def noun_phrase(
        self, classes: frozenset[str], depth: int, pronouns: bool = False, plain: bool = False
    ) -> NounPhrase:
        """Draws a noun phrase whose head is in one of ``classes``.

        Args:
            depth: greatest number of nested clauses inside; 0 excludes relative clauses
            pronouns: whether a pronoun or a name may replace a person
            plain: whether to exclude numerals and quantifiers, which are odd under a negation
        """
        kind = self.rng.random()
        if "person" in classes and pronouns and kind < 0.28:
            if kind < 0.18:
                return NounPhrase(pronoun=self.rng.choice(("I", "you", "he", "she", "we", "they")))
            return NounPhrase(name=self.rng.choice(NAMES))
        if "person" in classes and kind > 0.975:
            return NounPhrase(nominalized=self.rng.choice(sorted(NOMINALIZED)), determiner="the")
        phrase = self.nominal(self.rng.choice(nouns_of(classes)), plain)
        kind = self.rng.random()
        if depth > 0 and kind < 0.14:
            return self.with_relative(phrase, depth)
        if "person" in phrase.noun.classes and kind < 0.20:
            preposition, nouns = ORIGINS if self.chance(0.5) else BELONGINGS
            return replace(phrase, modifier=PrepositionalPhrase(preposition, self.simple(frozenset(nouns.split()))))
        if kind > 0.95 and depth > 0:
            partner = self.noun_phrase(phrase.noun.classes & classes, 0, plain=plain)
            return replace(phrase, conjunct=replace(partner, conjunct=None, modifier=None))
        return phrase

    def with_relative(self, phrase: NounPhrase, depth: int) -> NounPhrase:
        """Adds a relative clause whose gap is its subject or its object."""
        tense = self.rng.choice(("present", "past", "past", "perfect"))
        head = NounPhrase(phrase.noun, phrase.plural, "the")
        person = "person" in phrase.noun.classes
        animate = bool(phrase.noun.classes & ANIMATE)
        if animate and self.chance(0.55):
            inner = self.clause(self.rng.choice(_frames_for(head, PLAIN_FRAMES)), tense, depth, subject=head)
            if inner.passive:
                return phrase
            return replace(phrase, relative=Relative(_inside(inner), "subject", "who" if person else "that"))
        frames = [
            frame
            for frame in ("transitive", "transitive", "dative", "prepositional")
            if any(verb.objects & phrase.noun.classes for verb in verbs(frame))
        ]
        if not frames:
            return phrase
        inner = self.clause(self.rng.choice(frames), tense, depth - 1 if depth > 1 else 1, gap="object", head=head)
        return replace(phrase, relative=Relative(_inside(inner), "object", "" if self.chance(0.35) else "that"))


def _classes(phrase: NounPhrase) -> frozenset[str]:
    return PERSON if phrase.noun is None else phrase.noun.classes


def _frames_for(subject: NounPhrase, frames: tuple[str, ...]) -> list[str]:
    """Returns the ``frames`` that have a verb for ``subject``."""
    return [frame for frame in frames if any(verb.subjects & _classes(subject) for verb in verbs(frame))]


def _inside(clause: Clause) -> Clause:
    """Removes the free phrases at the end of a relative clause, which would seem to belong to the main clause."""
    return replace(clause, time=None, time_fronted=False, manner=None, place=None)


def _is_action(verb: Verb | None) -> bool:
    """Returns whether a verb sounds natural in the progressive or with an adverb of manner."""
    return verb is not None and verb.base not in STATIVE
