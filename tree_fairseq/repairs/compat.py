"""What rooms that still replace functions use; it goes with them."""

from __future__ import annotations

import builtins
import contextlib
import sys
from collections.abc import Collection, Iterator
from typing import Any, Callable

from tree_fairseq.repairs.table import command_modules, wrap

__all__ = ["command_modules", "print_after", "replaced", "wrap"]


@contextlib.contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Replaces an attribute while the ``with`` block runs."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def print_after(commands: Collection[str], line_after: Callable[[str], str | None]) -> bool:
    """Makes a command print one more line after some lines; returns whether one of the commands runs."""

    def print_line(*values, **options) -> None:
        builtins.print(*values, **options)
        line = line_after(values[0]) if len(values) == 1 and isinstance(values[0], str) else None
        if line is not None:
            builtins.print(line, **options)

    found = False
    for module in map(sys.modules.get, (*commands, "__main__")):
        if module is not None and {module.__name__, getattr(module.__spec__, "name", None)} & set(commands):
            module.print = print_line
            found = True
    return found
