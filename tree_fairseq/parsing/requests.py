"""What a parser is asked, and what it answers, as strings: that is what is cached, and what passes between processes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tree_fairseq.errors import TreeFormatError
from tree_fairseq.parsing.base import ConstituencyParser, ParsedText
from tree_fairseq.parsing.batches import parse_recovering, plan_batches
from tree_fairseq.trees.bracket import write_forest
from tree_fairseq.trees.tree import Tree


@dataclass(frozen=True)
class _Kind:
    """A kind of request.

    Args:
        method: of the parser, which answers it.
    """

    method: str

    def size(self, text: str) -> int:
        """Words of a request, roughly."""
        return text.count(" ") + 1

    def batches(self, texts: Sequence[str], batch_size: int) -> list[list[str]]:
        """The requests in batches of similar length."""
        return [[texts[position] for position in batch] for batch in plan_batches([self.size(text) for text in texts], batch_size)]


KINDS = {"words": _Kind("parse"), "text": _Kind("parse_text")}
"""``words``: the words of a sentence, joined by blanks, answered by its tree in brackets. ``text``: a line of raw text, answered by `decode_text`."""


def parse_texts(parser: ConstituencyParser, kind: str, texts: list[str]) -> tuple[list[str | None], dict[int, str]]:
    """Ask a parser.

    Args:
        parser: the parser.
        kind: one of `KINDS`.
        texts: one batch of requests.

    Returns:
        an answer for each, None where the parser fails; and the reason of each failure.
    """
    release = getattr(parser, "release_memory", None)
    if kind == "words":
        sentences = [text.split(" ") for text in texts]
        trees, reasons = parse_recovering(parser.parse, sentences, lambda words, tree: tree.leaves() == words, release)
        encode = _encode_tree
    else:
        trees, reasons = parse_recovering(parser.parse_text, texts, _covers, release)
        encode = _encode_text
    answers: list[str | None] = []
    for position, tree in enumerate(trees):
        answer = None
        if tree is not None:
            try:
                answer = encode(tree)
            except TreeFormatError as error:
                reasons[position] = f"its tree cannot be written: {error}"
        answers.append(answer)
    return answers, reasons


def _covers(line: str, parsed: ParsedText) -> bool:
    """Whether the leaves are the text of the line, nothing left out but white space."""
    leaves = [leaf for tree in parsed.forest for leaf in tree.leaves()]
    if len(leaves) != len(parsed.offsets) or leaves != ["_".join(line[start:end].split()) for start, end in parsed.offsets]:
        return False
    end_before = 0
    for start, end in [*parsed.offsets, (len(line), len(line))]:
        if start < end_before or line[end_before:start].strip():
            return False
        end_before = end
    return True


def _encode_tree(tree: Tree) -> str:
    return write_forest((tree,))


def _encode_text(parsed: ParsedText) -> str:
    return json.dumps({"trees": write_forest(parsed.forest), "offsets": parsed.offsets}, ensure_ascii=False, separators=(",", ":"))


def decode_text(answer: str) -> tuple[str, list[tuple[int, int]]] | None:
    """The forest in brackets and the span of characters of each leaf; None if the answer is none of ours."""
    try:
        values: dict[str, Any] = json.loads(answer)
        return values["trees"], [(int(start), int(end)) for start, end in values["offsets"]]
    except (ValueError, KeyError, TypeError):
        return None
