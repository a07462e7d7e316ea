"""Subword pieces: joined to words before parsing, split again in the tree."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tree_fairseq.errors import ParserUnavailableError
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.trees.bracket import escape
from tree_fairseq.trees.subwords import SUBWORD_SUFFIX, join_bpe, join_sentencepiece

BPE_JOINER = "@@"
SENTENCEPIECE_MARK = "\u2581"


@dataclass(frozen=True)
class SplitWords:
    """The words of a line and the pieces of each; the pieces in order are the tokens of the line."""

    words: list[str]
    pieces: list[list[str]]


class SubwordModel(Protocol):
    """Splits what is not split yet."""

    def split(self, words: list[str]) -> list[list[str]]:
        """The pieces of each word, at least one for each."""

    def split_text(self, text: str) -> tuple[list[str], list[tuple[int, int]]] | None:
        """The pieces of raw text and the half-open span of characters of each; None if this model works on words only."""


class BpeModel:
    """subword-nmt's codes.

    Args:
        path: the file of merge operations.
    """

    def __init__(self, path: str):
        from subword_nmt.apply_bpe import BPE

        with open(path, encoding="utf-8", newline="\n") as codes:
            self._bpe = BPE(codes, separator=BPE_JOINER)

    def split(self, words: list[str]) -> list[list[str]]:
        """See `SubwordModel.split`."""
        return [self._bpe.segment_tokens([word]) for word in words]

    def split_text(self, text: str) -> None:
        """None: the codes were learned on words."""
        return None


class SentencePieceModel:
    """A SentencePiece model.

    Args:
        path: the ``*.model`` file.
    """

    def __init__(self, path: str):
        from sentencepiece import SentencePieceProcessor

        self._processor = SentencePieceProcessor(model_file=path)

    def split(self, words: list[str]) -> list[list[str]]:
        """See `SubwordModel.split`."""
        # A word that the model normalises away would leave the tree without a leaf.
        return [self._processor.encode(word, out_type=str) or [SENTENCEPIECE_MARK] for word in words]

    def split_text(self, text: str) -> tuple[list[str], list[tuple[int, int]]]:
        """See `SubwordModel.split_text`; a piece's span may begin with the space that its ``▁`` stands for."""
        mapping = self._processor.encode(text, out_type="offset_mapping")
        return mapping["pieces"], mapping["offsets"]


def load_subword_model(path: str | None) -> SubwordModel | None:
    """The model in ``path``, told by its name: ``*.model`` is SentencePiece's, all else subword-nmt's codes.

    Raises:
        ParserUnavailableError: the file is missing, is no such model, or the library is.
    """
    if path is None:
        return None
    kind, library = (SentencePieceModel, "sentencepiece") if path.endswith(".model") else (BpeModel, "subword-nmt")
    try:
        return kind(path)
    except ImportError as error:
        raise ParserUnavailableError(f"{path} needs {library}: pip install {library}") from error
    # SentencePiece reports a bad file as RuntimeError or OSError, subword-nmt leaves through sys.exit.
    except (OSError, RuntimeError, ValueError, SystemExit) as error:
        raise ParserUnavailableError(
            f"--tree-subword-model {path} cannot be read as a {library} model: {error}"
        ) from error


def subword_model_hash(path: str | None) -> str | None:
    """sha256 of the model file.

    Raises:
        ParserUnavailableError: the file cannot be read.
    """
    if path is None:
        return None
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        raise ParserUnavailableError(f"--tree-subword-model {path} cannot be read: {error.strerror}") from error


def subword_kind(tokens: list[str], options: ParserOptions) -> str:
    """How this line is split: ``bpe``, ``sentencepiece`` or ``none``."""
    if options.subwords != "auto":
        return options.subwords
    if tokens and tokens[0].startswith(SENTENCEPIECE_MARK):
        return "sentencepiece"
    return "bpe" if any(token.endswith(BPE_JOINER) for token in tokens) else "none"


def join_pieces(tokens: list[str], options: ParserOptions, model: SubwordModel | None = None) -> SplitWords:
    """The words of a tokenised line, and the pieces that its token file will have.

    Args:
        tokens: the tokens of the line, split into pieces or not.
        options: says how they are split.
        model: splits a line that is not split yet.
    """
    kind = subword_kind(tokens, options)
    if kind == "bpe":
        return SplitWords(*join_bpe(tokens, BPE_JOINER))
    if kind == "sentencepiece":
        return SplitWords(*join_sentencepiece(tokens))
    return SplitWords(tokens, model.split(tokens) if model else [[token] for token in tokens])


def join_text(line: str, options: ParserOptions) -> tuple[str, list[str] | None, list[tuple[int, int]]]:
    """Raw text out of a line that may hold pieces.

    Returns:
        the text; the pieces, or None if the line is not split; the half-open span of characters of each piece.
    """
    tokens = line.split()
    kind = subword_kind(tokens, options)
    if kind == "none":
        return line, None, []
    text, offsets = "", []
    glued = True  # Nothing before the first piece.
    for token in tokens:
        if kind == "bpe":
            body, glue_next = (token[: -len(BPE_JOINER)], True) if token.endswith(BPE_JOINER) else (token, False)
        else:
            body, glue_next = token.lstrip(SENTENCEPIECE_MARK), True
            glued = not text or body == token
        start = len(text) + (not glued)
        text += ("" if glued else " ") + body.replace(SENTENCEPIECE_MARK, " ")
        offsets.append((start, len(text)))
        glued = glue_next
    return text, tokens, offsets


# FROM parsing/splice: Words of a written tree replaced by their pieces, on the text itself.
#
# A corpus is restored from cached brackets many times; this does in ten microseconds what takes ten times as long through `Tree` objects. The tests hold
# it equal to ``write_forest(split_words(read_forest(written), pieces))``.


def splice_pieces(written: str, words: Sequence[str], pieces: Sequence[Sequence[str]]) -> str | None:
    """Put other leaves into a written tree.

    Args:
        written: one tree, as the bracket writer writes it.
        words: its words, as they should be.
        pieces: what stands for each word: one leaf, or several, which become a constituent with the word's tag and its pieces below it.

    Returns:
        the written tree with the new leaves; None if its words are not ``words``.
    """
    atoms = written.split(" ")
    position = 0
    for index, atom in enumerate(atoms):
        if atom.startswith("("):
            continue
        word = atom.rstrip(")")
        if position == len(words) or word != escape(words[position]):
            return None
        parts = pieces[position]
        position += 1
        closing = atom[len(word) :]
        if len(parts) == 1:
            atoms[index] = escape(parts[0]) + closing
        else:
            tag = atoms[index - 1][1:] + SUBWORD_SUFFIX
            atoms[index] = " ".join(f"({tag} {escape(part)})" for part in parts) + closing
    return " ".join(atoms) if position == len(words) else None
