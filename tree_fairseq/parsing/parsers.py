"""Constituency parsers: what one is, the registry of them, and the options that a user sets with flags.

To add a parser, register it in a module such as ``my_parsers.py``, and name it as ``--tree-parser my_parsers:comb``;
``docs/extending.md`` has an example. Parsers of control trees, which ignore the words, are in this file.

Batches are made of sentences of similar length, and a batch that fails is tried again in halves. The parser runs in
processes of its own: one for each worker, or for each of its ``devices`` if it is registered with them.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import importlib
import json
import os
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tree_fairseq.errors import InputError, ParserError, ParserUnavailableError, TooManyParseFailuresError, did_you_mean
from tree_fairseq.parsing.interface import ConstituencyParser
from tree_fairseq.trees.tree import Tree, binary_tree
from tree_fairseq.trees.treebanks import SEPARATORS, Conventions

# The label of the tree of a sentence that could not be parsed, and the tag of its words.
FLAT_LABEL, FLAT_TAG = "FRAG", "XX"
_CONTROL_LABEL = "X"  # of every phrase and every word of a control tree
_LINES_SHOWN = 20


def parse_limit(text: str) -> int | float:
    """Reads ``--max-parse-failures``: ``25`` is a count, ``0.01`` and ``1%`` a share; argparse reports other values."""
    try:
        share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        limit: int | float = int(text) if text.isdigit() else share
    except ValueError:
        limit = -1
    # A count, or a share below one; NaN is neither.
    if not (limit >= 0 if isinstance(limit, int) else 0 <= limit < 1):
        raise argparse.ArgumentTypeError(f"a number, or a share such as 0.01 or 1%, not {text!r}")
    return limit


def _flag(flag: str, default: Any, help: str, **argument: Any) -> Any:
    """Returns a field that is set by a flag, with the flag's further arguments for argparse."""
    return field(default=default, metadata={"flag": flag, "help": help, "argument": argument})


@dataclass(frozen=True)
class ParserOptions:
    """All that decides which trees a text gets, and how the parser is run. Options have flags, which explain them.

    ``name`` is a registered parser or ``MODULE:PARSER``, or ``brackets`` if the text consists of trees already.
    ``max_parse_failures`` is a count (an int) or a share below one (a float); one sentence may always fail then.
    """

    name: str = _flag("--tree-parser", "stanza", "where trees come from", metavar="NAME")
    lang: str = _flag("--tree-lang", "en", "language of the text, as Stanza names it", metavar="LANG")
    parser_dir: str | None = _flag(
        "--parser-dir",
        None,
        "folder with the parser's model. Stanza: its own layout, or constituency.pt, tagger.pt, pretrain.pt; without "
        "it Stanza downloads its models on first use. benepar: a file or folder",
        metavar="DIR",
    )
    package: str | None = _flag(
        "--parser-package",
        None,
        "name of the model, where a language has several: Stanza's package, or benepar_en3",
        metavar="NAME",
    )
    # On one core Stanza is fastest at 150 to 300.
    batch_size: int = _flag("--tree-batch-size", 200, "sentences given to the parser at once", type=int, metavar="N")
    ssplit: str = _flag(
        "--tree-ssplit",
        "none",
        "punct: a line may hold several sentences, each gets a tree; none: a line is a sentence",
        choices=("none", "punct"),
    )
    tokenize: str = _flag(
        "--tree-tokenize",
        "pretokenized",
        "pretokenized: the tokens of the text are the leaves; parser: the text is raw and the parser finds the tokens "
        "(stanza, corenlp). stanza is another name of it",
        choices=("pretokenized", "parser", "stanza"),
    )
    subwords: str = _flag(
        "--tree-subwords",
        "auto",
        "how the text is split already; words are joined for the parser and split again in the tree. "
        "auto looks at the marks in the whole text",
        choices=("auto", "none", "bpe", "sentencepiece"),
    )
    # The file of a model that splits words that are not split yet, also in ready-made trees.
    subword_model: str | None = None
    corenlp_url: str = _flag(
        "--corenlp-url", "http://localhost:9000", "where --tree-parser corenlp finds a running server", metavar="URL"
    )
    strip_function_tags: bool = _flag("--tree-strip-function-tags", False, "NP-SBJ becomes NP")
    tag_separators: str | None = _flag(
        "--tree-tag-separators",
        None,
        f"the same with other signs, at the first of which labels are cut (default: {SEPARATORS})",
        metavar="SIGNS",
    )
    keep_empty: bool = _flag(
        "--keep-empty",
        False,
        "ready-made trees: keep empty elements (-NONE-) and notes such as CODE and ID, which are no words",
    )
    device: str = _flag(
        "--tree-device",
        "auto",
        "auto: one parsing process on each GPU where there are any; or cpu, cuda:1",
        metavar="DEVICE",
    )
    on_parse_error: str | None = _flag(
        "--on-parse-error",
        None,
        "a sentence that cannot be parsed gets a flat tree, or ends the run (default: flat; stop for brackets, unless "
        "--max-parse-failures is given, and for programs); skip-pair: its pair is left out of training and "
        "validation, and counted",
        choices=("flat", "stop", "skip-pair"),
    )
    max_parse_failures: int | float = _flag(
        "--max-parse-failures",
        None,
        "end with an error if more sentences than this get a flat tree: a number, or a share such as 0.01 or 1%% "
        "(default: 1%%)",
        type=parse_limit,
        metavar="N",
    )

    def __post_init__(self) -> None:
        if self.tokenize == "parser":
            # Folders and caches know it by its older name.
            object.__setattr__(self, "tokenize", "stanza")
        if self.on_parse_error is None:
            stops = self.name == "brackets" and self.max_parse_failures is None
            object.__setattr__(self, "on_parse_error", "stop" if stops else "flat")
        if self.max_parse_failures is None:
            object.__setattr__(self, "max_parse_failures", 0.01)
        if self.tag_separators is not None:
            object.__setattr__(self, "strip_function_tags", True)
        elif self.strip_function_tags:
            object.__setattr__(self, "tag_separators", SEPARATORS)
        for option in _FLAGGED:
            value, choices = getattr(self, option.name), option.metadata["argument"].get("choices")
            if choices and value not in choices:
                raise ValueError(f"{option.name} is one of {', '.join(choices)}, not {value!r}")

    def to_json(self) -> dict[str, Any]:
        """Returns the options by name; the inverse is :meth:`from_json`."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> ParserOptions:
        """Returns the options that :meth:`to_json` gave; raises InputError for one that this version does not know."""
        names = {option.name for option in dataclasses.fields(cls)}
        if not isinstance(values, dict):
            raise InputError(f"the options of a parser are {values!r}", hint="Preprocess again.")
        if unknown := ", ".join(sorted(set(map(str, values)) - names)):
            raise InputError(f"unknown parser options: {unknown}; they were written by another version of tree_fairseq")
        try:
            return cls(**values)
        except (TypeError, ValueError) as error:
            raise InputError(f"the options of a parser cannot be read: {error}", hint="Preprocess again.") from error

    @property
    def conventions(self) -> Conventions:
        """The parts of trees that are kept. Trees of a parser lose their function tags alone."""
        return Conventions(self.keep_empty or self.name != "brackets", self.tag_separators or "")

    def replace(self, **changes: Any) -> ParserOptions:
        """Returns a copy with other values."""
        return dataclasses.replace(self, **changes)


_FLAGGED = [option for option in dataclasses.fields(ParserOptions) if option.metadata]
ARGUMENTS = {option.name: option.metadata["flag"][2:].replace("-", "_") for option in _FLAGGED}
"""The names of the arguments that set options of parsers, by option."""

Factory = Callable[[ParserOptions], Any]


class Registration(NamedTuple):
    """A parser with the arguments of :func:`register_parser`."""

    factory: Factory
    expensive: bool
    devices: Callable[[], list[str]]


def _refuse_brackets(options: ParserOptions) -> Any:
    raise ParserError("ready-made trees are read, not parsed: LineParser does it")


_REGISTRY = {"brackets": Registration(_refuse_brackets, expensive=False, devices=list)}
# Imported when their parser is first asked for: whoever uses one parser does not need the others.
_BUILT_IN = {
    "stanza": "tree_fairseq.parsing.stanza_parser",
    "corenlp": "tree_fairseq.parsing.corenlp_parser",
    "benepar": "tree_fairseq.parsing.benepar_parser",
}


def register_parser(
    name: str, *, expensive: bool = True, devices: Callable[[], list[str]] = list
) -> Callable[[Factory], Factory]:
    """Registers a parser under a name for ``--tree-parser``. It decorates a class, or a function that builds a parser.

    Args:
        expensive: whether it runs in processes of its own, and its trees are worth keeping. The processes import the
            module of the class or function, so it has to be at the top level of a module.
        devices: lists the devices that the parser can use, such as ``cuda:0`` and ``cuda:1``. One process is started
            for each of them, and finds its own in ``options.device``. Without devices all processes use the CPU.
    """

    def register(factory: Factory) -> Factory:
        _REGISTRY[name] = Registration(factory, expensive, devices)
        return factory

    return register


def parser_names() -> list[str]:
    """Returns the names that ``--tree-parser`` takes."""
    return sorted({*_BUILT_IN, *_REGISTRY})


def registered_parser(name: str) -> Registration:
    """Returns the parser that ``--tree-parser`` names; raises ParserUnavailableError if it does not exist."""
    module, _, own_name = name.rpartition(":")
    module = module or ("" if name in _REGISTRY else _BUILT_IN.get(name, ""))
    if module:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise ParserUnavailableError(f"--tree-parser {name}: {module} cannot be imported: {error}") from error
    if own_name not in _REGISTRY:
        known = f"the parsers are {', '.join(parser_names())}. {did_you_mean(own_name, _REGISTRY)}"
        raise ParserUnavailableError(f"there is no parser {own_name!r}; {known}".rstrip())
    return _REGISTRY[own_name]


def flat_tree(words: Sequence[str]) -> Tree:
    """Returns the tree of a sentence that could not be parsed: ``(FRAG (XX w1) (XX w2) ...)``."""
    return Tree(FLAT_LABEL, [Tree(FLAT_TAG, [Tree(word)]) for word in words])


def build_parser(options: ParserOptions) -> ConstituencyParser:
    """Builds the parser that the options name; raises ParserUnavailableError if something is missing."""
    return registered_parser(options.name).factory(options)


def check_failures(
    limit: int | float,
    failed: int,
    sentences: int,
    failed_lines: Iterable[int],
    path: str,
    kept: str | os.PathLike | None = None,
) -> None:
    """Raises TooManyParseFailuresError, with the numbers of the lines, if too many sentences failed.

    A limit that is a share (a float) of the sentences, and not zero, allows at least one. ``kept`` is the folder that
    has the trees.
    """
    allowed = limit if isinstance(limit, int) else max(1, int(limit * sentences)) if limit > 0 else 0
    if failed <= allowed:
        return
    lines = list(map(str, failed_lines))
    shown = ", ".join(lines[:_LINES_SHOWN]) + (", ..." if len(lines) > _LINES_SHOWN else "")
    way_out = f". Their flat trees are in {kept}: give a higher limit to take them, or remove it to parse again"
    raise TooManyParseFailuresError(
        f"{path}: {failed} of {sentences} sentences could not be parsed, --max-parse-failures allows {allowed}. "
        f"Lines: {shown}{way_out if kept else ''}"
    )


def add_parser_arguments(
    group: argparse._ArgumentGroup | argparse.ArgumentParser,
    default_parser: str | None = "stanza",
    default_lang: str | None = "en",
    engines: Sequence[str] = ("local", "ray"),
) -> None:
    """Adds the flags; without ``default_lang``, the names of the files give the language."""
    parsers = f": {', '.join(parser_names())}, or MODULE:PARSER for a parser of your own"
    for option in _FLAGGED:
        flag, text = option.metadata["flag"], option.metadata["help"]
        if isinstance(option.default, bool):
            group.add_argument(flag, action="store_true", help=text)
            continue
        default = {"name": default_parser, "lang": default_lang}.get(option.name, option.default)
        text += parsers if option.name == "name" else ""
        if default is not None or option.name == "lang":
            text += f" (default: {'as the files are named' if default is None else '%(default)s'})"
        group.add_argument(flag, default=default, help=text, **option.metadata["argument"])
    text = "folder of a cache of parsed sentences on this machine, for texts that share many of them, such as folds"
    group.add_argument("--parse-cache", metavar="DIR", help=text)
    text = "where a corpus is parsed: this machine, a Ray cluster, ... (default: local)"
    group.add_argument("--engine", choices=engines, default="local", help=text)
    text = "a running cluster, auto or HOST:PORT; by default --engine ray starts one of this machine's --workers"
    group.add_argument("--ray-address", metavar="ADDRESS", help=text)


def options_from_arguments(arguments: argparse.Namespace) -> ParserOptions:
    """Returns the options that were given on a command line; raises ValueError for one that is out of range."""
    return ParserOptions(**{name: getattr(arguments, argument) for name, argument in ARGUMENTS.items()})


@dataclass(frozen=True)
class ControlParser:
    """Builds binary trees over the words, with the same label everywhere."""

    name: str
    # how many words of a span go to the left child, given the width of the span (at least 2) and the random generator
    # of the sentence, which depends on its words alone
    split: Callable[[int, random.Random], int]

    def identity(self) -> dict[str, Any]:
        return {"name": self.name, "version": 1, "seed": 0}

    def inventory(self) -> list[str]:
        return [_CONTROL_LABEL]

    tags = inventory

    def parse(self, sentences: list[list[str]]) -> list[Tree]:
        return [self._parse_one(words) for words in sentences]

    def _parse_one(self, words: list[str]) -> Tree:
        generator = random.Random(hashlib.sha256(json.dumps([0, words]).encode()).digest())
        return binary_tree(words, lambda start, end: start + self.split(end - start, generator), _CONTROL_LABEL)


@register_parser("right-branching", expensive=False)
def right_branching(options: ParserOptions) -> ControlParser:
    """``(X a (X b (X c d)))``: every phrase is a word and the rest."""
    return ControlParser("right-branching", lambda width, generator: 1)


@register_parser("balanced", expensive=False)
def balanced(options: ParserOptions) -> ControlParser:
    """Cuts every phrase in the middle; the left part of an odd number has one word more."""
    return ControlParser("balanced", lambda width, generator: (width + 1) // 2)


@register_parser("random", expensive=False)
def random_trees(options: ParserOptions) -> ControlParser:
    """Cuts every phrase at a place drawn at random, all places alike; the words of the sentence decide."""
    return ControlParser("random", lambda width, generator: generator.randrange(1, width))


@register_parser("flat", expensive=False)
class FlatParser:
    """``(FRAG (XX a) (XX b) (XX c))``, the tree of a sentence that could not be parsed."""

    def __init__(self, options: ParserOptions):
        pass

    def identity(self) -> dict[str, Any]:
        return {"name": "flat", "version": 1}

    def inventory(self) -> list[str]:
        return []

    def parse(self, sentences: list[list[str]]) -> list[Tree]:
        return [flat_tree(words) for words in sentences]
