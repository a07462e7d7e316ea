"""Requests and the little programs that answer them: a corpus of symbol trees that a tiny model learns in seconds."""

from __future__ import annotations

import random
from pathlib import Path
from typing import NamedTuple

NAMES = ("rivers", "lakes", "cities")


class Pair(NamedTuple):
    """A line of the corpus; the program is an s-expression."""

    request: str
    program: str


def make_pairs(count: int, seed: int) -> list[Pair]:
    source = random.Random(seed)
    return [_pair(source) for _ in range(count)]


def _pair(source: random.Random) -> Pair:
    words, program = _set(source)
    if source.random() < 0.5:
        return Pair(f"how many {words}", f"( count {program} )")
    return Pair(f"show {words}", program)


def _set(source: random.Random) -> tuple[str, str]:
    name = source.choice(NAMES)
    choice = source.random()
    if choice < 0.4:
        return name, f"( all {name} )"
    place = source.choice(("texas", "utah"))
    inside = f"( in {place} )"
    if choice < 0.7:
        return f"{name} in {place}", f"( and ( all {name} ) {inside} )"
    size = source.choice(("big", "small"))
    return f"{size} {name} in {place}", f"( and ( all {name} ) {inside} ( {size} it ) )"


def write_corpus(folder: Path, sizes: tuple[int, int, int] = (160, 16, 16)) -> Path:
    """Writes ``{train,valid,test}.{nl,lf}`` into a folder, and returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (split, size) in enumerate(zip(("train", "valid", "test"), sizes)):
        pairs = make_pairs(size, seed)
        for lang, lines in (("nl", [pair.request for pair in pairs]), ("lf", [pair.program for pair in pairs])):
            (folder / f"{split}.{lang}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder
