"""Targets of examples as lines of tokens: the names of classes, and numbers for regression.

A line of class tokens holds the class of the example; in a folder of trees it holds the classes of all nodes in
preorder, so that the example's own class is the first. A number is written one character a token: a dictionary of these
characters, made once, can write every number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

import numpy as np
from fairseq.data import Dictionary
from torch import Tensor

from tree_fairseq.data_bin.tree_store import RESERVED_LABELS, StoredTree
from tree_fairseq.errors import ClassError, CorruptFileError, UnknownClassError
from tree_fairseq.trees.subwords import SUBWORD_SUFFIX

UNLABELLED = "-"
"""Marks a node without a class. The dictionary of classes does not contain it, so it is stored as ``<unk>``."""

IGNORE = -100
"""Takes the place of a class at padding and where a node has no class. The losses of torch skip it."""

CHARACTERS = "0123456789.-+e"
"""The characters of a number, in the order of their dictionary."""

_INTEGER_OR_FRACTION = re.compile(r"[+-]?\d+(\.\d+)?")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?")


def class_order(name: str) -> tuple[int, float, str]:
    """Returns the key by which classes are sorted: numbers by their value, then names."""
    return (0, float(name), name) if _INTEGER_OR_FRACTION.fullmatch(name) else (1, 0.0, name)


def check_class(name: str) -> None:
    """Raises ClassError for the name of a class that one of the dictionary's special symbols has."""
    if name in RESERVED_LABELS:
        problem = f"a class is called {name}, which names a special symbol of the dictionary"
        raise ClassError(problem, hint="Give it another name.")


def require_known_class(name: str, known: Iterable[str]) -> None:
    """Raises UnknownClassError unless a class is known, or `UNLABELLED`."""
    if name != UNLABELLED and name not in known:
        raise UnknownClassError(
            f"{name!r} is not a class, the classes are {', '.join(sorted(known, key=class_order))}",
            hint=f"A class has to occur in train; a node without a class is labelled {UNLABELLED}.",
        )


def is_number(text: str) -> bool:
    """Returns whether a word is a finite number in decimal notation, with the exponent after ``e``."""
    return _NUMBER.fullmatch(text) is not None and math.isfinite(float(text))


class NumberDictionary(Dictionary):
    """fairseq's dictionary, filled with the characters of numbers."""

    @classmethod
    def of_characters(cls) -> NumberDictionary:
        """Makes the dictionary of all these characters."""
        made = cls()
        for character in CHARACTERS:
            made.add_symbol(character)
        return made

    def string(self, tensor, *args, **kwargs) -> str:
        """Also writes each number as one word."""
        # fairseq puts the lines of a batch one below the other, so only blanks are removed.
        return super().string(tensor, *args, **kwargs).replace(" ", "")

    def value(self, tokens: Tensor) -> float:
        """Returns the number that a line of tokens writes, with or without EOS; ``nan`` if that is not a number."""
        text = self.string(tokens)
        return float(text) if is_number(text) else math.nan

    def tokens(self, value: float) -> Tensor:
        """Writes a number with six digits as a line of tokens with EOS, int32."""
        return self.encode_line(" ".join(f"{value:.6g}"), add_if_not_exist=False)


def class_targets(tokens: Tensor, dictionary: Dictionary) -> np.ndarray:
    """Converts a line of class tokens, with or without EOS, to classes from 0, int64; ``<unk>`` becomes `IGNORE`."""
    ids = tokens.numpy()[: -1 if len(tokens) and tokens[-1] == dictionary.eos() else None].astype(np.int64)
    return np.where(ids == dictionary.unk(), IGNORE, ids - dictionary.nspecial)


class ClassNodes:
    """Finds the nodes of a stored full tree that have a class token of their own; ``labels`` is its label dictionary.

    All nodes have one but the pieces of split words: ``(2 (2_sub un@@) (2_sub true))`` has one token, that of the word.
    """

    def __init__(self, labels: Dictionary):
        self._is_piece = np.array([symbol.endswith(SUBWORD_SUFFIX) for symbol in labels.symbols])

    def __call__(self, tree: StoredTree) -> np.ndarray:
        """Returns these nodes in preorder, which is the order of the line's class tokens: int64 ``[tokens]``."""
        if len(tree.label) and not 0 <= tree.label.min() <= tree.label.max() < len(self._is_piece):
            raise CorruptFileError(
                f"a label of a tree is outside the label dictionary of {len(self._is_piece)} symbols. Preprocess again"
            )
        return np.flatnonzero(~self._is_piece[tree.label])

    def place(self, tree: StoredTree, classes: np.ndarray, fill: int) -> np.ndarray:
        """Assigns a line of classes ``[tokens]`` to nodes: int64 ``[M]``, with ``fill`` at those without a token."""
        nodes = self(tree)
        if len(nodes) != len(classes):
            raise CorruptFileError(
                f"{len(classes)} classes for a tree of {len(nodes)} nodes with a class. Preprocess again"
            )
        placed = np.full(len(tree.label), fill, np.int64)
        placed[nodes] = classes
        return placed


def read_target(tokens: Tensor, dictionary: Dictionary, index: int) -> int | float:
    """Reads the line of example ``index``: its class, the first of the line, from 0; or its number."""
    if isinstance(dictionary, NumberDictionary):
        value = dictionary.value(tokens)
        if math.isnan(value):
            raise CorruptFileError(f"the label of example {index + 1} is not a number. Preprocess again")
        return value
    classes = class_targets(tokens, dictionary)
    if not len(classes) or classes[0] < 0:
        raise CorruptFileError(f"example {index + 1} has no class. Preprocess again")
    return int(classes[0])
