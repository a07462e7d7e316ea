"""The flags about trees, the same for every command that parses, and the limit on sentences that fail."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from tree_fairseq.errors import TooManyParseFailuresError
from tree_fairseq.parsing.parsers import CHOICES, DEFAULT_BATCH_SIZE, ParserOptions, parser_names

_LINES_SHOWN = 20
_HELP = {
    "--parser-dir": "folder with Stanza models: Stanza's own layout, or constituency.pt, tagger.pt, pretrain.pt; "
    "without it Stanza downloads its models on first use",
    "--parser-package": "Stanza's name of the constituency model, where a language has several",
    "--parse-cache": "folder that keeps parses, to be shared between runs (default: in the destination)",
    "--tree-batch-size": "sentences given to the parser at once",
    "--tree-ssplit": "punct: a line may hold several sentences, each gets a tree; none: a line is a sentence",
    "--tree-tokenize": "pretokenized: the tokens of the text are the leaves; stanza: the text is raw and Stanza finds "
    "the tokens",
    "--tree-subwords": "how the text is split already; words are joined for the parser and split again in the tree. "
    "auto looks at the marks of each line",
    "--tree-subword-model": "splits words that are not split yet, also in ready-made trees: codes of subword-nmt, or "
    "*.model of SentencePiece",
    "--tree-keep-entities": "show the parser Moses' entities (&apos;) as they are, and not the characters they mean",
    "--tree-strip-function-tags": "NP-SBJ becomes NP",
    "--tree-seed": "which trees --tree-parser random draws",
    "--tree-device": "auto: one parsing process on each GPU where there are any; or cpu, cuda:1",
    "--on-parse-error": "a sentence that cannot be parsed gets a flat tree, or ends the run (default: flat; stop for "
    "brackets)",
    "--max-parse-failures": "end with an error if more sentences than this get a flat tree: a number, or a share such "
    "as 0.01 or 1%%",
}


def allowed_failures(limit: int | float, sentences: int) -> int:
    """Returns how many of so many sentences may fail: the limit, or its share (a float), but then at least one."""
    return limit if isinstance(limit, int) else max(1, int(limit * sentences)) if limit > 0 else 0


def check_failures(limit: int | float, failed: int, sentences: int, failed_lines: Sequence[int], path: str) -> None:
    """Raises TooManyParseFailuresError, with the numbers of the lines, if too many sentences failed."""
    allowed = allowed_failures(limit, sentences)
    if failed <= allowed:
        return
    shown = ", ".join(map(str, failed_lines[:_LINES_SHOWN])) + (", ..." if len(failed_lines) > _LINES_SHOWN else "")
    raise TooManyParseFailuresError(
        f"{path}: {failed} of {sentences} sentences could not be parsed, --max-parse-failures allows {allowed}. "
        f"Lines: {shown}. With a higher limit the same command ends at once, as their flat trees are kept"
    )


def parse_limit(text: str) -> int | float:
    """Reads ``--max-parse-failures``: ``25`` is a count, ``0.01`` and ``1%`` a share.

    Raises:
        argparse.ArgumentTypeError: the text is neither.
    """
    try:
        limit: int | float = (
            float(text[:-1]) / 100 if text.endswith("%") else int(text) if text.isdigit() else float(text)
        )
    except ValueError:
        limit = -1
    # A share is below 1. The comparisons refuse NaN, too.
    if not (limit >= 0 and (isinstance(limit, int) or limit < 1)):
        raise argparse.ArgumentTypeError(f"a number, or a share such as 0.01 or 1%, not {text!r}")
    return limit


def add_parser_arguments(
    group: argparse._ArgumentGroup | argparse.ArgumentParser,
    default_parser: str | None = "stanza",
    default_lang: str | None = "en",
) -> None:
    """Adds the flags; without ``default_lang``, the names of the files give the language."""

    def add(flag: str, text: str = "", **options: Any) -> None:
        shown = " (default: %(default)s)" if options.get("default") is not None else ""
        group.add_argument(flag, help=(text or _HELP[flag]) + shown, **options)

    names = f"where trees come from: {', '.join(parser_names())}, or MODULE:PARSER for a parser of your own"
    add("--tree-parser", names, default=default_parser, metavar="NAME")
    lang = f"language of the text, as Stanza names it (default: {default_lang or 'as the files are named'})"
    group.add_argument("--tree-lang", default=default_lang, metavar="LANG", help=lang)
    add("--parser-dir", metavar="DIR")
    add("--parser-package", metavar="NAME")
    add("--parse-cache", metavar="DIR")
    add("--tree-batch-size", type=int, default=DEFAULT_BATCH_SIZE, metavar="N")
    add("--tree-ssplit", choices=CHOICES["ssplit"], default="none")
    add("--tree-tokenize", choices=CHOICES["tokenize"], default="pretokenized")
    add("--tree-subwords", choices=CHOICES["subwords"], default="auto")
    add("--tree-subword-model", metavar="FILE")
    add("--tree-keep-entities", action="store_true")
    add("--tree-strip-function-tags", action="store_true")
    add("--tree-seed", type=int, default=0, metavar="N")
    add("--tree-device", default="auto", metavar="DEVICE")
    add("--on-parse-error", choices=CHOICES["on_parse_error"], default=None)
    add("--max-parse-failures", type=parse_limit, default=0.01, metavar="N")


def options_from_arguments(arguments: argparse.Namespace) -> ParserOptions:
    """Returns the options that were given on a command line; raises ValueError for one that is out of range."""
    return ParserOptions(
        name=arguments.tree_parser,
        lang=arguments.tree_lang,
        parser_dir=arguments.parser_dir,
        package=arguments.parser_package,
        batch_size=arguments.tree_batch_size,
        ssplit=arguments.tree_ssplit,
        tokenize=arguments.tree_tokenize,
        subwords=arguments.tree_subwords,
        subword_model=arguments.tree_subword_model,
        unescape_moses=not arguments.tree_keep_entities,
        strip_function_tags=arguments.tree_strip_function_tags,
        seed=arguments.tree_seed,
        device=arguments.tree_device,
        on_parse_error=arguments.on_parse_error,
        max_parse_failures=arguments.max_parse_failures,
    )
