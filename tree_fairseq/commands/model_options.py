"""The flags that a model adds to those of fairseq's transformer: ``tree-fairseq options tree_transformer``.

``fairseq-train --help`` cannot show them, because it knows no architecture.
"""

from __future__ import annotations

import argparse
import contextlib
import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_NAME_REGISTRY, ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY
from fairseq.models.transformer import TransformerModel

import tree_fairseq
from tree_fairseq.errors import InputError, did_you_mean
from tree_fairseq.support.options import command, refuse_unread


class ModelOption(NamedTuple):
    """A flag of an architecture."""

    flag: str  # with its values, ``--tree-decay-init uniform|paper``
    default: str  # its value without the flag
    published: str  # its value with ``--as-published``
    meaning: str  # its help, which names the paper's section or says that the paper does not have it


def architectures() -> dict[str, type]:
    """Returns the models of the package by the names of their architectures, sorted."""
    tree_fairseq.register()
    own = {name: model for name, model in ARCH_MODEL_REGISTRY.items() if model.__module__.startswith("tree_fairseq.")}
    return dict(sorted(own.items()))


def model_options(architecture: str) -> list[ModelOption]:
    """Returns the flags that fairseq's transformer lacks; raises InputError for an architecture of others."""
    known = architectures()
    if architecture not in known:
        hint = did_you_mean(architecture, known) or "tree-fairseq options lists them."
        raise InputError(f"{architecture!r} is not an architecture of this package", hint=hint)
    model = known[architecture]
    defaults = published = _defaults(architecture, model)
    with contextlib.suppress(InputError):  # of no paper
        published = _defaults(architecture, model, as_published=True)
    stock = {action.dest for action in _actions(TransformerModel)}
    return [
        ModelOption(_flag(action), *(_shown(values.get(action.dest)) for values in (defaults, published)), action.help)
        for action in _actions(model)
        if action.dest not in stock and action.help
    ]


def _actions(model: type) -> list[argparse.Action]:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    model.add_args(parser)
    return parser._actions


def _defaults(architecture: str, model: type, **given: Any) -> dict[str, Any]:
    args = argparse.Namespace(arch=architecture, **given)
    if architecture in ARCH_CONFIG_REGISTRY:
        ARCH_CONFIG_REGISTRY[architecture](args)
    if hasattr(model, "all_flags"):
        model.set_defaults(args)
    # Options of a dataclass have its defaults, unless the architecture sets them.
    config = MODEL_DATACLASS_REGISTRY.get(ARCH_MODEL_NAME_REGISTRY[architecture])
    return {**(vars(config()) if config else {}), **vars(args)}


def _flag(action: argparse.Action) -> str:
    values = "" if action.nargs == 0 else "|".join(map(str, action.choices or [action.dest.split("_")[-1].upper()]))
    return f"{action.option_strings[0]} {values}".rstrip()


def _shown(value: Any) -> str:
    return {None: "–", False: "off", True: "on"}[value] if value is None or isinstance(value, bool) else str(value)


def as_text(options: Sequence[ModelOption]) -> str:
    """Writes flags with their defaults, and below each its meaning."""
    blocks = []
    for flag, default, published, meaning in options:
        title = f"  {flag}  (default: {default}{f'; as published: {published}' if published != default else ''})"
        blocks.append(
            "\n".join([title, *textwrap.wrap(meaning, 100, initial_indent=" " * 6, subsequent_indent=" " * 6)])
        )
    return "\n".join(blocks)


def as_markdown(options: Sequence[ModelOption]) -> str:
    """Writes flags as a table of a page."""
    lines = ["| flag | default | as published | meaning |", "|---|---|---|---|"]
    for flag, default, published, meaning in options:
        flag = flag.replace("|", "\\|")
        lines.append(f"| `{flag}` | {default} | {published if published != default else ''} | {meaning} |")
    return "\n".join(lines)


@command
def main(arguments: Optional[Sequence[str]] = None) -> None:
    """Prints the flags of an architecture, or the names of all."""
    parser = argparse.ArgumentParser(prog="tree-fairseq options", description=__doc__)
    parser.add_argument("architecture", nargs="?", metavar="ARCH", help="without it, the names of all are listed")
    parser.add_argument("--markdown", action="store_true", help="write a table in Markdown")
    given = parser.parse_args(arguments)
    if given.architecture is None:
        refuse_unread(["markdown"] * given.markdown, {"markdown": "it goes with ARCH"})
        print("\n".join(architectures()))
        return
    options = model_options(given.architecture)
    if given.markdown:
        print(as_markdown(options))
        return
    print(f"{given.architecture} has these flags beside those of its layers and widths:\n\n{as_text(options)}")
