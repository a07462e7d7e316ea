"""Tiny made-up domains in the files of Overnight (``run.sh --toy``): superlatives, and filters in filters."""

from __future__ import annotations

import random
from pathlib import Path

from preprocess.corpora import write_lines

LONG = "edu.stanford.nlp.sempre.overnight.SimpleWorld."
DOMAINS = ("basketball", "blocks", "calendar", "housing", "publications", "recipes", "restaurants", "socialnetwork")

_THINGS = ("meeting", "recipe", "player")
_PROPERTIES = ("author", "place", "owner")
_VALUES = ("alice", "bob", "efron")
_SIZES = (("most", "max"), ("fewest", "min"))


def _call(function: str, *arguments: str) -> str:
    return f"(call {LONG}{function} {' '.join(arguments)})"


def _filtered(generator: random.Random, words: str, form: str) -> tuple[str, str]:
    """Adds up to two conditions to a set, the second around the first."""
    for name in generator.sample(_PROPERTIES, generator.randrange(3)):
        value = generator.choice(_VALUES)
        words = f"{words} whose {name} is {value}"
        form = _call("filter", form, f"(string {name})", "(string =)", f"en.person.{value}")
    return words, form


def _example(generator: random.Random) -> str:
    thing = generator.choice(_THINGS)
    words, form = _filtered(generator, thing, _call("getProperty", _call("singleton", f"en.{thing}"), "(string !type)"))
    if generator.random() < 0.3:
        word, end = generator.choice(_SIZES)
        counted = generator.choice(_PROPERTIES)
        words, form = (
            f"{words} with the {word} {counted}",
            _call("countSuperlative", form, f"(string {end})", f"(string {counted})"),
        )
    form = _call("listValue", form)
    return f'(example\n  (utterance "{words}")\n  (original "{words}")\n  (targetFormula\n    {form}\n  )\n)'


def overnight(output: Path, train: int, test: int) -> None:
    """Writes ``DOMAIN.paraphrases.{train,test}.examples`` of every domain."""
    for place, domain in enumerate(DOMAINS):
        for split, size, seed in (("train", train, 2 * place), ("test", test, 2 * place + 1)):
            generator = random.Random(seed)
            write_lines(output / f"{domain}.paraphrases.{split}.examples", (_example(generator) for _ in range(size)))
