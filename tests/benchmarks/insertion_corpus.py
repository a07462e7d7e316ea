"""The corpus of the benchmark of insertion: Overnight's publications, or similar forms that are made up."""

from __future__ import annotations

import random
from pathlib import Path

from preprocess.logical_forms import Example, Splits, write_splits
from preprocess.overnight import LONG, SHORT, domains, load, simplify
from tests.benchmarks.commands import quiet
from tree_fairseq.trees.notations import notation_named

DOMAIN = "publications"
LANGUAGES = ("nl", "lf")
# The sizes of the domain's splits.
MADE_UP_SIZES = {"train": 512, "valid": 128, "test": 161}

_ARTICLES = ("multivariate data analysis", "the annals", "statistical learning", "parsing by chart")
_VENUES = ("annals of statistics", "computational linguistics")
_PEOPLE = ("efron", "lakoff")
_NOTATION = notation_named("bracket")


def write_domain(folder: Path, data: Path | None, limit: int | None = None) -> str:
    """Writes ``{train,valid,test}.{nl,lf}`` into a folder and returns a description of them.

    Args:
        data: folder of SEMPRE's ``.examples``; forms are made up if it is None or lacks the domain
        limit: number of examples of each split; None for all
    """
    has_domain = data is not None and DOMAIN in domains(data)
    with quiet():
        splits = load(data, DOMAIN) if has_domain else made_up()
    write_splits({split: examples[:limit] for split, examples in splits.items()}, folder, LANGUAGES)
    return f"Overnight's {DOMAIN}" if has_domain else f"made-up forms like those of Overnight's {DOMAIN}"


def made_up(seed: int = 0) -> Splits:
    """Makes up as many questions and forms as the domain has, of about the same size."""
    source = random.Random(seed)
    return {split: [_question(source) for _ in range(size)] for split, size in MADE_UP_SIZES.items()}


def _question(source: random.Random) -> Example:
    noun = source.choice(("article", "person", "venue"))
    words, form = f"{noun}s", _all(noun)
    for _ in range(source.choice((0, 1, 1, 2))):
        phrase, condition = _condition(source)
        words, form = f"{words} {phrase}", f"( call SW:filter {form} {condition} )"
    kind = source.random()
    if kind < 0.3:
        many = source.choice(("at least", "at most", "more than"))
        sign = {"at least": ">=", "at most": "<=", "more than": ">"}[many]
        words = f"{words} that cite {many} two articles"
        form = f"( call SW:countComparative {form} ( string cites ) ( string {sign} ) ( number 2 ) {_all('article')} )"
    elif kind < 0.5:
        most = source.choice(("most", "fewest"))
        words = f"{words} with the {most} articles"
        limit = {"most": "max", "fewest": "min"}[most]
        counted = f"( call SW:reverse ( string author ) ) {_all('article')}"
        form = f"( call SW:countSuperlative {form} ( string {limit} ) {counted} )"
    original = f"( call SW:listValue {form} )".replace(SHORT, LONG)
    return Example(words, _NOTATION.write(simplify(_NOTATION.read(original))))


def _all(noun: str) -> str:
    return f"( call SW:getProperty ( call SW:singleton en.{noun} ) ( string !type ) )"


def _condition(source: random.Random) -> tuple[str, str]:
    kind, names = source.choice((("article", _ARTICLES), ("venue", _VENUES), ("person", _PEOPLE)))
    name = source.choice(names)
    phrase, relation = {
        "article": ("citing", "( string cites )"), "venue": ("in", "( string venue )"),
        "person": ("by", "( call SW:reverse ( string author ) )"),
    }[kind]  # fmt: skip
    return f"{phrase} {name}", f"{relation} ( string = ) en.{kind}.{name.replace(' ', '_')}"
