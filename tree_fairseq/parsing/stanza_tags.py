"""Which of the tagger's tags the constituency model reads. Nothing is imported from Stanza: only the attributes of its objects are read."""

from __future__ import annotations

import logging
from typing import Any

from tree_fairseq.errors import ParserUnavailableError
from tree_fairseq.parsing.base import FLAT_TAG

logger = logging.getLogger(__name__)

_TAG_COVERAGE = 0.5
"""A column is the model's if it was trained on at least this share of the column's tags."""
_WORDS_THAT_PROVE = 20
"""If not one of so many words has a tag, the tagger gives none."""


def known_tags(tagger: Any) -> dict[str, set[str]]:
    """The tags that a tagger can give, by column."""
    composite = tagger.is_composite_xpos() and not isinstance(tagger.get_known_xpos(), list)
    columns = {"xpos": set() if composite else set(tagger.get_known_xpos()), "upos": set(tagger.get_known_upos())}
    return {column: tags - {"_", "", None} for column, tags in columns.items()}


def choose_tag_column(pipeline: Any) -> str:
    """``xpos`` or ``upos``: the column whose tags the constituency model was trained on.

    The model's configuration names one, but wrongly if it was trained on gold tags (``--no_retag``); it would then silently get no tags at all. So the
    other column is taken where the named one is empty or foreign to the model.

    Raises:
        ParserUnavailableError: neither column's tags are those of the model.
    """
    model = pipeline.processors["constituency"]._model
    known = known_tags(pipeline.processors["pos"])
    learned = {tag for tag in model.tags if tag}
    declared = "xpos" if model.uses_xpos() else "upos"
    for column in (declared, "upos" if declared == "xpos" else "xpos"):
        if known[column] and len(known[column] & learned) >= _TAG_COVERAGE * len(known[column]):
            if column != declared:
                logger.warning("the constituency model asks for %s tags, but was trained on the tagger's %s tags; these are used", declared, column)
            return column
    raise ParserUnavailableError(
        f"the tagger's tags (xpos {_sample(known['xpos'])}; upos {_sample(known['upos'])}) are not those that the constituency model was trained on "
        f"({_sample(learned)}): its trees would be much worse. Use the tagger that belongs to the model"
    )


def tag_words(sentences: list[Any], column: str) -> list[list[tuple[str, str]]]:
    """The words of tagged sentences with their tags, as the constituency model takes them.

    A word that the tagger left without a tag gets `FLAT_TAG`, which the model takes for an unknown one.

    Raises:
        ParserUnavailableError: none of many words has a tag.
    """
    tagged = [[(word.text, getattr(word, column)) for word in sentence.words] for sentence in sentences]
    named = [[(word, tag if tag and tag != "_" else FLAT_TAG) for word, tag in words] for words in tagged]
    tags = [tag for words in named for _, tag in words]
    if len(tags) >= _WORDS_THAT_PROVE and set(tags) == {FLAT_TAG}:
        raise ParserUnavailableError(f"the tagger gave no word a tag in its column {column}: it does not suit the constituency model")
    return named


def _sample(tags: set[str]) -> str:
    return " ".join(sorted(tags)[:8]) or "none"
