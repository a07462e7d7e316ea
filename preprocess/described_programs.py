"""Python and its descriptions: lines of Django (Oda et al. 2015) and cards of Hearthstone (Ling et al. 2016)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from keyword import iskeyword
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


def card_call(card: str) -> str:
    """A card as a call in Python, with the name of its class: ``WarAxe('War Axe', 3, -1, Weapon, NIL, [Deal, 2])``."""
    name, *fields, text = re.split(r" [A-Z_]+_END ?", card)
    words = re.findall(r"\w+|[^\w\s]", re.sub(r"</?\w+>", " ", text))
    class_name = "".join(word[0].upper() + word[1:] for word in re.sub(r"[^\w ]", "", name).split())
    return f"{class_name}({', '.join([repr(name), *map(_expression, fields)])}, [{', '.join(map(_expression, words))}])"


def _expression(word: str) -> str:
    if word.removeprefix("-").isdecimal():
        return str(int(word))
    return word if word.isidentifier() and not iskeyword(word) else repr(word)


def load_hearthstone(data: Path, languages: Pair, options: PrepareOptions) -> Corpus:
    """Reads ``{train,dev,test}_hs.{in,out}``, with each card as a call."""

    def pairs(name: str) -> Iterator[Pair]:
        sides = [data / f"{name}_hs.{side}" for side in ("in", "out")]
        for card, program in parallel(*map(raw_lines, sides), names=[path.name for path in sides]):
            yield card_call(card), program

    return Corpus({"train": pairs("train"), "valid": pairs("dev"), "test": pairs("test")}, {})
