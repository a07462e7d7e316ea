"""The two settings of each model: the one that works, which is the default, and the one of its paper.

An option that the paper does not have, or has with another value, names the paper's value
(:func:`tree_fairseq.support.options.option`). ``--as-published`` sets all of them, and is refused beside a flag that
gives another value. The options are set where architectures set theirs, before a model is built, so a checkpoint has
them all.
"""

from argparse import Namespace
from dataclasses import Field, dataclass, fields
from typing import Any

from fairseq.dataclass import FairseqDataclass

from tree_fairseq.support.options import flag_of, option, refuse_flags


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class PublishedConfig(FairseqDataclass):
    """The choice between the two settings; it is a flag of all models that have options of ours."""

    as_published: bool = option(
        False,
        "the model of its paper or, where the paper leaves it open, of its authors' code, without what we added; a "
        "flag that contradicts it is refused",
    )


def options_of(config: type) -> list[Field]:
    """Returns the fields of a dataclass without fairseq's ``_name``."""
    return [own for own in fields(config) if not own.name.startswith("_")]


def default_of(own: Field, args: Any) -> Any:
    """Returns the default of an option in the setting that ``args``, a namespace or configuration, has chosen."""
    return own.metadata.get("published", own.default) if getattr(args, "as_published", False) else own.default


def set_defaults(args: Namespace, config: type, **defaults: Any) -> None:
    """Sets the options of a dataclass that are not set; ``defaults`` replace its own.

    Checkpoints keep them if defaults change later. Raises InputError if an option has another value than
    ``--as-published`` gives it.
    """
    for own in options_of(config):
        setattr(args, own.name, getattr(args, own.name, defaults.get(own.name, default_of(own, args))))
    if getattr(args, "as_published", False):
        marked = [own for own in options_of(config) if "published" in own.metadata]
        contrary = {flag_of(own.name): str(getattr(args, own.name)) != str(default_of(own, args)) for own in marked}
        refuse_flags(contrary, "--as-published")
