"""What a constituency parser is, how one is chosen, and what the user may choose."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tree_fairseq.errors import ParserError, ParserUnavailableError
from tree_fairseq.trees.tree import Tree

FLAT_LABEL = "FRAG"
"""Label of the tree that stands for a sentence which could not be parsed."""
FLAT_TAG = "XX"
"""Tag of every word of such a tree."""

DEFAULT_BATCH_SIZE = 100
"""Sentences per call of a parser; on one core Stanza is fastest at 100 to 200."""

_CHOICES = {
    "ssplit": ("none", "punct"),
    "tokenize": ("pretokenized", "stanza"),
    "subwords": ("auto", "none", "bpe", "sentencepiece"),
    "on_parse_error": ("flat", "stop"),
}


@dataclass(frozen=True)
class ParserOptions:
    """All that decides which trees a text gets, and how the parser is run.

    Args:
        name: a registered parser: ``stanza``, ``brackets`` (the text is trees already), ``right-branching``, ``balanced``, ``random``.
        lang: language of the text, as Stanza names it.
        parser_dir: folder with the models; without one Stanza's own download is used.
        package: Stanza's name for the constituency model, where a language has several.
        batch_size: sentences per call of the parser.
        ssplit: ``punct`` cuts a line after sentence-final punctuation, ``none`` takes it as one sentence.
        tokenize: ``pretokenized`` keeps the tokens of the text, ``stanza`` finds them in raw text.
        subwords: how the text is split already: ``bpe`` (``@@``), ``sentencepiece`` (``▁``), ``none``, or ``auto`` to tell by each line's marks.
        subword_model: splits words that are not split yet: a SentencePiece model (``*.model``) or subword-nmt's codes.
        unescape_moses: show the parser ``'`` where the text has ``&apos;`` (the leaves keep the text's form).
        strip_function_tags: ``NP-SBJ`` becomes ``NP``.
        seed: of the ``random`` parser.
        device: ``auto`` (GPUs where there are any), ``cpu``, or a torch device.
        on_parse_error: what a sentence that cannot be parsed gets: a ``flat`` tree, or the run's ``stop``. By default ``flat``; ``stop`` for brackets.
        max_parse_failures: an int is a number of sentences, a float below one a share of them (then one sentence is always allowed).

    Raises:
        ValueError: an option has a value that it cannot have.
    """

    name: str = "stanza"
    lang: str = "en"
    parser_dir: str | None = None
    package: str | None = None
    batch_size: int = DEFAULT_BATCH_SIZE
    ssplit: str = "none"
    tokenize: str = "pretokenized"
    subwords: str = "auto"
    subword_model: str | None = None
    unescape_moses: bool = True
    strip_function_tags: bool = False
    seed: int = 0
    device: str = "auto"
    on_parse_error: str | None = None
    max_parse_failures: int | float = 0.01

    def __post_init__(self) -> None:
        if self.on_parse_error is None:
            object.__setattr__(self, "on_parse_error", "stop" if self.name == "brackets" else "flat")
        for field, choices in _CHOICES.items():
            if getattr(self, field) not in choices:
                raise ValueError(f"{field} is one of {', '.join(choices)}, not {getattr(self, field)!r}")
        if self.batch_size < 1:
            raise ValueError(f"batch_size is at least 1, not {self.batch_size}")
        if self.max_parse_failures < 0 or (isinstance(self.max_parse_failures, float) and self.max_parse_failures >= 1):
            raise ValueError(
                f"max_parse_failures is a count (an int) or a share below one, not {self.max_parse_failures!r}"
            )

    def to_json(self) -> dict[str, Any]:
        """The options as JSON can hold them."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> ParserOptions:
        """The options that ``to_json`` gave.

        Raises:
            ValueError: there is an option that this version does not know.
        """
        known = {field.name for field in dataclasses.fields(cls)}
        if unknown := sorted(set(values) - known):
            raise ValueError(
                f"unknown parser options: {', '.join(unknown)}; they were written by another version of tree_fairseq"
            )
        return cls(**values)

    def replace(self, **changes: Any) -> ParserOptions:
        """The same options but for ``changes``."""
        return dataclasses.replace(self, **changes)


class ConstituencyParser(Protocol):
    """Gives each sentence a constituency tree."""

    def identity(self) -> dict[str, Any]:
        """All that decides its trees (name, version, hash of the model, options), for JSON; known without loading a model."""

    def inventory(self) -> list[str]:
        """All labels that it can give, of phrases and of words; ``[]`` if they are not known beforehand."""

    def parse(self, sentences: list[list[str]]) -> list[Tree | None]:
        """One tree for each sentence, in order, whose leaves are its words; None where it fails."""


@dataclass(frozen=True)
class ParsedText:
    """What becomes of one line of raw text.

    Args:
        forest: the trees of its sentences; their leaves are the tokens.
        offsets: the half-open span of characters of each leaf in the line.
    """

    forest: tuple[Tree, ...]
    offsets: list[tuple[int, int]]


class TextParser(ConstituencyParser, Protocol):
    """A parser that also finds the tokens and sentences of raw text."""

    def parse_text(self, lines: list[str]) -> list[ParsedText | None]:
        """One result for each line, in order; None where it fails."""


Factory = Callable[[ParserOptions], ConstituencyParser]


@dataclass(frozen=True)
class _Registration:
    factory: Factory
    expensive: bool


_REGISTRY: dict[str, _Registration] = {}
# Imported when first asked for: none of them is needed by a user of another.
_BUILT_IN = {
    "stanza": "tree_fairseq.parsing.stanza_parser",
    "right-branching": "tree_fairseq.parsing.controls",
    "balanced": "tree_fairseq.parsing.controls",
    "random": "tree_fairseq.parsing.controls",
}


def register_parser(name: str, *, expensive: bool = True) -> Callable[[Factory], Factory]:
    """Decorator that makes ``--tree-parser NAME`` known.

    Args:
        name: the name; a later registration replaces an earlier one.
        expensive: parses are cached and made in processes of their own. The factory is then found there by its module and name, so it has to be
            at the top level of a module.
    """

    def register(factory: Factory) -> Factory:
        _REGISTRY[name] = _Registration(factory, expensive)
        return factory

    return register


def parser_names() -> list[str]:
    """What ``--tree-parser`` takes."""
    return sorted({*_BUILT_IN, *_REGISTRY, "brackets"})


def _registration(name: str) -> _Registration:
    if name not in _REGISTRY and name in _BUILT_IN:
        importlib.import_module(_BUILT_IN[name])
    if name not in _REGISTRY:
        raise ParserUnavailableError(f"there is no parser {name!r}; the parsers are {', '.join(parser_names())}")
    return _REGISTRY[name]


def build_parser(options: ParserOptions) -> ConstituencyParser:
    """The parser that ``options`` name.

    Raises:
        ParserUnavailableError: there is no such parser, or it cannot be had here.
    """
    if options.name == "brackets":
        raise ParserError("ready-made trees are read, not parsed: LineParser does it")
    return _registration(options.name).factory(options)


def is_expensive(name: str) -> bool:
    """Whether parses of this parser are worth a cache and processes of their own."""
    return name != "brackets" and _registration(name).expensive


def factory_module(name: str) -> str | None:
    """The module that registers a parser when imported; None for ``brackets``, which is none."""
    return None if name == "brackets" else _registration(name).factory.__module__


def flat_tree(words: Sequence[str]) -> Tree:
    """The tree of a sentence that could not be parsed: ``(FRAG (XX w1) (XX w2) ...)``."""
    return Tree(FLAT_LABEL, [Tree(FLAT_TAG, [Tree(word)]) for word in words])
