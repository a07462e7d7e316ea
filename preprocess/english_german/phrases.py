"""Draws the phrases that contain no clauses: simple noun phrases, prepositional phrases and adverbials."""

from __future__ import annotations

import random
from dataclasses import replace

from preprocess.english_german.derivation import PLURAL_ONLY, Adverbial, NounPhrase, PrepositionalPhrase
from preprocess.english_german.lexicon import Noun, adjectives_for, nouns_of
from preprocess.english_german.verbs import Verb


def adverbials(kind: str, *pairs: str) -> list[Adverbial]:
    """Returns adverbials of one part of speech, each given as ``English|German``."""
    return [Adverbial(*pair.split("|"), kind) for pair in pairs]


FREQUENCIES = adverbials(
    "RB", "often|oft", "always|immer", "sometimes|manchmal", "rarely|selten", "never|nie", "usually|meistens"
)
MANNERS = adverbials(
    "RB", "quickly|schnell", "slowly|langsam", "carefully|vorsichtig", "secretly|heimlich", "quietly|leise"
)
# In the order of the draws.
TIMES = {
    "past": [
        *adverbials("NP", "yesterday|gestern", "last week|letzte Woche", "last night|letzte Nacht"),
        *adverbials("NP", "last year|letztes Jahr"),
        *adverbials("RB", "then|dann"),
    ],
    "present": [
        *adverbials("NP", "today|heute"),
        *adverbials("RB", "now|jetzt"),
        *adverbials("NP", "every day|jeden Tag", "every morning|jeden Morgen"),
        *adverbials("PP", "in the evening|am Abend", "in winter|im Winter"),
    ],
    "future": [
        *adverbials("NP", "tomorrow|morgen"),
        *adverbials("RB", "soon|bald"),
        *adverbials("NP", "next week|nächste Woche", "next year|nächstes Jahr"),
        *adverbials("PP", "in the afternoon|am Nachmittag"),
    ],
}

PERSON = frozenset(["person"])
DETERMINERS = ("the",) * 9 + ("a",) * 5 + ("this", "every", "my", "his", "her", "our", "their", "your")
PLURAL_DETERMINERS = ("the",) * 8 + ("", "", "these", "my", "his", "their", *PLURAL_ONLY)

SURFACE_GOALS = ("on", "under", "behind", "next to", "in front of")


class PhraseSampler:
    """Draws phrases; the same state of ``rng`` gives the same phrases."""

    def __init__(self, rng: random.Random):
        self.rng = rng

    def chance(self, share: float) -> bool:
        """Returns True with probability ``share``."""
        return self.rng.random() < share

    def weighted(self, weights: dict[str, int]) -> str:
        """Draws a key with a probability proportional to its weight."""
        return self.rng.choices(list(weights), list(weights.values()))[0]

    def around(self, noun: Noun) -> NounPhrase:
        """Draws a determiner and sometimes an adjective for ``noun`` in the singular."""
        chosen = (self.rng.choice(adjectives_for(noun)),) if self.chance(0.25) else ()
        return NounPhrase(noun, determiner=self.rng.choice(("the", "the", "the", "a", "his", "her")), adjectives=chosen)

    def simple(self, classes: frozenset[str]) -> NounPhrase:
        """Draws a short noun phrase without modifiers."""
        return self.around(self.rng.choice(nouns_of(classes)))

    def nominal(self, noun: Noun, plain: bool) -> NounPhrase:
        """Draws determiner, adjectives and number for ``noun``."""
        plural = self.chance(0.28)
        if plain:
            determiner = self.rng.choice(("the", "the", "my", "his") if plural else ("the", "the", "a", "his", "this"))
        else:
            determiner = self.rng.choice(PLURAL_DETERMINERS if plural else DETERMINERS)
        fitting = adjectives_for(noun)
        count = self.rng.choices((0, 1, 2), (60, 34, 6))[0]
        return NounPhrase(noun, plural, determiner, tuple(self.rng.sample(fitting, min(count, len(fitting)))))

    def attributed(self, phrase: NounPhrase, verb: Verb) -> NounPhrase:
        """Adds a with-phrase that belongs to the object, not to the verb: a tool of another verb, clothing, a
        topping."""
        if phrase.noun is None or not is_light(phrase) or not self.chance(0.22):
            return phrase
        if "food" in phrase.noun.classes:
            preposition = self.rng.choice(("with", "without"))
            topping = NounPhrase(self.rng.choice(nouns_of(frozenset(["topping"]))))
            return replace(phrase, modifier=PrepositionalPhrase(preposition, topping))
        if "person" not in phrase.noun.classes:
            return phrase
        held = frozenset(["clothing", "carried", "tool"])
        choices = [noun for noun in nouns_of(held) if not noun.classes & verb.instruments]
        return replace(phrase, modifier=PrepositionalPhrase("with", self.around(self.rng.choice(choices))))

    def goal(self, verb: Verb) -> PrepositionalPhrase:
        """Draws the location or direction of a verb that needs one."""
        if "source" in verb.objects:
            return PrepositionalPhrase("out of", self.simple(frozenset(["place"])))
        surface = self.rng.choice(nouns_of(frozenset(["surface"]) if verb.frame == "placed" else verb.objects))
        on = "surface" in surface.classes
        if verb.frame == "directed":
            preposition = "onto" if on else self.rng.choice(("into", "to"))
        elif verb.frame == "placed":
            preposition = self.rng.choice(SURFACE_GOALS)
        else:
            preposition = self.rng.choice(("on", "next to", "behind", "in front of")) if on else "in"
        return PrepositionalPhrase(preposition, self.around(surface))

    def location(self) -> PrepositionalPhrase:
        """Draws a place where something happens."""
        if self.chance(0.7):
            return PrepositionalPhrase("in", self.simple(frozenset(["place"])))
        preposition = self.rng.choice(("behind", "in front of", "next to"))
        return PrepositionalPhrase(preposition, self.simple(frozenset(["place"])))


def is_light(phrase: NounPhrase) -> bool:
    """Returns whether a phrase is short enough to stand between a verb and its particle."""
    return phrase.relative is None and phrase.modifier is None and phrase.conjunct is None
