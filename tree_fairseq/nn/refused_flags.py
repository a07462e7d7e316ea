"""Refuses flags that a user gave and that a model, a task or a search cannot honour."""

from __future__ import annotations

from collections.abc import Mapping

from tree_fairseq.errors import InputError


def given_flags(args: object, *names: str) -> dict[str, bool]:
    """Tells for some options of a command whether they were given.

    Args:
        args: namespace or configuration of the command; an option that it lacks was not given
        names: attributes of the options, such as ``print_alignment``

    Returns:
        by flag, such as ``--print-alignment``, whether its value is neither None nor False
    """
    return {flag_of(name): getattr(args, name, None) not in (None, False) for name in names}


def flag_of(name: str) -> str:
    """The flag of an option: ``--print-alignment`` for ``print_alignment``."""
    return "--" + name.replace("_", "-")


def refuse_flags(
    flags: Mapping[str, object], partner: str, error: type[Exception] = InputError, advice: str = "leave it out"
) -> None:
    """Raises an error about the first flag of a table that was given.

    Args:
        flags: by flag, whether it was given; any true value counts
        partner: what the flags do not work with, such as ``--task tree_insertion``
        error: class of the error
        advice: what the user can do instead, the end of the message

    Raises:
        error: a flag was given
    """
    for flag, is_given in flags.items():
        if is_given:
            raise error(f"{flag} does not work with {partner}; {advice}")
