"""Files of trees that other programs wrote: CoreNLP's JSON, and bracketed trees over several lines ("penn").

CoreNLP makes them with ``-annotators tokenize,ssplit,pos,parse -outputFormat json`` (or ``penn``). Treebanks have the
second form, often with brackets without a label around each tree.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from tree_fairseq.errors import InputError, TreeFormatError
from tree_fairseq.parsing.parsers import flat_tree
from tree_fairseq.trees.bracket import read_forest, unescape
from tree_fairseq.trees.tree import Forest, Tree

ROOT = "ROOT"
"""The label of the root of CoreNLP's trees, and of a tree whose outer brackets have none."""

# CoreNLP's "parse" of a sentence that it could not parse or did not want to.
_NO_PARSE = "SENTENCE_SKIPPED_OR_UNPARSABLE"
_WITHOUT_LABEL = re.compile(r"\(\s*(?=\()")
# Older versions escape the slash and the asterisk, as the Penn treebank does, and write other brackets by name.
_SLASH = re.compile(r"\\([/*])")
_NAMED = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}


def penn_unescape(word: str) -> str:
    r"""Returns a word of CoreNLP or of a treebank as it is in the text: ``-LSB-`` is ``[``, and ``1\/2`` is ``1/2``."""
    return _NAMED.get(word) or _SLASH.sub(r"\1", unescape(word))


def read_penn(text: str, path: str | os.PathLike | None = None) -> Iterator[Tree]:
    """Yields the bracketed trees of a text, each over any number of lines; raises a TreeFormatError for a fault in one.

    Brackets without a label around a tree get the label ``ROOT``.
    """
    lines: list[str] = []
    first, depth = 1, 0
    for number, line in enumerate(text.splitlines(), start=1):
        if not lines:
            first = number
        if line.strip():
            lines.append(line.strip())
        depth += line.count("(") - line.count(")")
        if lines and depth <= 0:
            yield from _read_lines(lines, path, first)
            lines, depth = [], 0
    if lines:
        yield from _read_lines(lines, path, first)


def _read_lines(lines: list[str], path: str | os.PathLike | None, first: int) -> Forest:
    """Reads trees that begin in the line ``first``; errors name it alone, as joined lines have other columns."""
    line = _WITHOUT_LABEL.sub(f"({ROOT} ", " ".join(lines))
    try:
        forest = read_forest(line)
    except TreeFormatError as error:
        raise type(error)(error.message, path, first, None, error.hint) from None
    return tuple(tree.map_leaves(list(map(_unescaped_slash, tree.leaves()))) for tree in forest)


def _unescaped_slash(word: str) -> str:
    return _NAMED.get(word) or _SLASH.sub(r"\1", word)


def tree_of_sentence(sentence: Mapping[str, Any]) -> Tree | None:
    """Returns the tree of a sentence of CoreNLP's JSON, or None where CoreNLP gave none.

    Raises:
        InputError: there is no constituency parse, because CoreNLP ran without the annotator ``parse``
    """
    if "parse" not in sentence:
        hint = "Run CoreNLP with the annotator parse."
        raise InputError(f"the sentence {sentence.get('index', 0) + 1} has no constituency parse", hint=hint)
    if sentence["parse"] == _NO_PARSE:
        return None
    trees = list(read_penn(sentence["parse"]))
    return trees[0] if len(trees) == 1 else None


def sentences_of(text: str, source: str | os.PathLike) -> list[Mapping[str, Any]]:
    """Returns the sentences of CoreNLP's JSON; raises InputError, which names the ``source``, for anything else."""
    try:
        sentences = json.loads(text)["sentences"]
        if not all(isinstance(sentence, dict) for sentence in sentences):
            raise TypeError("a sentence is not an object")
    except (ValueError, KeyError, TypeError) as error:
        hint = "CoreNLP writes it with -outputFormat json."
        raise InputError(f"not CoreNLP's JSON ({type(error).__name__}: {error})", source, hint=hint) from None
    return sentences


def read_corenlp(text: str, path: str | os.PathLike | None = None) -> Iterator[Tree]:
    """Yields the trees of CoreNLP's JSON; a sentence that CoreNLP did not parse has a flat tree."""
    for sentence in sentences_of(text, path or "the text"):
        try:
            tree = tree_of_sentence(sentence)
        except InputError as error:
            raise error.at(path) from None
        if tree is None:
            tree = flat_tree([penn_unescape(token["word"]) for token in sentence["tokens"]])
        yield tree


class Reader(NamedTuple):
    """A form of files: what it is, and the function that reads the text of a file at a path."""

    help: str
    read: Callable[[str, str], Iterator[Tree]]


READERS = {
    "penn": Reader("bracketed trees over several lines", read_penn),
    "corenlp": Reader("CoreNLP's JSON", read_corenlp),
}
"""The forms of files for ``tree-fairseq parse --read``."""
