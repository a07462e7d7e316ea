"""The flags about trees, the same for every command that parses, and the limit on sentences that fail."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from tree_fairseq.errors import TooManyParseFailuresError
from tree_fairseq.parsing.parsers import DEFAULT_BATCH_SIZE, ParserOptions, parser_names

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
    """Returns how many of so many sentences may fail.

    Args:
        limit: a count, or (a float) a share of the sentences, of which at least one may always fail.
        sentences: their number.
    """
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
        ValueError: the text is neither.
    """
    if text.endswith("%"):
        limit: int | float = float(text[:-1]) / 100
    elif text.isdigit():
        limit = int(text)
    else:
        limit = float(text)
    if not 0 <= limit or isinstance(limit, float) and not limit < 1:
        raise ValueError(f"a share is at least 0 and below 1 (or below 100%), not {text}")
    return limit


def add_parser_arguments(
    group: argparse._ArgumentGroup | argparse.ArgumentParser,
    default_parser: str | None = "stanza",
    default_lang: str | None = "en",
) -> None:
    """Adds the flags.

    Args:
        group: a group of a parser's arguments, or the parser.
        default_parser: default of ``--tree-parser``.
        default_lang: default of ``--tree-lang``; None where the names of the files give the language.
    """

    names = f"where trees come from: {', '.join(parser_names())}, or MODULE:PARSER for a parser of your own"
    default = f" (default: {default_parser})" if default_parser else ""
    group.add_argument("--tree-parser", default=default_parser, metavar="NAME", help=names + default)
    lang = f"language of the text, as Stanza names it (default: {default_lang or 'as the files are named'})"
    group.add_argument("--tree-lang", default=default_lang, metavar="LANG", help=lang)

    def add(flag: str, **options: Any) -> None:
        shown = " (default: %(default)s)" if options.get("default") is not None else ""
        group.add_argument(flag, help=_HELP[flag] + shown, **options)

    add("--parser-dir", metavar="DIR")
    add("--parser-package", metavar="NAME")
    add("--parse-cache", metavar="DIR")
    add("--tree-batch-size", type=int, default=DEFAULT_BATCH_SIZE, metavar="N")
    add("--tree-ssplit", choices=("none", "punct"), default="none")
    add("--tree-tokenize", choices=("pretokenized", "stanza"), default="pretokenized")
    add("--tree-subwords", choices=("auto", "none", "bpe", "sentencepiece"), default="auto")
    add("--tree-subword-model", metavar="FILE")
    add("--tree-keep-entities", action="store_true")
    add("--tree-strip-function-tags", action="store_true")
    add("--tree-seed", type=int, default=0, metavar="N")
    add("--tree-device", default="auto", metavar="DEVICE")
    add("--on-parse-error", choices=("flat", "stop"), default=None)
    add("--max-parse-failures", type=_limit, default=0.01, metavar="N")


def _limit(text: str) -> int | float:
    try:
        return parse_limit(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"a number, or a share such as 0.01 or 1%, not {text!r}") from error


def options_from_arguments(arguments: argparse.Namespace) -> ParserOptions:
    """Returns the options that were given on a command line.

    Raises:
        ValueError: a value is out of range.
    """
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
