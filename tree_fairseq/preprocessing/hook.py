"""The extension of ``fairseq-preprocess``: groups of arguments, and the registry of kinds of data set.

The command imports ``--user-dir`` before it builds its parser and looks up ``main`` after it has parsed the arguments,
so wrapping the two functions is enough. Under ``python -m fairseq_cli.preprocess`` the ``main`` that is called is that
of the module ``__main__``.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from types import ModuleType
from typing import Callable, NamedTuple

from fairseq import options

from tree_fairseq.compat import wrap
from tree_fairseq.errors import InputError
from tree_fairseq.preprocessing.plan import StockMain
from tree_fairseq.preprocessing.run import preprocess_with_trees
from tree_fairseq.preprocessing.tree_arguments import add_symbol_arguments, add_tree_arguments, modality


class Preprocessing(NamedTuple):
    """How ``fairseq-preprocess`` makes one kind of data set.

    Attributes:
        tasks: values of ``--task`` that ask for this kind
        own_flags: names of arguments, such as ``input_format``, that go with these tasks only; None where they are not
            given
        add_arguments: adds the kind's group of arguments
        preprocess: does the work, given the arguments and fairseq's own ``main``
    """

    tasks: Sequence[str]
    own_flags: Sequence[str]
    add_arguments: Callable[[ArgumentParser], None]
    preprocess: Callable[[Namespace, StockMain], None]


_KINDS: dict[str, Preprocessing] = {}


def register_preprocessing(name: str, kind: Preprocessing) -> None:
    """Adds a kind of data set to ``fairseq-preprocess``, or replaces the one of the same name."""
    _KINDS[name] = kind


_MODULE = "fairseq_cli.preprocess"


def install() -> None:
    """Wraps fairseq's functions; a second call does nothing."""
    wrap(options, "add_preprocess_args", _with_tree_arguments)
    wrap(_import_quietly(_MODULE), "main", _with_trees)
    main_module = sys.modules.get("__main__")
    if main_module is not None and _is_preprocess(main_module):
        wrap(main_module, "main", _with_trees)


def _with_tree_arguments(
    stock: Callable[[ArgumentParser], ArgumentParser],
) -> Callable[[ArgumentParser], ArgumentParser]:
    def add_preprocess_args(parser: ArgumentParser) -> ArgumentParser:
        stock(parser)
        add_tree_arguments(parser)
        add_symbol_arguments(parser)
        for kind in _KINDS.values():
            kind.add_arguments(parser)
        return parser

    return add_preprocess_args


def _kind_of(args: Namespace) -> Preprocessing | None:
    """Returns the kind of data set that arguments ask for; a caller from Python may have made them without our parser.

    Raises:
        InputError: there are arguments of a kind whose task is not given.
    """
    for kind in _KINDS.values():
        if getattr(args, "task", None) in kind.tasks:
            return kind
        if given := [name for name in kind.own_flags if getattr(args, name, None) is not None]:
            raise InputError(f"--{given[0].replace('_', '-')} goes with --task {kind.tasks[0]} only")
    return None


def _has_trees(args: Namespace) -> bool:
    is_parsed = getattr(args, "tree_parser", None) is not None
    return is_parsed or any(modality(args, side) != "sequence" for side in ("source", "target"))


def _with_trees(stock: StockMain) -> StockMain:
    def main(args: Namespace) -> None:
        if kind := _kind_of(args):
            kind.preprocess(args, stock)
        elif _has_trees(args):
            preprocess_with_trees(args, stock)
        else:
            stock(args)

    return main


def _import_quietly(name: str) -> ModuleType:
    """Imports a module that configures logging when imported, and leaves logging as it was."""
    if name in sys.modules:
        return sys.modules[name]
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    module = importlib.import_module(name)
    root.handlers[:] = handlers
    root.setLevel(level)
    return module


def _is_preprocess(module: ModuleType) -> bool:
    """Returns whether a module is the stock command, run as a script or with ``python -m``."""
    path = getattr(module, "__file__", None)
    stock = sys.modules[_MODULE].__file__
    return path is not None and hasattr(module, "main") and os.path.realpath(path) == os.path.realpath(stock)
