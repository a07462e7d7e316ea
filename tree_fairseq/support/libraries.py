"""Optional libraries: each is imported where it is used, and an error says how to install one that is missing.

The extras of ``pip install tree-fairseq[EXTRA]`` are in setup.py. A module that needs a library of an extra does not
import it at its top, so that everything else in the module works without it.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from tree_fairseq.errors import MissingLibraryError

# Distributions whose name is not that of the module.
_DISTRIBUTIONS = {"rouge_score": "rouge-score", "sklearn": "scikit-learn", "subword_nmt": "subword-nmt"}


def import_library(module: str, extra: str, purpose: str) -> ModuleType:
    """Imports a module of an optional library and returns it: the submodule for a dotted name.

    >>> figure = import_library("matplotlib.figure", "figures", "a picture of curves").Figure()

    Args:
        module: such as ``matplotlib.figure``
        extra: the extra of this package that installs the library
        purpose: begins the message, such as ``--format svg``

    Raises:
        MissingLibraryError: the library is not installed, or one of its own requirements is not
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        library = module.split(".")[0]
        name = _DISTRIBUTIONS.get(library, library)
        missing = (getattr(error, "name", None) or "").split(".")[0]
        # A library that is there but cannot be imported lacks something itself, and its own words say what.
        cause = "" if missing == library else f" ({error})"
        message = f"{purpose} needs {name}, which cannot be imported{cause}: pip install 'tree-fairseq[{extra}]'"
        raise MissingLibraryError(message) from error
