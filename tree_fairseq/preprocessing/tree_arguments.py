"""The arguments about trees that commands share, and the flags of ``fairseq-preprocess`` that a kind of data set can
refuse."""

from __future__ import annotations

import functools
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Callable

from tree_fairseq.data_bin.constituency_sides import TreeSide
from tree_fairseq.data_bin.records import SymbolSideRecord
from tree_fairseq.errors import InputError
from tree_fairseq.parsing.arguments import add_parser_arguments, options_from_arguments
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.trees.notations import NOTATIONS, Notation, notation_named
from tree_fairseq.trees.symbols import ARITY_MARK, BINARIZATIONS, TRAVERSALS, SymbolEncoding


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
        """Returns the side's entry in the manifest, still without degree and splits."""
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
        """The notation."""
        return notation_named(self.notation)


MODALITIES = ("sequence", "tree", "constituency")
# With trees on both sides each of these may have two values, separated by a comma.
_PER_SIDE = ("tree_parser", "tree_lang", "parser_dir", "parser_package", "tree_subword_model")


def add_tree_arguments(parser: ArgumentParser) -> None:
    """Adds the group of arguments about constituency trees."""
    group = parser.add_argument_group("trees", "constituency trees, kept beside the token files")
    add_parser_arguments(group, default_parser=None, default_lang=None)
    flags = ", ".join("--" + name.replace("_", "-") for name in _PER_SIDE)
    group.add_argument(
        "--tree-sides",
        default="source",
        choices=("source", "target", "source,target"),
        metavar="SIDES",
        help="which sides get trees: source, target, or source,target (default: %(default)s). "
        f"For both, {flags} may have two values, separated by a comma",
    )


def sides_from_arguments(args: Namespace, source_lang: str, target_lang: str | None) -> tuple[TreeSide, ...]:
    """Returns the sides that get trees, each with its parser.

    Raises:
        InputError: an option has more or fewer values than there are sides, or a value that it cannot have.
    """
    names = args.tree_sides.split(",")
    sides = []
    for number, name in enumerate(names):
        lang = source_lang if name == "source" else target_lang
        own = {field: _value_of_side(args, field, number, len(names)) for field in _PER_SIDE}
        own["tree_lang"] = own["tree_lang"] or lang
        try:
            options = options_from_arguments(Namespace(**{**vars(args), **own}))
        except ValueError as error:
            raise InputError(str(error)) from None
        sides.append(TreeSide(name, lang, options))
    return tuple(sides)


def _value_of_side(args: Namespace, name: str, number: int, sides: int) -> Any:
    value = getattr(args, name)
    if not value or "," not in value:
        return value
    values = value.split(",")
    if len(values) != sides:
        raise InputError(f"--{name.replace('_', '-')} {value} has {len(values)} values for {sides} sides with trees")
    return values[number] or None


def add_symbol_arguments(parser: ArgumentParser) -> None:
    """Adds the group of arguments about symbol trees."""
    group = parser.add_argument_group("symbol trees", "programs and logical forms, encoded as sequences of symbols")
    sentences = "; constituency: every line is a sentence, and its parse by --tree-parser is the tree"
    for side, modalities in (("source", MODALITIES), ("target", MODALITIES[:2])):
        group.add_argument(
            f"--{side}-modality",
            choices=modalities,
            default="sequence",
            help="tree: every line is a tree in the notation below"
            f"{sentences if 'constituency' in modalities else ''} (default: %(default)s)",
        )
        group.add_argument(
            f"--{side}-notation",
            choices=sorted(NOTATIONS),
            default="bracket",
            help="how the trees are written; bracket: ( head child ... ), as s-expressions and treebanks "
            "(default: %(default)s)",
        )
    group.add_argument(
        "--traversal", choices=TRAVERSALS, default="dfs", help="depth-first or breadth-first (default: %(default)s)"
    )
    group.add_argument(
        "--binarization",
        choices=BINARIZATIONS,
        default="lcrs",
        help="lcrs: left-child right-sibling binary trees; none: the trees as they are, with any number of branches "
        "(default: %(default)s)",
    )
    group.add_argument(
        "--arity-mark",
        default=ARITY_MARK,
        metavar="C",
        help="the character between a symbol and its arity; no symbol contains it (default: %(default)s)",
    )


def modality(args: Namespace, side: str) -> str:
    """Returns the modality of a side; a caller from Python may have made its arguments without our parser."""
    return getattr(args, f"{side}_modality", None) or "sequence"


def symbol_sides_from_arguments(args: Namespace, parser_options: ParserOptions | None) -> tuple[SymbolSide, ...]:
    """Returns the sides that are symbol trees.

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


def _other_modality(args: Namespace, side: str) -> str | None:
    return None if modality(args, side) == "sequence" else modality(args, side)


# Flags that not every kind of data set can have, and their value where they are given (True for a switch).
_GIVEN: dict[str, Callable[[Namespace], Any]] = {
    "--source-modality": lambda args: _other_modality(args, "source"),
    "--target-modality": lambda args: _other_modality(args, "target"),
    "--tree-parser": lambda args: args.tree_parser is not None,
    "--tree-sides target": lambda args: args.tree_parser is not None and "target" in args.tree_sides,
    "--only-source": lambda args: args.only_source,
    "--joined-dictionary": lambda args: args.joined_dictionary,
    "--align-suffix": lambda args: args.align_suffix,
    "--alignfile": lambda args: args.alignfile,
    "--thresholdtgt": lambda args: max(args.thresholdtgt, 0),
    "--nwordstgt": lambda args: max(args.nwordstgt, 0),
}


def refuse_flags(args: Namespace, flags: Iterable[str], hint: str = "") -> None:
    """Refuses flags that do not go with the task of ``fairseq-preprocess``.

    Raises:
        InputError: one of them is given.
    """
    for flag in flags:
        if value := _GIVEN[flag](args):
            written = flag if value is True else f"{flag} {value}"
            raise InputError(f"{written} does not go with --task {args.task}", hint=hint)
