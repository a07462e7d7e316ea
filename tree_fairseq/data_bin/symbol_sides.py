"""Sides of a folder whose text is symbol trees: how they are written, and the record of that in ``tree.json``."""

from __future__ import annotations

import functools
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass, field
from typing import Any

from tree_fairseq.errors import EmptySymbolTreeError, InputError
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.trees.notations import NOTATIONS, Notation, notation_named
from tree_fairseq.trees.symbols import ARITY_MARK, BINARIZATIONS, TRAVERSALS, SymbolEncoding
from tree_fairseq.trees.tree import Forest, Tree

MODALITIES = ("sequence", "tree", "constituency")
_DOCUMENT = "DOCUMENT"
"""The label above several sentences of one line."""


@dataclass
class SymbolSplitRecord:
    """The symbol trees of one side of one split.

    Attributes:
        prefix: name of the token files without extension, such as ``train.nl-lf.lf``
        lines: trees
        symbols: symbols of all trees
        depth: of the deepest tree in the form that was encoded, the root at 0
        unknown: symbols that the dictionary does not have
        files: names of the token files
    """

    prefix: str
    lines: int
    symbols: int
    depth: int
    unknown: int
    files: list[str]


@dataclass
class SymbolSideRecord:
    """The symbol trees of one language.

    Attributes:
        side: ``source`` or ``target``
        modality: ``tree``, or ``constituency`` where the text is sentences whose parses are the trees
        notation: how the text, or the output, is written
        traversal, binarization, mark: see :class:`tree_fairseq.trees.symbols.SymbolEncoding`
        degree: the largest number of branches of a node
        parser: the parser's options, for sentences
        identity: name, version and model of the parser that ran
        grammar: name of the file of symbols seen under each other, if there is one
        splits: by name
    """

    side: str
    modality: str
    notation: str
    traversal: str
    binarization: str
    mark: str
    degree: int
    parser: dict[str, Any] | None = None
    identity: dict[str, Any] | None = None
    grammar: str | None = None
    splits: dict[str, SymbolSplitRecord] = field(default_factory=dict)

    @property
    def encoding(self) -> SymbolEncoding:
        """How trees became sequences of symbols."""
        return SymbolEncoding(self.traversal, self.binarization, self.mark)

    @property
    def options(self) -> ParserOptions | None:
        """How sentences were parsed."""
        return None if self.parser is None else ParserOptions.from_json(self.parser)

    def makes_same_symbols(self, other: SymbolSideRecord) -> bool:
        """Whether both turn the same text into the same symbols."""
        names = ("modality", "notation", "traversal", "binarization", "mark", "identity")
        return all(getattr(self, name) == getattr(other, name) for name in names)


@dataclass(frozen=True)
class SymbolSide:
    """A side whose text is symbol trees, before it is encoded.

    Attributes:
        side: ``source`` or ``target``
        lang: its language, the suffix of its files
        notation: name of the notation of the trees
        encoding: how trees become sequences
        options: of the parser, where the text is sentences; else None
    """

    side: str
    lang: str
    notation: str
    encoding: SymbolEncoding
    options: ParserOptions | None = None

    def record(self) -> SymbolSideRecord:
        """The side's entry in the manifest, as yet without degree and splits."""
        return SymbolSideRecord(
            side=self.side,
            modality="tree" if self.options is None else "constituency",
            notation=self.notation,
            traversal=self.encoding.traversal,
            binarization=self.encoding.binarization,
            mark=self.encoding.mark,
            degree=0,
            parser=None if self.options is None else self.options.to_json(),
            identity=None if self.options is None else LineParser(self.options).identity(),
        )

    @functools.cached_property
    def reader(self) -> Notation:
        """The notation itself."""
        return notation_named(self.notation)


def tree_of_forest(forest: Forest) -> Tree:
    """One symbol tree for the parses of a line: their nodes and words; several sentences get a node above them.

    Raises:
        EmptySymbolTreeError: there is none
    """
    if not forest:
        raise EmptySymbolTreeError("the line holds no sentence, and a tree has a root")
    return forest[0] if len(forest) == 1 else Tree(_DOCUMENT, forest)


def add_symbol_arguments(parser: ArgumentParser) -> None:
    """Adds the group of arguments about symbol trees."""
    group = parser.add_argument_group("symbol trees", "programs and logical forms, encoded as sequences of symbols")
    for side in ("source", "target"):
        choices = MODALITIES if side == "source" else MODALITIES[:2]
        group.add_argument(
            f"--{side}-modality",
            choices=choices,
            default="sequence",
            help="tree: every line is a tree in the notation below"
            + (
                "; constituency: every line is a sentence, its tree is its parse by --tree-parser"
                if side == "source"
                else ""
            )
            + " (default: %(default)s)",
        )
        group.add_argument(
            f"--{side}-notation",
            choices=sorted(NOTATIONS),
            default="bracket",
            help="how the trees are written; bracket: ( head child ... ), as s-expressions and treebanks (default: %(default)s)",
        )
    group.add_argument(
        "--traversal", choices=TRAVERSALS, default="dfs", help="depth-first or breadth-first (default: %(default)s)"
    )
    group.add_argument(
        "--binarization",
        choices=BINARIZATIONS,
        default="lcrs",
        help="lcrs: left-child right-sibling binary trees; none: the trees as they are, as wide as they are (default: %(default)s)",
    )
    group.add_argument(
        "--arity-mark",
        default=ARITY_MARK,
        metavar="C",
        help="a character that no symbol contains: it stands before a symbol's arity (default: %(default)s)",
    )


def modality(args: Namespace, side: str) -> str:
    """What a side is; a caller from Python may have made its arguments without our parser."""
    return getattr(args, f"{side}_modality", None) or "sequence"


def symbol_sides_from_arguments(args: Namespace, parser_options: ParserOptions | None) -> tuple[SymbolSide, ...]:
    """The sides that are symbol trees.

    Args:
        args: of ``fairseq-preprocess``
        parser_options: of the parser that a constituency side needs, if one was asked for

    Raises:
        InputError: the arguments do not go together
    """
    sides = []
    for side, lang in (("source", args.source_lang), ("target", args.target_lang)):
        kind = modality(args, side)
        if kind == "sequence" or lang is None or (side == "target" and args.only_source):
            continue
        if kind == "constituency" and parser_options is None:
            raise InputError(
                f"--{side}-modality constituency needs a parser", hint="Give --tree-parser, such as stanza."
            )
        try:
            encoding = SymbolEncoding(args.traversal, args.binarization, args.arity_mark)
        except ValueError as error:
            raise InputError(f"--arity-mark: {error}") from None
        notation = "bracket" if kind == "constituency" else getattr(args, f"{side}_notation")
        sides.append(SymbolSide(side, lang, notation, encoding, parser_options if kind == "constituency" else None))
    return tuple(sides)
