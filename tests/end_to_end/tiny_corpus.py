"""Sentence pairs with trees from a small grammar: unary chains, split words, single words."""

from __future__ import annotations

import random
from pathlib import Path
from typing import NamedTuple

WORDS = {
    "the": "der", "a": "ein", "old": "alte", "small": "kleine", "green": "grüne", "man": "Mann", "woman": "Frau",
    "dog": "Hund", "garden": "Garten", "it": "es", "she": "sie", "sees": "sieht", "likes": "mag", "finds": "findet",
    "sleeps": "schläft", "sings": "singt", "in": "in", "near": "bei", ".": ".", "lighthouse": "Leucht@@ turm",
    "fireplace": "Kamin",
}  # fmt: skip
SPLIT = {"lighthouse": ("light@@", "house"), "fireplace": ("fire@@", "place")}


class Pair(NamedTuple):
    tree: str
    target: str


def make_pairs(count: int, seed: int) -> list[Pair]:
    """``count`` random pairs; their verb stands last in the target."""
    source = random.Random(seed)
    return [_pair(source) for _ in range(count)]


def _pair(source: random.Random) -> Pair:
    if source.random() < 0.05:
        word = source.choice(("sings", "sleeps"))
        return Pair(f"(S (VP (VBZ {word})))", WORDS[word])
    subject, verb, rest = _noun_phrase(source), source.choice(("sees", "likes", "finds", "sleeps", "sings")), None
    if verb in ("sees", "likes", "finds"):
        rest = _noun_phrase(source)
    elif source.random() < 0.6:
        preposition, noun_phrase = source.choice(("in", "near")), _noun_phrase(source)
        rest = (f"(PP (IN {preposition}) {noun_phrase[0]})", f"{WORDS[preposition]} {noun_phrase[1]}")
    verb_phrase = f"(VP (VBZ {verb}){' ' + rest[0] if rest else ''})"
    middle = f"{rest[1]} " if rest else ""
    return Pair(f"(S {subject[0]} {verb_phrase} (. .))", f"{subject[1]} {middle}{WORDS[verb]} .")


def _noun_phrase(source: random.Random) -> tuple[str, str]:
    if source.random() < 0.3:
        word = source.choice(("it", "she"))
        return f"(NP (PRP {word}))", WORDS[word]
    words = [("DT", source.choice(("the", "a")))]
    while source.random() < 0.4:
        words.append(("JJ", source.choice(("old", "small", "green"))))
    words.append(("NN", source.choice(("man", "woman", "dog", "garden", "lighthouse", "fireplace"))))
    return f"(NP {' '.join(_preterminal(*word) for word in words)})", " ".join(WORDS[word] for _, word in words)


def _preterminal(tag: str, word: str) -> str:
    if word not in SPLIT:
        return f"({tag} {word})"
    return f"({tag} {' '.join(f'({tag}_sub {piece})' for piece in SPLIT[word])})"


def leaves(tree: str) -> str:
    return " ".join(part.rstrip(")") for part in tree.split() if not part.startswith("("))


def write_pairs(prefix: Path, pairs: list[Pair], bracketed: bool = True) -> None:
    """``PREFIX.en`` with trees, or their words, and ``PREFIX.de``."""
    lines = {
        "en": [pair.tree if bracketed else leaves(pair.tree) for pair in pairs],
        "de": [pair.target for pair in pairs],
    }
    for lang, text in lines.items():
        prefix.with_name(f"{prefix.name}.{lang}").write_text("".join(f"{line}\n" for line in text), encoding="utf-8")


def write_corpus(folder: Path, bracketed: bool = True, sizes: tuple[int, int, int] = (160, 16, 16)) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (split, size) in enumerate(zip(("train", "valid", "test"), sizes)):
        write_pairs(folder / split, make_pairs(size, seed), bracketed)
    return folder
