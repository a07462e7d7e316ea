"""What a folder may decide about the parser of new text, and what only a user may: one place for every field.

``tree.json`` says how new text is parsed, and a stranger may have written it. It may name parsers that are registered
in this process, servers on this machine, and models in its own folder that are loaded as weights only. A module would
run its code, the models of other parsers may be pickles, and another server would be sent what is typed. All this needs
the flag that it had in preprocessing on the user's own command line.
"""

from __future__ import annotations

import ipaddress
import itertools
import os
import shlex
import sys
import urllib.parse
from pathlib import Path
from typing import Any, Optional

from tree_fairseq.errors import UntrustedFolderError
from tree_fairseq.parsing.line_parser import unread_options
from tree_fairseq.parsing.parsers import ParserOptions, parser_names
from tree_fairseq.support.options import flag_of, refuse_unread

PARSER_FOLDER = "parser"  # the model of the parser in a released folder

_OF_USERS = {"name": "tree_parser", "parser_dir": "parser_dir", "corenlp_url": "corenlp_url"}
_WEIGHTS_ONLY = ("stanza",)  # for which its adapter sees to it; benepar's loading depends on the version of torch


def options_for_new_text(options: ParserOptions, folder: Path, cfg: Any) -> ParserOptions:
    """Returns how new text is parsed: as the folder says, except for what the user named.

    ``cfg`` has what the user named as ``tree_parser``, ``parser_dir`` and ``corenlp_url``, None for nothing. Raises
    UntrustedFolderError if the folder names what only a user may name, and the user did not.
    """
    given = {name: getattr(cfg, option) for name, option in _OF_USERS.items() if getattr(cfg, option) is not None}
    options = with_own_models(options, folder).replace(**given)
    for name, problem in untrusted(options, folder).items():
        if name not in given:
            raise UntrustedFolderError(problem)
    return options


PARSE_NEW_TEXT = "Make them with tree-fairseq parse, or name the parser of new text with --tree-parser, such as stanza"


def require_read_by_parser(options: Optional[ParserOptions], cfg: Any) -> None:
    """Raises InputError for what the user named and the parser of new text does not read.

    ``options`` are those that the folder names, None where new text is not parsed.
    """
    given = {name: getattr(cfg, option) for name, option in _OF_USERS.items() if getattr(cfg, option) is not None}
    parsing = (options or ParserOptions("brackets")).replace(**given)
    unread = given if options is None else unread_options(parsing)
    way_out = f"new lines are not parsed. {PARSE_NEW_TEXT}" if parsing.name == "brackets" else "leave it out"
    refused = {_OF_USERS[name]: way_out for name in given if name in unread}
    refuse_unread(refused, refused, f"--tree-parser {parsing.name}")


def with_own_models(options: ParserOptions, folder: Path) -> ParserOptions:
    """Returns the options with the models that are in the folder itself, as ``tree-fairseq release`` puts them."""
    changes = {}
    if (folder / PARSER_FOLDER).is_dir():
        changes["parser_dir"] = str(folder / PARSER_FOLDER)
    if options.subword_model is not None and (own := folder / Path(options.subword_model).name).exists():
        changes["subword_model"] = str(own)
    return options.replace(**changes)


def untrusted(options: ParserOptions, folder: Path) -> dict[str, str]:
    """Returns what the folder may not decide, by option: a sentence that says why, and what to give instead."""
    found = {}
    module, _, own_name = options.name.rpartition(":")
    # Nothing that a folder names is imported.
    if own_name not in parser_names() or module and module not in sys.modules:
        found["name"] = f"the parser {options.name}, which is not registered here: the code of its module would run"
    if options.parser_dir is not None and "parser_dir" not in unread_options(options):
        if not _is_inside(options.parser_dir, folder):
            found["parser_dir"] = f"the parser's model {options.parser_dir}, which is in another place"
        elif options.name not in _WEIGHTS_ONLY:
            found["parser_dir"] = f"the model {options.parser_dir} for {options.name}, which may run code as it loads"
    if not _is_on_this_machine(options.corenlp_url):
        found["corenlp_url"] = f"the server {options.corenlp_url}, which would be sent the text"
    for name, what in found.items():
        option, value = _OF_USERS[name], getattr(options, name)
        way_out = f"give {flag_of(option)} {shlex.quote(value)} (in Python: {option}={value!r})"
        found[name] = f"{folder}/tree.json names {what}. If you trust it, {way_out}"
    if options.package is not None and os.path.basename(options.package) != options.package:
        found["package"] = f"{folder}/tree.json names the parser's package {options.package}, which is a path"
    if options.subword_model is not None and not _is_inside(options.subword_model, folder):
        found["subword_model"] = (
            f"{folder}/tree.json names the subword model {options.subword_model}, which is in another place. If you "
            "trust it, copy it into the folder, or preprocess again: the folder then keeps a copy"
        )
    return found


def _is_inside(path: str | os.PathLike, folder: Path) -> bool:
    root, own = folder.resolve(), Path(path)
    return all(root in each.resolve().parents for each in itertools.chain([own], own.rglob("*")))


def _is_on_this_machine(url: str) -> bool:
    try:
        host = urllib.parse.urlsplit(url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
