"""Lines of raw text: the parser finds the tokens, and pieces are laid over them by the characters they cover."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_fairseq.errors import TreeFormatError
from tree_fairseq.parsing.parsers import ParserOptions, flat_tree
from tree_fairseq.parsing.pieces import SubwordModel, join_text
from tree_fairseq.parsing.requests import decode_text
from tree_fairseq.trees.bracket import read_forest, write_forest
from tree_fairseq.trees.subwords import align_pieces, split_words
from tree_fairseq.trees.tree import forest_leaves


@dataclass(frozen=True)
class RawLine:
    """A line of raw text.

    Args:
        text: what the parser reads.
        pieces: the tokens of the line if it came split into pieces, else None.
        offsets: the half-open span of characters in ``text`` of each piece.
    """

    text: str
    pieces: list[str] | None
    offsets: list[tuple[int, int]]


def prepare_raw_line(line: str, options: ParserOptions) -> RawLine:
    """The raw text of a line, joined if it came in pieces."""
    return RawLine(*join_text(line, options))


def finish_raw_line(raw: RawLine, answer: str | None, model: SubwordModel | None) -> tuple[str, int] | None:
    """The forest of a line in brackets, and the number of its sentences.

    Args:
        raw: the line.
        answer: the parser's; None if it failed, then the words between white space get a flat tree.
        model: splits what did not come in pieces.

    Returns:
        None if the answer is not about this text.
    """
    if not raw.text.strip():
        return "", 0
    if answer is None:
        spans = [match.span() for match in re.finditer(r"\S+", raw.text)]
        forest = (flat_tree([raw.text[start:end] for start, end in spans]),)
    else:
        decoded = decode_text(answer)
        if decoded is None:
            return None
        written, spans = decoded
        try:
            forest = read_forest(written)
        except TreeFormatError:
            return None
        if forest_leaves(forest) != ["_".join(raw.text[start:end].split()) for start, end in spans]:
            return None
    sentences = len(forest)
    if raw.pieces is not None:
        forest = align_pieces(forest, spans, raw.offsets, raw.pieces)
    elif model is not None:
        split = model.split_text(raw.text)
        forest = (
            split_words(forest, model.split(forest_leaves(forest)))
            if split is None
            else align_pieces(forest, spans, split[1], split[0])
        )
    return write_forest(forest), sentences
