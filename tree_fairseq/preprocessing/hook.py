"""What ``fairseq-preprocess`` gains when the plugin is imported: groups of arguments, and trees.

The command imports ``--user-dir`` before it builds its parser and looks up ``main`` after it has parsed the arguments, so
wrapping the two functions is enough. Under ``python -m fairseq_cli.preprocess`` the ``main`` that is called is that of the
module ``__main__``.
"""

from __future__ import annotations

import functools
import importlib
import logging
import os
import sys
from argparse import ArgumentParser, Namespace
from types import ModuleType
from typing import Callable

from fairseq import options

_MODULE = "fairseq_cli.preprocess"
# Set on a wrapper, so that nothing is wrapped twice, also when this package is imported under two names.
_MARK = "wrapped_by_tree_fairseq"


def install() -> None:
    """Wraps fairseq's functions; again is harmless."""
    _wrap(options, "add_preprocess_args", _with_tree_arguments)
    _wrap(_import_quietly(_MODULE), "main", _with_trees)
    main_module = sys.modules.get("__main__")
    if main_module is not None and _is_preprocess(main_module):
        _wrap(main_module, "main", _with_trees)


def _wrap(module: ModuleType, name: str, wrapper: Callable[[Callable], Callable]) -> None:
    function = getattr(module, name)
    if not hasattr(function, _MARK):
        wrapped = functools.wraps(function)(wrapper(function))
        setattr(wrapped, _MARK, True)
        setattr(module, name, wrapped)


def _with_tree_arguments(
    stock: Callable[[ArgumentParser], ArgumentParser],
) -> Callable[[ArgumentParser], ArgumentParser]:
    def add_preprocess_args(parser: ArgumentParser) -> ArgumentParser:
        from tree_fairseq.classification.arguments import add_classification_arguments
        from tree_fairseq.data_bin.symbol_sides import add_symbol_arguments
        from tree_fairseq.preprocessing.arguments import add_tree_arguments
        from tree_fairseq.tree_insertion.preprocessing import add_insertion_arguments

        stock(parser)
        add_tree_arguments(parser)
        add_symbol_arguments(parser)
        add_classification_arguments(parser)
        add_insertion_arguments(parser)
        return parser

    return add_preprocess_args


def _with_trees(stock: Callable[[Namespace], None]) -> Callable[[Namespace], None]:
    def main(args: Namespace) -> None:
        from tree_fairseq.classification.arguments import is_classification
        from tree_fairseq.data_bin.symbol_sides import modality
        from tree_fairseq.tree_insertion.preprocessing import is_insertion

        if is_classification(args):
            from tree_fairseq.classification.preprocessing import preprocess_classification

            preprocess_classification(args, stock)
            return
        if is_insertion(args):
            from tree_fairseq.tree_insertion.preprocessing import preprocess_insertion

            preprocess_insertion(args, stock)
            return
        # A caller from Python may have made its arguments without our parser.
        if (
            getattr(args, "tree_parser", None) is None
            and modality(args, "source") == modality(args, "target") == "sequence"
        ):
            stock(args)
            return
        from tree_fairseq.preprocessing.run import preprocess_with_trees

        preprocess_with_trees(args, stock)

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
    """Whether a module is the stock command's, run as a script or with ``python -m``."""
    path = getattr(module, "__file__", None)
    stock = sys.modules[_MODULE].__file__
    return path is not None and hasattr(module, "main") and os.path.realpath(path) == os.path.realpath(stock)
