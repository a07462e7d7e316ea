"""The extension of ``fairseq-preprocess``: groups of arguments, and the registry of kinds of data set.

The command imports ``--user-dir`` before it builds its parser and looks up ``main`` after it has parsed the arguments,
so the two functions that the table of repairs replaces are enough.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Callable, NamedTuple

from tree_fairseq.errors import InputError
from tree_fairseq.parsing.parsers import add_parser_arguments
from tree_fairseq.preprocessing.plan import PER_SIDE, StockMain, modality
from tree_fairseq.preprocessing.run import preprocess
from tree_fairseq.preprocessing.text_files import asks_for_text
from tree_fairseq.support.options import flag_of
from tree_fairseq.trees.notations import NOTATIONS
from tree_fairseq.trees.symbols import ARITY_MARK, BINARIZATIONS, TRAVERSALS

Flags = Mapping[str, dict[str, Any]]
"""The settings of ``add_argument``, by flag."""


class Preprocessing(NamedTuple):
    """How ``fairseq-preprocess`` makes one kind of data set.

    Attributes:
        tasks: values of ``--task`` that ask for this kind
        title, description: of its group of arguments
        flags: the arguments that go with these tasks only; their default is None
        preprocess: does the work, given all arguments and fairseq's own ``main``
    """

    tasks: Sequence[str]
    title: str
    description: str
    flags: Flags
    preprocess: Callable[[Namespace, StockMain], None]


_KINDS: dict[str, Preprocessing] = {}


def register_preprocessing(name: str, kind: Preprocessing) -> None:
    """Adds a kind of data set to ``fairseq-preprocess``, or replaces the one of the same name."""
    _KINDS[name] = kind


_SHOWN = "(default: %(default)s)"
_TREE_SIDES = {
    "default": "source",
    "choices": ("source", "target", "source,target"),
    "metavar": "SIDES",
    "help": f"which sides get trees: source, target, or source,target {_SHOWN}. "
    f"For both, {', '.join(map(flag_of, PER_SIDE))} may have two values, separated by a comma",
}
_MODALITY = "tree: every line is a tree in the notation below"
_SENTENCES = "; constituency: every line is a sentence, and its parse by --tree-parser is the tree"
_NOTATION = {
    "choices": sorted(NOTATIONS),
    "default": "bracket",
    "help": f"how the trees are written; bracket: ( head child ... ), as s-expressions and treebanks {_SHOWN}",
}
_SYMBOL_FLAGS: Flags = {
    "--source-modality": {
        "choices": ("sequence", "tree", "constituency"),
        "default": "sequence",
        "help": f"{_MODALITY}{_SENTENCES} {_SHOWN}",
    },
    "--source-notation": _NOTATION,
    "--target-modality": {"choices": ("sequence", "tree"), "default": "sequence", "help": f"{_MODALITY} {_SHOWN}"},
    "--target-notation": _NOTATION,
    "--traversal": {"choices": TRAVERSALS, "default": "dfs", "help": f"depth-first or breadth-first {_SHOWN}"},
    "--binarization": {
        "choices": BINARIZATIONS,
        "default": "lcrs",
        "help": "lcrs: left-child right-sibling binary trees; none: the trees as they are, with any number of branches "
        + _SHOWN,
    },
    "--all-arities": {
        "action": "store_true",
        "help": "the dictionary has every label with every arity, so that a model with --factored-symbols can write a "
        "label with as many children as training never shows",
    },
    "--arity-mark": {
        "default": ARITY_MARK,
        "metavar": "C",
        "help": f"the character between a symbol and its arity; no symbol contains it {_SHOWN}",
    },
}

_BOTH_SIDES = "; two files, separated by a comma, for source and target, and an empty name for a side that is not split"
_KEPT = "The file is copied into the destination, so that new text is split in the same way"

_TEXT_FLAGS: Flags = {
    "--bpe-codes": {
        "metavar": "FILE",
        "help": "codes of subword-nmt. Lines with its marks (@@) are split already and stay as they are; other lines "
        f"are split. {_KEPT}{_BOTH_SIDES}",
    },
    "--sentencepiece-model": {
        "metavar": "FILE",
        "help": f"a model of SentencePiece, used in the same way; its mark is \u2581{_BOTH_SIDES}",
    },
    "--learn-subwords": {
        "type": int,
        "metavar": "N",
        "help": "learn a subword model from the training text, and use it like a given one: N merges with --bpe "
        "subword_nmt, which is the default, or a vocabulary of N pieces with --bpe sentencepiece",
    },
    "--separate-subwords": {"action": "store_true", "help": "learn a model for each side instead of one for both"},
    "--apply-tokenizer": {
        "action": "store_true",
        "help": "the text is raw: tokenise it with --tokenizer first. Otherwise --tokenizer names the tokeniser that "
        "the text came from. New text is tokenised with it, and output is detokenised",
    },
    "--moses-no-dash-splits": {"action": "store_true", "help": "with --tokenizer moses: keep words with dashes whole"},
}

_WAYS_TO_TREES = {
    "tree_translation": "Add --tree-parser stanza, or --tree-parser brackets if the lines are trees already. "
    "Nothing was written.",
    "structural_translation": "Add --source-modality tree, --target-modality tree or both. Nothing was written.",
}
"""How to get the trees that a task needs."""


def add_tree_arguments(parser: ArgumentParser) -> None:
    """Adds the group of arguments about constituency trees."""
    group = parser.add_argument_group("trees", "constituency trees, kept beside the token files")
    add_parser_arguments(group, default_parser=None, default_lang=None)
    group.add_argument("--tree-sides", **_TREE_SIDES)


def _add_flags(parser: ArgumentParser, title: str, description: str, flags: Flags) -> None:
    group = parser.add_argument_group(title, description)
    for flag, settings in flags.items():
        group.add_argument(flag, **settings)


def add_tree_groups(stock: Callable[[ArgumentParser], ArgumentParser]) -> Callable[[ArgumentParser], ArgumentParser]:
    """Adds this package's groups of arguments after fairseq's."""

    def add_preprocess_args(parser: ArgumentParser) -> ArgumentParser:
        stock(parser)
        add_tree_arguments(parser)
        _add_flags(parser, "tokens and subwords", "how the text is, or becomes, tokens of the folder", _TEXT_FLAGS)
        _add_flags(parser, "symbol trees", "programs and logical forms, encoded as sequences of symbols", _SYMBOL_FLAGS)
        for kind in _KINDS.values():
            _add_flags(parser, kind.title, kind.description, kind.flags)
        return parser

    return add_preprocess_args


def _kind_of(args: Namespace) -> Preprocessing | None:
    """Returns the kind of data set that arguments ask for, or raises InputError if its task is not given.

    A caller from Python may have made the arguments without our parser.
    """
    for kind in _KINDS.values():
        if getattr(args, "task", None) in kind.tasks:
            return kind
        for flag in kind.flags:
            if getattr(args, flag[2:].replace("-", "_"), None) is not None:
                raise InputError(f"{flag} goes with --task {kind.tasks[0]} only")
    return None


def preprocess_trees(stock: StockMain) -> StockMain:
    """Preprocesses trees, classes and subwords if arguments ask for them; everything else is fairseq's own work."""

    def main(args: Namespace) -> None:
        _refuse_links(Path(args.destdir))
        if kind := _kind_of(args):
            kind.preprocess(args, stock)
            return
        has_symbols = any(modality(args, side) != "sequence" for side in ("source", "target"))
        has_trees = has_symbols or getattr(args, "tree_parser", None) is not None
        _require_trees(args, has_symbols)
        if has_trees or asks_for_text(args):
            preprocess(args, stock)
        else:
            stock(args)

    return main


def _refuse_links(destination: Path) -> None:
    """Raises InputError if a file that is written, or is made longer, is a link to another place."""
    for path in destination.glob("*"):
        if path.is_symlink() and path.suffix in (".bin", ".idx", ".log", ".txt"):
            raise InputError("this is a link, and what it leads to could be overwritten", path, hint="Remove it.")


def _require_trees(args: Namespace, has_symbols: bool) -> None:
    """Raises InputError if the task needs trees that no flag asks for."""
    task = getattr(args, "task", None)
    if task == "tree_translation":
        # Trees beside tokens; those of the target are for training in the other direction.
        is_parsed = getattr(args, "tree_parser", None) is not None
        is_enough = is_parsed and modality(args, "source") == "sequence"
    else:
        is_enough = has_symbols
    if not is_enough and task in _WAYS_TO_TREES:
        what = "constituency trees" if task == "tree_translation" else "symbol trees"
        raise InputError(f"--task {task} needs {what}, but no flag asks for them", hint=_WAYS_TO_TREES[task])
