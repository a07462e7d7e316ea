"""The arguments about trees of commands that write them beside token files."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from tree_fairseq.data_bin.folder_trees import TreeSide
from tree_fairseq.errors import InputError
from tree_fairseq.parsing.arguments import add_parser_arguments, options_from_arguments

# With trees on both sides each of these may have two values, separated by a comma.
_PER_SIDE = ("tree_parser", "tree_lang", "parser_dir", "parser_package", "tree_subword_model")


def add_tree_arguments(parser: ArgumentParser) -> None:
    """Adds one group with all of them."""
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
    """The sides that get trees, each with its parser.

    Raises:
        InputError: an option has more or fewer values than there are sides, or one that it cannot have.
    """
    names = args.tree_sides.split(",")
    sides = []
    for number, name in enumerate(names):
        lang = source_lang if name == "source" else target_lang
        own = Namespace(
            **{**vars(args), **{field: _value_of_side(args, field, number, len(names)) for field in _PER_SIDE}}
        )
        own.tree_lang = own.tree_lang or lang
        try:
            options = options_from_arguments(own)
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
