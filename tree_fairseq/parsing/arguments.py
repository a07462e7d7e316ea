"""The flags about trees, the same for every command that parses."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tree_fairseq.errors import TooManyParseFailuresError
from tree_fairseq.parsing.parsers import DEFAULT_BATCH_SIZE, ParserOptions, parser_names

# FROM parsing/failures: How many sentences may fail, and what is said when more do.

_LINES_SHOWN = 20


def allowed_failures(limit: int | float, sentences: int) -> int:
    """How many of so many sentences may fail.

    Args:
        limit: a count, or (a float) a share of the sentences, of which at least one may always fail.
        sentences: how many there are.
    """
    return limit if isinstance(limit, int) else max(1, int(limit * sentences)) if limit > 0 else 0


def check_failures(limit: int | float, failed: int, sentences: int, failed_lines: Sequence[int], path: str) -> None:
    """Raise if too many sentences failed.

    Raises:
        TooManyParseFailuresError: with the numbers of the lines.
    """
    allowed = allowed_failures(limit, sentences)
    if failed <= allowed:
        return
    shown = ", ".join(map(str, failed_lines[:_LINES_SHOWN])) + (", ..." if len(failed_lines) > _LINES_SHOWN else "")
    raise TooManyParseFailuresError(
        f"{path}: {failed} of {sentences} sentences could not be parsed, --max-parse-failures allows {allowed}. Lines: {shown}. "
        "With a higher limit the same command ends at once, as their flat trees are kept"
    )


def parse_limit(text: str) -> int | float:
    """``--max-parse-failures``: ``25`` is a count, ``0.01`` and ``1%`` a share.

    Raises:
        ValueError: it is neither.
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
    """Add the flags.

    Args:
        group: a group of a parser's arguments, or the parser.
        default_parser: what ``--tree-parser`` is without being given.
        default_lang: what ``--tree-lang`` is; None where the files' names tell the language.
    """
    add = group.add_argument
    shown = f" (default: {default_parser})" if default_parser else ""
    add(
        "--tree-parser",
        default=default_parser,
        metavar="NAME",
        help=f"where trees come from: {', '.join(parser_names())}{shown}",
    )
    add(
        "--tree-lang",
        default=default_lang,
        metavar="LANG",
        help=f"language of the text, as Stanza names it (default: {default_lang or 'as the files are named'})",
    )
    add(
        "--parser-dir",
        metavar="DIR",
        help="folder with Stanza models: Stanza's own layout, or constituency.pt, tagger.pt, pretrain.pt; without it "
        "Stanza downloads its models on first use",
    )
    add(
        "--parser-package", metavar="NAME", help="Stanza's name of the constituency model, where a language has several"
    )
    add(
        "--parse-cache",
        metavar="DIR",
        help="folder that keeps parses, to be shared between runs (default: in the destination)",
    )
    add(
        "--tree-batch-size",
        type=int,
        default=DEFAULT_BATCH_SIZE,
        metavar="N",
        help="sentences given to the parser at once (default: %(default)s)",
    )
    add(
        "--tree-ssplit",
        choices=("none", "punct"),
        default="none",
        help="punct: a line may hold several sentences, each gets a tree of its own; none: a line is a sentence (default: %(default)s)",
    )
    add(
        "--tree-tokenize",
        choices=("pretokenized", "stanza"),
        default="pretokenized",
        help="pretokenized: the tokens of the text are the leaves; stanza: the text is raw and Stanza finds the tokens (default: %(default)s)",
    )
    add(
        "--tree-subwords",
        choices=("auto", "none", "bpe", "sentencepiece"),
        default="auto",
        help="how the text is split already: words are joined for the parser and split again in the tree (default: %(default)s, told by the marks)",
    )
    add(
        "--tree-subword-model",
        metavar="FILE",
        help="split words that are not split yet, also in ready-made trees: codes of subword-nmt, or *.model of "
        "SentencePiece",
    )
    add(
        "--tree-keep-entities",
        action="store_true",
        help="show the parser Moses' entities (&apos;) as they stand, not what they mean",
    )
    add("--tree-strip-function-tags", action="store_true", help="NP-SBJ becomes NP")
    add(
        "--tree-seed",
        type=int,
        default=0,
        metavar="N",
        help="which trees --tree-parser random draws (default: %(default)s)",
    )
    add(
        "--tree-device",
        default="auto",
        metavar="DEVICE",
        help="auto: one parsing process on each GPU where there are any; or cpu, cuda:1 (default: auto)",
    )
    add(
        "--on-parse-error",
        choices=("flat", "stop"),
        default=None,
        help="a sentence that cannot be parsed gets a flat tree, or ends the run (default: flat; stop for brackets)",
    )
    add(
        "--max-parse-failures",
        type=_limit,
        default=0.01,
        metavar="N",
        help="end with an error if more sentences than this get a flat tree: a number, or a share such as 0.01 or 1%% (default: %(default)s)",
    )


def _limit(text: str) -> int | float:
    try:
        return parse_limit(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"a number, or a share such as 0.01 or 1%, not {text!r}") from error


def options_from_arguments(arguments: argparse.Namespace) -> ParserOptions:
    """The options that were given on a command line.

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
