"""Python and its descriptions: lines of Django (Oda et al. 2015) and cards of Hearthstone (Ling et al. 2016)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from preprocess.corpora import Corpus, Pair, PrepareOptions, parallel, raw_lines

_STRING = re.compile(r"""(["']).*?(?<!\\)\1""")


def name_strings(description: str, code: str) -> Pair:
    """Replaces each string of a description by a name, in both texts (Yin and Neubig 2017); ``'%s'`` stays.

    So a program has ``'_STR0_'`` where the description has ``_STR0_``.
    """
    strings = dict.fromkeys(found[0] for found in _STRING.finditer(description))
    for number, string in enumerate(string for string in strings if string[1:-1] != "%s"):
        description = description.replace(string, f"_STR{number}_")
        code = re.sub(rf"(?<![\"']){re.escape(string)}(?![\"'])", f"'_STR{number}_'", code)
    return " ".join(description.split()), code.strip()


def load_django(data: Path, languages: Pair, options: PrepareOptions) -> Corpus:
    """Reads ``all.anno`` and ``all.code``; the splits are those of the literature since Ling et al. (2016)."""
    sides = map(raw_lines, (data / "all.anno", data / "all.code"))
    pairs = [name_strings(*pair) for pair in parallel(*sides, names=("all.anno", "all.code"))]
    return Corpus({"train": pairs[:16000], "valid": pairs[16000:17000], "test": pairs[17000:]}, {})


def class_name(card: str) -> str:
    """The name of a card as that of its class: ``Assassin's Blade`` is ``AssassinsBlade``."""
    words = re.sub(r"[^\w ]", "", card.partition(" NAME_END")[0]).split()
    return "".join(word[0].upper() + word[1:] for word in words)


def load_hearthstone(data: Path, languages: Pair, options: PrepareOptions) -> Corpus:
    """Reads ``{train,dev,test}_hs.{in,out}``, and puts the name of its class before each card."""

    def pairs(name: str) -> Iterator[Pair]:
        sides = [data / f"{name}_hs.{side}" for side in ("in", "out")]
        for card, program in parallel(*map(raw_lines, sides), names=[path.name for path in sides]):
            yield f"{class_name(card)} {card}", program

    return Corpus({"train": pairs("train"), "valid": pairs("dev"), "test": pairs("test")}, {})
