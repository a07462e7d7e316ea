"""Parses tokenised text with benepar, for languages without a Stanza constituency model (French).

    pip install benepar                     # in its own environment: it needs older libraries than fairseq
    python -m preprocess.benepar_trees --model benepar_fr2 --input words/train.fr --output trees/train.fr

Every line of the output is the bracketed tree of a line of the input. Its leaves are exactly the words of the input,
with Moses entities, so ``fairseq-preprocess --tree-parser brackets`` can read the file instead of the text. A line
that benepar cannot parse, for example because it is too long, becomes ``(FRAG (XX word) ...)`` and is counted in the
log. benepar is by Kitaev, Cao and Klein (2019). This module imports only ``files`` and ``errors`` of this package,
which need the standard library alone.
"""

from __future__ import annotations

import argparse
import html
import logging
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from preprocess.corpora import read_lines, write_lines

logger = logging.getLogger(__name__)

_BRACKET = re.compile(r"(\\*)([()]|-[LR]RB)")
_NAMES = {"(": "-LRB-", ")": "-RRB-"}


def escape(word: str) -> str:
    """Returns a word as a leaf of a bracketed tree.

    Brackets get their Penn names, and backslashes before brackets are doubled. The result is the same as that of
    ``tree_fairseq.trees.bracket.escape``, which needs a newer Python than the environment of benepar may have.
    """

    def replace(match: re.Match[str]) -> str:
        backslashes, found = match.groups()
        if found in _NAMES:
            return backslashes * 2 + _NAMES[found]
        return backslashes * 2 + "\\" + found

    return _BRACKET.sub(replace, word)


def flat(words: list[str]) -> str:
    """Returns the flat tree that replaces the parse of a sentence."""
    return "(FRAG " + " ".join(f"(XX {escape(word)})" for word in words) + ")"


def bracketed(tree, words: list[str]) -> str | None:
    """Returns the bracketed tree of a parse with ``words`` as its leaves, or None if the number of leaves differs.

    A leaf must be the only child of its preterminal, so a word with siblings gets the tag XX. The stack contains
    subtrees to open, words to write and texts to append.
    """
    text: list[str] = []
    position = 0
    stack: list = [(tree, "{}")]
    while stack:
        item, frame = stack.pop()
        if item is None:
            text.append(frame)
        elif isinstance(item, str):
            if position == len(words):
                return None
            text.append(" " + frame.format(escape(words[position])))
            position += 1
        else:
            text.append(f" ({item.label() or 'X'}")
            frame = "{}" if len(item) == 1 else "(XX {})"
            stack.append((None, ")"))
            stack.extend((child, frame) for child in reversed(list(item)))
    return "".join(text)[1:] if position == len(words) else None


def load_parser(model: str, batch_size: int) -> Callable[[list[list[str]]], list]:
    """Returns a function from sentences to nltk trees. The tree of a sentence that benepar refuses is None."""
    import benepar

    parser = benepar.Parser(model, batch_size=batch_size)

    def parse(sentences: list[list[str]]) -> list:
        inputs = [benepar.InputSentence(words=[html.unescape(word) for word in words]) for words in sentences]
        try:
            return list(parser.parse_sents(inputs))
        except ValueError:
            if len(sentences) == 1:
                return [None]
            return [tree for words in sentences for tree in parse([words])]  # one sentence made the batch fail

    return parse


def parse_lines(lines: Iterable[str], parse: Callable, block: int = 1000) -> Iterator[str]:
    """Yields one bracketed line for each line of tokens; a blank line stays blank."""
    failed = number = 0
    waiting: list[list[str]] = []

    def flush() -> Iterator[str]:
        nonlocal failed
        trees = iter(parse([words for words in waiting if words]))
        for words in waiting:
            tree = next(trees) if words else None
            text = bracketed(tree, words) if tree is not None else None
            if text is None and words:
                failed += 1
                text = flat(words)
            yield text or ""

    for number, line in enumerate(lines, 1):
        waiting.append(line.split())
        if len(waiting) == block:
            yield from flush()
            logger.info("%d lines", number)
            waiting = []
    yield from flush()
    logger.info("%d lines, %d without a parse", number, failed)


def main(arguments: list[str] | None = None) -> None:
    """Command line of this module."""
    parser = argparse.ArgumentParser(prog="python -m preprocess.benepar_trees", description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="benepar_fr2", help="a model of benepar (download: benepar.download(MODEL))")
    parser.add_argument("--input", type=Path, required=True, help="tokenised text")
    parser.add_argument("--output", type=Path, required=True, help="bracketed trees")
    parser.add_argument("--batch-size", type=int, default=64)
    args = parser.parse_args(arguments)
    logging.basicConfig(format="%(levelname)s | %(message)s", level=logging.INFO, stream=sys.stderr)
    write_lines(args.output, parse_lines(read_lines(args.input), load_parser(args.model, args.batch_size)))


if __name__ == "__main__":
    main()
