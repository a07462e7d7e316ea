"""Draws derivations at random, sensibly: who can do what, to whom, with which tool."""

from __future__ import annotations

import random
from dataclasses import replace

from preprocess.english_german.derivation import (
    PLURAL_ONLY,
    Adverbial,
    Clause,
    NounPhrase,
    PrepositionalPhrase,
    Pronoun,
    Relative,
    Sentence,
    Subordinate,
)
from preprocess.english_german.lexicon import NAMES, NOMINALIZED, Noun, adjectives_for, nouns_of
from preprocess.english_german.verbs import Verb, verbs

PERSON = frozenset(["person"])
ANIMATE = frozenset(["person", "animal"])
DETERMINERS = ("the",) * 9 + ("a",) * 5 + ("this", "every", "my", "his", "her", "our", "their", "your")
PLURAL_DETERMINERS = ("the",) * 8 + ("", "", "these", "my", "his", "their", *PLURAL_ONLY)

FREQUENCIES = [
    Adverbial(english, german, "RB")
    for english, german in (
        ("often", "oft"),
        ("always", "immer"),
        ("sometimes", "manchmal"),
        ("rarely", "selten"),
        ("never", "nie"),
        ("usually", "meistens"),
    )
]
MANNERS = [
    Adverbial(english, german, "RB")
    for english, german in (
        ("quickly", "schnell"),
        ("slowly", "langsam"),
        ("carefully", "vorsichtig"),
        ("secretly", "heimlich"),
        ("quietly", "leise"),
    )
]
TIMES = {
    "past": [
        Adverbial("yesterday", "gestern", "NP"),
        Adverbial("last week", "letzte Woche", "NP"),
        Adverbial("last night", "letzte Nacht", "NP"),
        Adverbial("last year", "letztes Jahr", "NP"),
        Adverbial("then", "dann", "RB"),
    ],
    "present": [
        Adverbial("today", "heute", "NP"),
        Adverbial("now", "jetzt", "RB"),
        Adverbial("every day", "jeden Tag", "NP"),
        Adverbial("every morning", "jeden Morgen", "NP"),
        Adverbial("in the evening", "am Abend", "PP"),
        Adverbial("in winter", "im Winter", "PP"),
    ],
    "future": [
        Adverbial("tomorrow", "morgen", "NP"),
        Adverbial("soon", "bald", "RB"),
        Adverbial("next week", "nächste Woche", "NP"),
        Adverbial("next year", "nächstes Jahr", "NP"),
        Adverbial("in the afternoon", "am Nachmittag", "PP"),
    ],
}
# Which frames a main clause draws, and how often.
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
PLAIN_FRAMES = (
    "transitive",
    "intransitive",
    "dative",
    "ditransitive",
    "prepositional",
    "located",
    "directed",
    "placed",
)
MAIN_TENSES = {"present": 30, "past": 34, "perfect": 12, "future": 10, "can": 5, "must": 4, "should": 3, "may": 2}
SURFACE_GOALS = ("on", "under", "behind", "next to", "in front of")


class Sampler:
    """Derivations from one random generator; the same generator state gives the same sentences.

    Args:
        rng: the only source of chance.
        depth: how many clauses may stand inside one another.
    """

    def __init__(self, rng: random.Random, depth: int = 3):
        self.rng = rng
        self.depth = depth

    def chance(self, share: float) -> bool:
        """True in ``share`` of the calls."""
        return self.rng.random() < share

    def weighted(self, weights: dict[str, int]) -> str:
        """A key, as often as its weight says."""
        return self.rng.choices(list(weights), list(weights.values()))[0]

    def sentence(self) -> Sentence:
        """One sentence: mostly a statement, sometimes a question or two statements in one."""
        kind = self.rng.random()
        if kind < 0.12:
            return Sentence(self.question())
        if kind < 0.20:
            conjunction = self.rng.choice(("and", "but"))
            return Sentence(self.statement(2), conjunction, self.statement(2))
        return Sentence(self.statement(self.depth))

    def statement(self, depth: int) -> Clause:
        """A main clause, with at most one of an adverbial clause and a second verb phrase."""
        frame = self.weighted(FRAMES if depth > 1 else {name: FRAMES[name] for name in (*PLAIN_FRAMES, "copula")})
        clause = self.clause(frame, self.weighted(MAIN_TENSES), depth)
        if clause.complement is None and depth > 1 and self.chance(0.16):
            return replace(clause, subordinate=self.subordinate(clause.tense, depth - 1), time_fronted=False)
        if (
            frame in PLAIN_FRAMES
            and not clause.negated
            and _frames_for(clause.subject, PLAIN_FRAMES)
            and self.chance(0.08)
        ):
            second = self.clause(
                self.rng.choice(_frames_for(clause.subject, PLAIN_FRAMES)), clause.tense, 1, subject=clause.subject
            )
            return replace(
                clause,
                conjunct=replace(
                    second, subject=None, time=None, frequency=None, negated=False, progressive=False, passive=False
                )
                if not second.passive
                else None,
            )
        return clause

    def subordinate(self, tense: str, depth: int) -> Subordinate:
        """An adverbial clause whose tense goes with the main clause's."""
        past = tense in ("past", "perfect", "pluperfect")
        conjunction = self.rng.choice(
            ("because", "although", "when", "while", "before", "after")
            if past
            else ("because", "although", "if", "when")
        )
        inner = "pluperfect" if conjunction == "after" else "past" if past else "present"
        frame = self.rng.choice(PLAIN_FRAMES)
        clause = self.clause(frame, inner, depth)
        return Subordinate(conjunction, replace(clause, time=None, time_fronted=False), self.chance(0.5))

    def question(self) -> Clause:
        """A yes-no question or one with a question word."""
        kind = self.rng.choice(("yes-no", "yes-no", "subject", "object", "object-person", "where", "why", "when"))
        frames = {
            "object": "transitive",
            "object-person": ("transitive", "dative", "prepositional"),
            "where": ("transitive", "intransitive", "located"),
        }
        allowed = frames.get(kind, PLAIN_FRAMES)
        frame = allowed if isinstance(allowed, str) else self.rng.choice(allowed)
        tense = self.rng.choice(("present", "past", "perfect", "future", "can"))
        clause = replace(
            self.clause(
                frame, tense, 1, gap="object" if kind.startswith("object") else "", person_gap=kind == "object-person"
            ),
            question=kind,
            negated=False,
            frequency=None,
            manner=None,
            time_fronted=False,
            passive=False,
            agent=None,
        )
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
        """A clause of ``frame`` in ``tense``.

        Args:
            frame: a key of the verb tables, or "copula".
            tense: one of TENSES.
            depth: clauses that may still be nested inside, this one included.
            subject: the subject, where it is settled already.
            gap: "object" leaves the object out.
            person_gap: the object left out is a person.
            head: the noun phrase that a relative clause belongs to; the verb must fit it.
        """
        if frame == "copula":
            return self.copula(tense, depth, subject)
        verb = self.verb(frame, subject, gap, head, person_gap)
        if subject is None and verb.base == "man" and self.chance(0.5):
            # The garden path: the old man the boat.
            subject = NounPhrase(nominalized=self.rng.choice(sorted(NOMINALIZED)), determiner="the")
        elif subject is None:
            subject = self.noun_phrase(verb.subjects, depth - 1, pronouns=True)
        clause = self.adjuncts(
            Clause(
                subject,
                verb,
                tense,
                progressive=self.chance(0.15) and tense in ("present", "past") and _is_action(verb),
            )
        )
        fill = {"that": self.with_complement, "whether": self.with_complement, "infinitive": self.with_complement}.get(
            frame, self.with_objects
        )
        clause = fill(clause, depth, gap)
        passive = (
            frame == "transitive"
            and not gap
            and head is None
            and not verb.particle
            and not clause.instrument
            and clause.object.pronoun is None
        )
        if passive and not clause.progressive and tense in ("present", "past", "must") and self.chance(0.10):
            clause = replace(
                clause,
                passive=True,
                subject=clause.object,
                object=None,
                manner=None,
                agent=clause.subject if clause.subject.pronoun is None and self.chance(0.6) else None,
            )
        return clause

    def verb(self, frame: str, subject: NounPhrase | None, gap: str, head: NounPhrase | None, person_gap: bool) -> Verb:
        """A verb of ``frame`` whose subject can be ``subject`` and whose gap can be ``head``."""
        fitting = []
        for verb in verbs(frame):
            if subject is not None and not verb.subjects & _classes(subject):
                continue
            if gap == "object" and head is not None and not verb.objects & head.noun.classes:
                continue
            if (
                gap == "object"
                and head is None
                and person_gap != bool(verb.objects <= ANIMATE and "person" in verb.objects)
            ):
                continue
            fitting.append(verb)
        return self.rng.choice(fitting)

    def copula(self, tense: str, depth: int, subject: NounPhrase | None) -> Clause:
        """He is old; the woman was a teacher."""
        subject = subject or self.noun_phrase(ANIMATE | {"thing", "vehicle", "food"}, depth - 1, pronouns=True)
        tense = tense if tense in ("present", "past", "perfect", "future") else "past"
        if subject.noun is None or "person" in subject.noun.classes and self.chance(0.2):
            person = (
                subject.pronoun is not None
                and subject.pronoun.word in ("we", "they")
                or subject.plural
                or subject.conjunct is not None
            )
            predicate = NounPhrase(
                self.rng.choice(nouns_of(PERSON)),
                plural=person or bool(subject.nominalized),
                determiner="" if person or subject.nominalized else "a",
            )
        else:
            predicate = self.rng.choice(adjectives_for(subject.noun))
        return self.adjuncts(Clause(subject, None, tense, predicate=predicate), manner=False)

    def adjuncts(self, clause: Clause, manner: bool = True) -> Clause:
        """Negation, an adverb of frequency, a time, or a manner: at most one of the first two."""
        kind = self.rng.random()
        times = TIMES[
            {"past": "past", "pluperfect": "past", "present": "present", "future": "future"}.get(clause.tense, "future")
        ]
        if clause.tense == "perfect":
            times = ()
        if kind < 0.10:
            clause = replace(clause, negated=True)
        elif kind < 0.20 and clause.tense in ("present", "past", "perfect") and not clause.progressive:
            clause = replace(clause, frequency=self.rng.choice(FREQUENCIES))
        elif kind < 0.42 and times:
            clause = replace(clause, time=self.rng.choice(times), time_fronted=self.chance(0.5))
        elif (
            kind < 0.48
            and manner
            and _is_action(clause.verb)
            and clause.verb.frame in ("transitive", "intransitive", "directed")
        ):
            clause = replace(clause, manner=self.rng.choice(MANNERS))
        return clause

    def with_complement(self, clause: Clause, depth: int, gap: str) -> Clause:
        """Add what a verb of saying, asking or trying needs."""
        frame = clause.verb.frame
        if frame == "infinitive":
            wanted = _frames_for(clause.subject, ("transitive", "dative", "ditransitive", "directed", "placed"))
            inner = self.clause(self.rng.choice(wanted), "present", 1, subject=clause.subject)
            inner = (
                replace(inner, subject=None, negated=False, frequency=None, time=None, progressive=False)
                if not inner.passive
                else None
            )
            return self.with_complement(clause, depth, gap) if inner is None else replace(clause, complement=inner)
        past = clause.tense in ("past", "perfect")
        tense = self.rng.choice(
            ("past", "past", "pluperfect") if past else ("present", "present", "past", "future", "perfect")
        )
        inner = self.clause(self.rng.choice((*PLAIN_FRAMES, "copula")), tense, depth - 1)
        return replace(
            clause,
            complement=replace(inner, time_fronted=False),
            manner=None,
            progressive=False,
            time=clause.time if clause.time_fronted else None,
        )

    def with_objects(self, clause: Clause, depth: int, gap: str) -> Clause:
        """Add what the verb's frame asks for, and now and then a tool or a place."""
        verb, frame = clause.verb, clause.verb.frame
        negated = clause.negated
        if frame in ("transitive", "dative", "ditransitive", "prepositional", "placed") and gap != "object":
            thing = self.noun_phrase(
                verb.objects, depth - 1, pronouns=verb.objects <= ANIMATE and frame != "ditransitive", plain=negated
            )
            thing = replace(thing, modifier=None) if frame == "placed" else self.attributed(thing, verb)
            particle_last = bool(verb.particle) and (
                thing.pronoun is not None or (_is_light(thing) and self.chance(0.5))
            )
            clause = replace(clause, object=thing, particle_last=particle_last)
        if frame == "ditransitive":
            receiver = self.noun_phrase(PERSON, 0, pronouns=True)
            clause = replace(
                clause,
                receiver=receiver,
                receiver_first=self.chance(0.6) and not verb.particle,
                object=None if gap == "object" else replace(clause.object, modifier=None),
            )
        if frame in ("located", "directed", "placed"):
            clause = replace(clause, goal=self.goal(verb))
        if clause.object is not None and clause.object.relative is not None:
            # Whatever followed would seem to belong to the relative clause.
            return replace(
                clause,
                time=clause.time if clause.time_fronted else None,
                manner=None,
                receiver_first=clause.receiver is not None and not verb.particle,
            )
        free = self.rng.random()
        if verb.instruments and free < 0.45:
            clause = replace(clause, instrument=PrepositionalPhrase("with", self.simple(verb.instruments)))
        elif free > 0.88 and frame in ("transitive", "intransitive", "prepositional") and not negated:
            clause = replace(clause, place=self.location())
        return clause

    def goal(self, verb: Verb) -> PrepositionalPhrase:
        """Where something stands, goes or is put."""
        if "source" in verb.objects:
            return PrepositionalPhrase("out of", self.simple(frozenset(["place"])))
        surface = (
            self.rng.choice(nouns_of(verb.objects))
            if verb.frame != "placed"
            else self.rng.choice(nouns_of(frozenset(["surface"])))
        )
        on = "surface" in surface.classes
        if verb.frame == "directed":
            preposition = "onto" if on else self.rng.choice(("into", "to"))
        elif verb.frame == "placed":
            preposition = self.rng.choice(SURFACE_GOALS)
        else:
            preposition = self.rng.choice(("on", "next to", "behind", "in front of")) if on else "in"
        return PrepositionalPhrase(preposition, self.around(surface))

    def location(self) -> PrepositionalPhrase:
        """A place where something happens."""
        if self.chance(0.7):
            return PrepositionalPhrase("in", self.simple(frozenset(["place"])))
        return PrepositionalPhrase(
            self.rng.choice(("behind", "in front of", "next to")), self.simple(frozenset(["place"]))
        )

    def attributed(self, phrase: NounPhrase, verb: Verb) -> NounPhrase:
        """A with-phrase that belongs to the object and not to the verb: a tool of another verb, clothing, cream on a cake."""
        if (
            phrase.noun is None
            or phrase.relative is not None
            or phrase.conjunct is not None
            or phrase.modifier is not None
            or not self.chance(0.22)
        ):
            return phrase
        if "food" in phrase.noun.classes:
            return replace(
                phrase,
                modifier=PrepositionalPhrase(
                    self.rng.choice(("with", "without")), NounPhrase(self.rng.choice(nouns_of(frozenset(["topping"]))))
                ),
            )
        if "person" not in phrase.noun.classes:
            return phrase
        held = frozenset(["clothing", "carried", "tool"])
        choices = [noun for noun in nouns_of(held) if not noun.classes & verb.instruments]
        return replace(phrase, modifier=PrepositionalPhrase("with", self.around(self.rng.choice(choices))))

    def simple(self, classes: frozenset[str]) -> NounPhrase:
        """A short noun phrase without modifiers."""
        return self.around(self.rng.choice(nouns_of(classes)))

    def around(self, noun: Noun) -> NounPhrase:
        """A determiner and perhaps an adjective around ``noun``, singular."""
        chosen = (self.rng.choice(adjectives_for(noun)),) if self.chance(0.25) else ()
        return NounPhrase(noun, determiner=self.rng.choice(("the", "the", "the", "a", "his", "her")), adjectives=chosen)

    def noun_phrase(
        self, classes: frozenset[str], depth: int, pronouns: bool = False, plain: bool = False
    ) -> NounPhrase:
        """A noun phrase whose head is in one of ``classes``.

        Args:
            classes: semantic classes.
            depth: clauses that may be nested inside; 0: no relative clause.
            pronouns: a pronoun or a name is possible where the classes are persons.
            plain: no numerals or quantifiers (they are odd under a negation).
        """
        kind = self.rng.random()
        if "person" in classes and pronouns and kind < 0.28:
            if kind < 0.18:
                return NounPhrase(pronoun=Pronoun(self.rng.choice(("I", "you", "he", "she", "we", "they"))))
            return NounPhrase(name=self.rng.choice(NAMES))
        if "person" in classes and kind > 0.975:
            return NounPhrase(nominalized=self.rng.choice(sorted(NOMINALIZED)), determiner="the")
        phrase = self.nominal(self.rng.choice(nouns_of(classes)), plain)
        kind = self.rng.random()
        if depth > 0 and kind < 0.14:
            return self.with_relative(phrase, depth)
        if "person" in phrase.noun.classes and kind < 0.20:
            origin = (
                ("from", ("village", "city", "castle", "forest", "factory"))
                if self.chance(0.5)
                else ("with", ("hat", "beard", "bag", "umbrella", "coat", "dog"))
            )
            return replace(phrase, modifier=PrepositionalPhrase(origin[0], self.simple(frozenset(origin[1]))))
        if kind > 0.95 and depth > 0:
            partner = self.noun_phrase(phrase.noun.classes & classes, 0, plain=plain)
            return replace(phrase, conjunct=replace(partner, conjunct=None, modifier=None))
        return phrase

    def nominal(self, noun: Noun, plain: bool) -> NounPhrase:
        """Determiner, adjectives and number."""
        plural = self.chance(0.28)
        if plain:
            determiner = self.rng.choice(("the", "the", "my", "his") if plural else ("the", "the", "a", "his", "this"))
        else:
            determiner = self.rng.choice(PLURAL_DETERMINERS if plural else DETERMINERS)
        fitting = adjectives_for(noun)
        count = self.rng.choices((0, 1, 2), (60, 34, 6))[0]
        return NounPhrase(noun, plural, determiner, tuple(self.rng.sample(fitting, min(count, len(fitting)))))

    def with_relative(self, phrase: NounPhrase, depth: int) -> NounPhrase:
        """A relative clause, whose gap is its subject or its object."""
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
    """Those of ``frames`` that have a verb for ``subject``."""
    return [frame for frame in frames if any(verb.subjects & _classes(subject) for verb in verbs(frame))]


def _inside(clause: Clause) -> Clause:
    """A relative clause without the free phrases at its end: nobody could tell them from the main clause's."""
    return replace(clause, time=None, time_fronted=False, manner=None, place=None)


def _is_light(phrase: NounPhrase) -> bool:
    """Short enough to stand between a verb and its particle."""
    return phrase.relative is None and phrase.modifier is None and phrase.conjunct is None


def _is_action(verb: Verb | None) -> bool:
    """Whether a progressive or an adverb of manner is natural."""
    return verb is not None and verb.base not in (
        "know",
        "need",
        "love",
        "trust",
        "please",
        "understand",
        "believe",
        "hope",
        "find",
        "lose",
        "forget",
    )
