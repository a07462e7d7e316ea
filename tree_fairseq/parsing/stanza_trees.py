"""Conversion of Stanza's trees, tokens and tags to ours. Stanza is not imported: attributes of its objects are read."""

from __future__ import annotations

import logging
from typing import Any

from tree_fairseq.errors import ParserUnavailableError
from tree_fairseq.parsing.interface import ParsedText
from tree_fairseq.parsing.parsers import FLAT_TAG
from tree_fairseq.trees.subwords import align_pieces
from tree_fairseq.trees.tree import Tree, tree_from_nested

logger = logging.getLogger(__name__)

# The model reads a column if it was trained on at least this share of the column's tags.
_TAG_COVERAGE = 0.5
# If none of this number of words has a tag, the tagger gives no tags at all.
_WORDS_THAT_PROVE = 20


def to_label(label: str) -> str:
    """Returns a label that can be written in brackets: the German tag ``$(`` becomes ``$-LRB-``."""
    return label.replace("(", "-LRB-").replace(")", "-RRB-")


def to_tree(parsed: Any) -> Tree:
    """Converts a ``ParseTree`` of Stanza, without recursion."""
    return tree_from_nested(parsed, lambda node: (to_label(node.label) if node.children else node.label, node.children))


def merge_multiword_tokens(line: str, sentences: list[Any], trees: list[Tree]) -> ParsedText:
    """Makes a forest over the tokens of a line from trees over its words.

    A token such as German "zum" holds two words, "zu" and "dem", which are not in the text. It becomes one leaf where
    the constituents of its words meet. A word that is a part of the text ("do", "n't") remains a leaf of its own.
    """
    word_spans: list[tuple[int, int]] = []
    leaf_spans: list[tuple[int, int]] = []
    offsets: list[tuple[int, int]] = []
    for sentence in sentences:
        for token in sentence.tokens:
            first = len(word_spans)
            word_spans.extend((first + index, first + index + 1) for index in range(len(token.words)))
            parts = _parts(token)
            if parts is None:
                leaf_spans.append((first, len(word_spans)))
                offsets.append((token.start_char, token.end_char))
            else:
                leaf_spans.extend(word_spans[first:])
                offsets.extend(parts)
    leaves = ["_".join(line[start:end].split()) for start, end in offsets]
    return ParsedText(align_pieces(tuple(trees), word_spans, leaf_spans, leaves), offsets)


def _parts(token: Any) -> list[tuple[int, int]] | None:
    """Returns the spans of a token's words if they cut the token into parts, else None."""
    if len(token.words) == 1:
        return [(token.start_char, token.end_char)]
    spans = [(word.start_char, word.end_char) for word in token.words]
    if any(start is None or end is None or start >= end for start, end in spans):
        return None
    edges = [spans[0][0], *(end for _, end in spans)]
    whole = edges[0] == token.start_char and edges[-1] == token.end_char
    return spans if whole and all(start == edge for (start, _), edge in zip(spans, edges)) else None


def known_tags(tagger: Any) -> dict[str, set[str]]:
    """Returns the tags that a tagger can give, by column."""
    composite = tagger.is_composite_xpos() and not isinstance(tagger.get_known_xpos(), list)
    columns = {"xpos": set() if composite else set(tagger.get_known_xpos()), "upos": set(tagger.get_known_upos())}
    return {column: tags - {"_", "", None} for column, tags in columns.items()}


def choose_tag_column(pipeline: Any) -> str:
    """Returns the column whose tags the constituency model was trained on: ``xpos`` or ``upos``.

    The model's configuration names a column. The name is wrong if the model was trained on gold tags (``--no_retag``),
    and the model would then silently get no tags. So the other column is taken where the model does not know the tags
    of the named one, or where that is empty. If the model knows neither, ParserUnavailableError is raised.
    """
    model = pipeline.processors["constituency"]._model
    known = known_tags(pipeline.processors["pos"])
    learned = {tag for tag in model.tags if tag}
    declared = "xpos" if model.uses_xpos() else "upos"
    for column in (declared, "upos" if declared == "xpos" else "xpos"):
        if known[column] and len(known[column] & learned) >= _TAG_COVERAGE * len(known[column]):
            if column != declared:
                logger.warning(
                    "the constituency model asks for %s tags, but was trained on the tagger's %s tags; these are used",
                    *(declared, column),
                )
            return column
    raise ParserUnavailableError(
        f"the tagger's tags (xpos {_sample(known['xpos'])}; upos {_sample(known['upos'])}) are not those that the "
        f"constituency model was trained on ({_sample(learned)}): its trees would be much worse. Use the tagger that "
        "belongs to the model"
    )


def tag_words(sentences: list[Any], column: str) -> list[list[tuple[str, str]]]:
    """Returns the words of tagged sentences with their tags, as the constituency model takes them.

    A word without a tag gets ``FLAT_TAG``, which is an unknown tag to the model.
    """
    tagged = [[(word.text, getattr(word, column)) for word in sentence.words] for sentence in sentences]
    named = [[(word, tag if tag and tag != "_" else FLAT_TAG) for word, tag in words] for words in tagged]
    tags = [tag for words in named for _, tag in words]
    if len(tags) >= _WORDS_THAT_PROVE and set(tags) == {FLAT_TAG}:
        raise ParserUnavailableError(
            f"the tagger gave no word a tag in its column {column}: it does not suit the constituency model"
        )
    return named


def _sample(tags: set[str]) -> str:
    return " ".join(sorted(tags)[:8]) or "none"
