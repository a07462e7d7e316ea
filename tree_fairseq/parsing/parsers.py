"""Constituency parsers: what one is, the registry of them, and the options that a user sets.

To add a parser, write a module such as ``my_parsers.py``, and name it as ``--tree-parser my_parsers:comb``::

    from tree_fairseq.parsing.parsers import register_parser
    from tree_fairseq.trees.tree import binary_tree

    @register_parser("comb")
    class Comb:
        def __init__(self, options):              # ParserOptions; models are best loaded with the first sentence
            self.lang, self.device = options.lang, options.device

        def identity(self):                       # all that decides the trees: parses are cached under it
            return {"name": "comb", "version": 1, "lang": self.lang}

        def inventory(self):                      # all labels, so that the dictionary of labels is complete
            return ["X"]

        def parse(self, sentences):               # a tree for each list of words, or None
            return [binary_tree(words, lambda start, end: start + 1, "X") for words in sentences]

Parses are cached, batches are made of sentences of similar length, and a batch that fails is tried again in halves. The
parser runs in processes of its own, one for each worker; or, if it is registered with ``devices``, one for each of
those.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tree_fairseq.errors import ParserError, ParserUnavailableError
from tree_fairseq.trees.tree import Tree

# The label of the tree of a sentence that could not be parsed, and the tag of its words.
FLAT_LABEL, FLAT_TAG = "FRAG", "XX"

DEFAULT_BATCH_SIZE = 100
"""Sentences per call of a parser; on one core Stanza is fastest at 100 to 200."""

CHOICES = {
    "ssplit": ("none", "punct"),
    "tokenize": ("pretokenized", "stanza"),
    "subwords": ("auto", "none", "bpe", "sentencepiece"),
    "on_parse_error": ("flat", "stop"),
}


@dataclass(frozen=True)
class ParserOptions:
    """All that decides which trees a text gets, and how the parser is run.

    Args:
        name: a registered parser, or ``MODULE:PARSER`` for one that a module of the user registers; ``brackets`` means
            that the text consists of trees already.
        lang: language of the text, as Stanza names it.
        parser_dir: folder with the models; by default Stanza downloads its own.
        package: Stanza's name for the constituency model, where a language has several.
        batch_size: sentences per call of the parser.
        ssplit: ``punct`` cuts a line after sentence-final punctuation, ``none`` takes it as one sentence.
        tokenize: ``pretokenized`` keeps the tokens of the text, ``stanza`` finds them in raw text.
        subwords: how the text is split already: ``bpe`` (``@@``), ``sentencepiece`` (``▁``), ``none``, or ``auto``,
            which goes by the marks of each line.
        subword_model: splits words that are not split yet: a SentencePiece model (``*.model``) or subword-nmt's codes.
        unescape_moses: show the parser ``'`` where the text has ``&apos;`` (the leaves keep the text's form).
        strip_function_tags: ``NP-SBJ`` becomes ``NP``.
        seed: of the ``random`` parser.
        device: ``auto`` (every GPU, if the parser uses GPUs and there are any), ``cpu``, or a torch device.
        on_parse_error: a sentence that cannot be parsed gets a ``flat`` tree, or makes the run ``stop``. The default is
            ``flat``, and ``stop`` for brackets.
        max_parse_failures: how many sentences may fail, as an int, or as a float below one their share (one is always
            allowed to fail then).

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
        for field, choices in CHOICES.items():
            if getattr(self, field) not in choices:
                raise ValueError(f"{field} is one of {', '.join(choices)}, not {getattr(self, field)!r}")
        if self.batch_size < 1:
            raise ValueError(f"batch_size is at least 1, not {self.batch_size}")
        limit = self.max_parse_failures
        if limit < 0 or (isinstance(limit, float) and limit >= 1):
            raise ValueError(f"max_parse_failures is a count (an int) or a share below one, not {limit!r}")

    def to_json(self) -> dict[str, Any]:
        """Returns the options as a dictionary for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> ParserOptions:
        """Returns the options that :meth:`to_json` gave; raises ValueError for one that this version does not know."""
        known = {field.name for field in dataclasses.fields(cls)}
        if unknown := sorted(set(values) - known):
            raise ValueError(
                f"unknown parser options: {', '.join(unknown)}; they were written by another version of tree_fairseq"
            )
        return cls(**values)

    def replace(self, **changes: Any) -> ParserOptions:
        """Returns a copy with other values."""
        return dataclasses.replace(self, **changes)


class ConstituencyParser(Protocol):
    """Gives each sentence a constituency tree. A method ``tags()`` may list those labels that stand above words, and
    ``release_memory()`` is called after a lack of memory; both are optional."""

    def identity(self) -> dict[str, Any]:
        """Returns all that decides the trees (name, version, hash of the model, options), for JSON, without loading a
        model."""

    def inventory(self) -> list[str]:
        """Returns all labels of phrases and of words that the parser can give; ``[]`` if it does not know them."""

    def parse(self, sentences: list[list[str]]) -> Sequence[Tree | None]:
        """Returns one tree for each sentence, in order, whose leaves are its words; None where the parser fails."""


@dataclass(frozen=True)
class ParsedText:
    """The parse of one line of raw text: trees whose leaves are its tokens, and each leaf's half-open span of
    characters."""

    forest: tuple[Tree, ...]
    offsets: list[tuple[int, int]]


class TextParser(ConstituencyParser, Protocol):
    """A parser that also finds the tokens and sentences of raw text."""

    def parse_text(self, lines: list[str]) -> Sequence[ParsedText | None]:
        """Returns one parse for each line, in order; None where the parser fails."""


Factory = Callable[[ParserOptions], Any]


@dataclass(frozen=True)
class _Registration:
    factory: Factory
    expensive: bool
    devices: Callable[[], list[str]] | None


_REGISTRY: dict[str, _Registration] = {}
# Imported when their parser is first asked for: whoever uses one parser does not need the others.
_BUILT_IN = {
    "stanza": "tree_fairseq.parsing.stanza_parser",
    "right-branching": "tree_fairseq.parsing.controls",
    "balanced": "tree_fairseq.parsing.controls",
    "random": "tree_fairseq.parsing.controls",
}


def register_parser(
    name: str, *, expensive: bool = True, devices: Callable[[], list[str]] | None = None
) -> Callable[[Factory], Factory]:
    """Registers a parser under a name for ``--tree-parser``. It decorates a class, or a function that builds a parser.

    A later registration of a name replaces an earlier one.

    Args:
        name: the name.
        expensive: whether parses are cached and made in processes of their own. Those import the module of the class or
            function, so it has to be at the top level of a module.
        devices: lists the devices that the parser can use, such as ``cuda:0`` and ``cuda:1``. One process is started
            for each of them, and finds its own in ``options.device``. Without devices all processes use the CPU.
    """

    def register(factory: Factory) -> Factory:
        _REGISTRY[name] = _Registration(factory, expensive, devices)
        return factory

    return register


def parser_names() -> list[str]:
    """Returns the names that ``--tree-parser`` takes."""
    return sorted({*_BUILT_IN, *_REGISTRY, "brackets"})


def _registration(name: str) -> _Registration:
    module, _, own_name = name.rpartition(":")
    module = module or ("" if name in _REGISTRY else _BUILT_IN.get(name, ""))
    if module:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise ParserUnavailableError(f"--tree-parser {name}: {module} cannot be imported: {error}") from error
    if own_name not in _REGISTRY:
        raise ParserUnavailableError(f"there is no parser {own_name!r}; the parsers are {', '.join(parser_names())}")
    return _REGISTRY[own_name]


def build_parser(options: ParserOptions) -> ConstituencyParser:
    """Builds the parser that the options name; raises ParserUnavailableError if something is missing."""
    if options.name == "brackets":
        raise ParserError("ready-made trees are read, not parsed: LineParser does it")
    return _registration(options.name).factory(options)


def is_expensive(name: str) -> bool:
    """Returns whether parses of this parser are worth a cache and processes of their own."""
    return name != "brackets" and _registration(name).expensive


def devices_of(name: str) -> list[str]:
    """Returns the devices that a parser can use on this machine; ``[]`` if it uses the CPU alone."""
    devices = None if name == "brackets" else _registration(name).devices
    return [] if devices is None else devices()


def factory_module(name: str) -> str | None:
    """Returns the module that registers a parser when it is imported; None for ``brackets``, which is not a parser."""
    return None if name == "brackets" else _registration(name).factory.__module__


def flat_tree(words: Sequence[str]) -> Tree:
    """Returns the tree of a sentence that could not be parsed: ``(FRAG (XX w1) (XX w2) ...)``."""
    return Tree(FLAT_LABEL, [Tree(FLAT_TAG, [Tree(word)]) for word in words])
