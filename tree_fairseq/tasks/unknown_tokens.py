"""A warning about new text of which a model does not know many tokens, with the likely cause and the way out."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from fairseq.data import Dictionary

from tree_fairseq.parsing.pieces import BPE_JOINER, SENTENCEPIECE_MARK

logger = logging.getLogger(__name__)

LIMIT = 0.05  # the share of unknown tokens above which there is a warning
_SHOWN = 5
# Vocabularies of subwords have far more pieces with marks, and vocabularies of words hardly any.
_MARKED_SHARE = 0.02


# Changes that make unknown tokens known: what they say of the model, as a clause, and the way out, as a sentence.
_CHANGES: tuple[tuple[Callable[[str], str], str, str], ...] = (
    (str.lower, "the model was trained on lower-cased text", "Write the input in lower case"),
    (
        lambda token: token.strip(".,;:!?\"'()[]"),
        "the model was trained on tokenised text, and here punctuation is glued to words",
        "Put blanks around punctuation, or add --tokenizer moses",
    ),
    (str.capitalize, "the model was trained on text with capital letters", "Write the input with its capital letters"),
    (str.upper, "the model was trained on text with capital letters", "Write the input with its capital letters"),
)


def count_typed(task: Any, lines: Sequence[Sequence[str]]) -> None:
    """Counts the tokens of new lines that the source dictionary of a task lacks, in all calls together.

    The first time that their share is over :data:`LIMIT`, a warning names the likely cause.
    """
    dictionary = task.source_dictionary
    counts: dict[str, Counter[str]] = task.__dict__.setdefault("typed_tokens", {"all": Counter(), "unknown": Counter()})
    if "warned" in counts or dictionary is None:
        return
    for line in lines:
        counts["all"].update(line)
        counts["unknown"].update(token for token in line if token not in dictionary)
    unknown, total = sum(counts["unknown"].values()), sum(counts["all"].values())
    if unknown <= LIMIT * total:
        return
    counts["warned"] = Counter()
    cause = likely_cause(counts["unknown"], counts["all"], dictionary)
    logger.warning(
        "%d of %d tokens of the input (%.0f %%) are unknown to the model, such as %s: %s. %s",
        *(unknown, total, 100 * unknown / total),
        ", ".join(token for token, _ in counts["unknown"].most_common(_SHOWN)),
        *cause,
    )


def likely_cause(unknown: Counter[str], tokens: Counter[str], dictionary: Dictionary) -> tuple[str, str]:
    """Returns why many tokens of a text may be unknown, and the way out."""
    pieces = marks_of_vocabulary(dictionary)
    is_marked = any(token.endswith(BPE_JOINER) or token.startswith(SENTENCEPIECE_MARK) for token in tokens)
    # A single character has no pieces, so it says nothing about a model of subwords.
    if pieces is not None and not is_marked and max(map(len, unknown)) > 1:
        flag = "--bpe subword_nmt --bpe-codes FILE"
        if pieces == SENTENCEPIECE_MARK:
            flag = "--bpe sentencepiece --sentencepiece-model FILE"
        return (
            f"the model reads subwords ({pieces}), and these are whole words",
            f"Add {flag}; fairseq-preprocess takes the file, too, and the folder then keeps it for later input",
        )
    for change, cause, way_out in _CHANGES:
        known = sum(count for token, count in unknown.items() if change(token) in dictionary)
        if 2 * known > sum(unknown.values()):
            return cause, way_out
    return (
        "the text is of another language or subject than the training data",
        "Check the direction of translation; a model with subwords (--learn-subwords) knows parts of new words",
    )


def marks_of_vocabulary(dictionary: Dictionary) -> str | None:
    """Returns the mark of subwords that the words of a dictionary have, or None for whole words."""
    words = dictionary.symbols[dictionary.nspecial :]
    for mark, has_mark in ((BPE_JOINER, str.endswith), (SENTENCEPIECE_MARK, str.startswith)):
        if sum(has_mark(word, mark) for word in words) > _MARKED_SHARE * len(words):
            return mark
    return None
