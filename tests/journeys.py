"""Finds the files of the package through which a piece of work passes: those with a function that runs."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Callable

PACKAGE = Path(__file__).resolve().parent.parent / "tree_fairseq"


def files_executed(function: Callable[[], Any]) -> set[str]:
    """Calls a function and returns the files of the package whose functions ran, such as ``nn/tree_batch.py``.

    Only functions in this thread and this process count. Imports and the bodies of classes do not: a file that is only
    imported does not count.
    """
    prefix = f"{PACKAGE}/"
    seen: set[CodeType] = set()

    def watch(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            seen.add(frame.f_code)

    earlier = sys.getprofile()
    sys.setprofile(watch)
    try:
        function()
    finally:
        sys.setprofile(earlier)
    # Only code of functions has this flag; the bodies of modules and classes lack it.
    functions = [code for code in seen if code.co_flags & inspect.CO_OPTIMIZED]
    return {code.co_filename[len(prefix) :] for code in functions if code.co_filename.startswith(prefix)}


def folders_of(files: set[str]) -> set[str]:
    """Returns the folders of such files; a file at the top of the package counts as its own folder."""
    return {name.split("/")[0] for name in files}
