"""Names cut into pieces, alike in programs and in the text beside them.

A text is cut where its case changes, at digits and at marks; words of letters are then cut by byte pair encoding
(subword-nmt).
"""

from __future__ import annotations

import io
import itertools
import json
import os
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TypeVar

from tree_fairseq.errors import CorruptFileError
from tree_fairseq.support.python_versions import import_library

_CUTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+|.", re.DOTALL)
_LETTERS = re.compile(r"[^\W\d_]{2,}")

Model = TypeVar("Model", bound="NamePieces")


class NamePieces:
    """How a model of subword-nmt cuts names: ``known`` texts stay whole, and unknown pieces become characters."""

    LISTS: tuple[str, ...] = ("known",)  # what a file has beside the merges, in the order of the arguments

    def __init__(self, merges: str, known: Iterable[str]):
        self.merges, self.known = merges, frozenset(known)
        self._pieces: dict[str, list[str]] = {}
        # subword-nmt marks all pieces of a word but the last.
        self._vocabulary = {*self.known, *(f"{piece}@@" for piece in self.known)} or None

    def cut_text(self, text: str) -> list[str]:
        """The pieces of the words of a text without blanks."""
        return list(itertools.chain.from_iterable(map(self.pieces, words_of(text))))

    def pieces(self, text: str) -> list[str]:
        """The pieces of a text, which joined together are the text."""
        if text not in self._pieces:
            cut = [text] if text in self.known else self.cut(text)
            parts = ([piece] if piece in self.known else list(piece) for piece in cut)
            self._pieces[text] = list(itertools.chain.from_iterable(parts))
        return self._pieces[text]

    def cut(self, text: str) -> Iterator[str]:
        """The pieces of a text, whether training has them or not."""
        for word in _CUTS.findall(text):
            if _LETTERS.fullmatch(word) and len(self.merges.splitlines()) > 1:
                yield from (piece.removesuffix("@@") for piece in self._encoder.segment_tokens([word]))
            else:
                yield from word if _LETTERS.fullmatch(word) else [word]

    @cached_property
    def _encoder(self):
        library = import_library("subword_nmt.apply_bpe", "code", "--leaf-merges")
        return library.BPE(io.StringIO(self.merges), vocab=self._vocabulary)

    def save(self, path: str | os.PathLike) -> None:
        """Writes the model to a file."""
        with open(path, "w", encoding="utf-8") as file:
            content = {name: sorted(getattr(self, name)) for name in self.LISTS}
            json.dump({"merges": self.merges.splitlines(), **content}, file, ensure_ascii=False, indent=0)

    @classmethod
    def load(cls: type[Model], path: str | os.PathLike) -> Model:
        """Reads the model of a file; raises CorruptFileError for another file."""
        try:
            with open(path, encoding="utf-8") as file:
                content = json.load(file)
            return cls("\n".join(content["merges"]) + "\n", *(content[name] for name in cls.LISTS))
        except (ValueError, KeyError, TypeError, UnicodeDecodeError):
            raise CorruptFileError(f"{path}: not a model of spelled leaves; preprocess the data again") from None


def words_of(text: str) -> list[str]:
    """The words of a text: letters, digits and underscores; every other mark alone."""
    return re.findall(r"\w+|[^\w\s]", text)


def words_of_letters(text: str) -> Iterator[str]:
    """The words of a text that byte pair encoding cuts."""
    return filter(_LETTERS.fullmatch, _CUTS.findall(text))
