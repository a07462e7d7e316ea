"""Parse tokenised text with benepar, for languages without a Stanza constituency model (French), one line of brackets a
line.

    pip install benepar                     # in an environment of its own: it wants older libraries than fairseq does
    python -m preprocess.benepar_trees --model benepar_fr2 --input words/train.fr --output trees/train.fr

The leaves of the output are the words of the input, one for one, Moses entities included, so ``fairseq-preprocess
--tree-parser brackets`` can read the file in the place of the text. A line that benepar cannot parse (too long) becomes
``(FRAG (XX word) ...)`` and is reported. benepar: Kitaev, Cao and Klein (2019). Of this project's plugin only ``files``
and ``errors`` are imported, which need the standard library alone.
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
    """A word as a leaf of a bracketed tree: brackets by their Penn names, backslashes before either kept apart.

    The same as ``tree_fairseq.trees.bracket.escape``, which needs a newer Python than benepar's environment may have.
    """

    def replace(match: re.Match[str]) -> str:
        backslashes, found = match.groups()
        if found in _NAMES:
            return backslashes * 2 + _NAMES[found]
        return backslashes * 2 + "\\" + found

    return _BRACKET.sub(replace, word)


def flat(words: list[str]) -> str:
    """The tree of a sentence that has no parse."""
    return "(FRAG " + " ".join(f"(XX {escape(word)})" for word in words) + ")"


def bracketed(tree, words: list[str]) -> str | None:
    """The nltk tree of a parse, its leaves replaced by ``words`` in order; None where it has another number of leaves.

    A word that stands beside other children gets the tag XX: a leaf is the only child of its preterminal. Iterative: a
    stack of subtrees to open, words to write and texts to append.
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
    """A function from sentences to nltk trees (None for one that benepar refuses)."""
    import benepar

    parser = benepar.Parser(model, batch_size=batch_size)

    def parse(sentences: list[list[str]]) -> list:
        inputs = [benepar.InputSentence(words=[html.unescape(word) for word in words]) for words in sentences]
        try:
            return list(parser.parse_sents(inputs))
        except ValueError:
            if len(sentences) == 1:
                return [None]
            return [tree for words in sentences for tree in parse([words])]  # one sentence spoilt the batch

    return parse


def parse_lines(lines: Iterable[str], parse: Callable, block: int = 1000) -> Iterator[str]:
    """Yield one bracketed line for each line of tokens; a blank line stays blank."""
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
