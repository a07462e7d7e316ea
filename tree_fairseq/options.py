"""Definition and refusal of options, which users give as flags.

fairseq makes a flag of each field of a dataclass of options. A flag that does not work in some combination is refused
before any work, never ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from tree_fairseq.errors import InputError

# Defaults of fairseq's and ours that switch an option off.
_SWITCHED_OFF = (None, False, -1, "sequence")


def option(default: Any, text: str) -> Any:
    """A field of a dataclass of fairseq's options: its default, and its help."""
    return field(default=default, metadata={"help": text})


def flag_of(name: str) -> str:
    """The flag of an option: ``--print-alignment`` for ``print_alignment``."""
    return "--" + name.replace("_", "-")


def given_flags(args: object, *names: str) -> dict[str, bool]:
    """Whether options were given, by flag; ``args`` is a namespace or a configuration, and may lack them."""
    return {flag_of(name): getattr(args, name, None) not in _SWITCHED_OFF for name in names}


def refuse_flags(
    flags: Mapping[str, object], partner: str, error: type[Exception] = InputError, advice: str = "leave it out"
) -> None:
    """Raises an error about the first flag that was given: any true value of the table counts.

    The message says that it does not work with ``partner``, such as ``--task tree_insertion``, and ends in ``advice``.
    """
    for flag, is_given in flags.items():
        if is_given:
            raise error(f"{flag} does not work with {partner}; {advice}")
