"""What a parser is asked, and what it answers, as strings: that is what is cached, and what passes between processes."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tree_fairseq.errors import TreeFairseqError, TreeFormatError
from tree_fairseq.parsing.parsers import ConstituencyParser, ParsedText
from tree_fairseq.trees.bracket import write_forest
from tree_fairseq.trees.tree import Tree

# FROM parsing/batches: Batches of similar length, and what to do when one of them fails.

logger = logging.getLogger(__name__)

Item = TypeVar("Item")
Result = TypeVar("Result")

_WORDS_PER_SENTENCE = 64
"""A batch holds at most this many words per sentence of the batch size, padding included; so a line of 2,000 words meets few others."""


def plan_batches(sizes: Sequence[int], batch_size: int) -> list[list[int]]:
    """Cut items into batches of similar size, the largest first.

    The plan follows from the sizes and their order alone, since the last digits of a parser's scores may depend on what shares its batch.

    Args:
        sizes: words of each item.
        batch_size: items in a batch, at most; fewer where they are long.

    Returns:
        the positions of the items of each batch.
    """
    order = sorted(range(len(sizes)), key=lambda position: -sizes[position])
    budget = _WORDS_PER_SENTENCE * batch_size
    batches: list[list[int]] = []
    for position in order:
        # The first of a batch is its longest, so this is the batch's size with its padding.
        if not batches or len(batches[-1]) >= batch_size or (len(batches[-1]) + 1) * sizes[batches[-1][0]] > budget:
            batches.append([])
        batches[-1].append(position)
    return batches


def is_out_of_memory(error: BaseException) -> bool:
    """Whether Python, torch on the CPU or CUDA ran out of memory."""
    if isinstance(error, MemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and (
        "out of memory" in text or "not enough memory" in text or "can't allocate memory" in text
    )


def parse_recovering(
    parse: Callable[[list[Item]], Sequence[Result | None]],
    items: Sequence[Item],
    accept: Callable[[Item, Result], bool],
    release_memory: Callable[[], Any] | None = None,
) -> tuple[list[Result | None], dict[int, str]]:
    """Parse a batch; where that fails, halves of it, down to single items.

    An exception (lack of memory among them), a wrong number of results, and a result that is not of its item all count as failures of the batch; only
    what fails on its own is given up. Results are never trusted to be in order: each is compared with its item.

    Args:
        parse: gives one result for each item, or None.
        items: the batch.
        accept: whether a result belongs to an item.
        release_memory: called after each lack of memory.

    Returns:
        a result or None for each item, and the reason for each None.

    Raises:
        TreeFairseqError: from ``parse``: such an error concerns all items.
    """
    results: list[Result | None] = [None] * len(items)
    reasons: dict[int, str] = {}
    pending = [list(range(len(items)))] if items else []
    while pending:
        batch = pending.pop()
        found, reason = _attempt(parse, [items[position] for position in batch], release_memory)
        left = []
        for place, position in enumerate(batch):
            result = found[place] if len(found) == len(batch) else None
            if result is not None and accept(items[position], result):
                results[position] = result
            else:
                left.append(position)
                if result is not None:
                    reason = reason or "the leaves of the tree are not the words of the sentence"
        if not left:
            continue
        if len(batch) == 1:
            reasons[batch[0]] = reason or "the parser gave no tree"
        elif len(left) < len(batch):
            # Most came through: what did not is tried alone at once.
            pending.extend([position] for position in reversed(left))
        else:
            middle = (len(batch) + 1) // 2
            pending.extend([batch[middle:], batch[:middle]])
    return results, reasons


def _attempt(parse: Callable, items: list, release_memory: Callable | None) -> tuple[Sequence, str]:
    """The results of one call, or none and the reason."""
    try:
        found = parse(items)
    except TreeFairseqError:
        raise
    except Exception as error:
        # Only the text is kept: the error holds the frames, and they hold the memory that is needed now.
        reason = f"{type(error).__name__}: {error}"
        exhausted = is_out_of_memory(error)
    else:
        reason = f"{len(found)} trees for {len(items)} sentences" if len(found) != len(items) else ""
        return found, reason
    if exhausted and release_memory is not None:
        release_memory()
    logger.warning(
        "a batch of %d failed (%s)%s",
        len(items),
        reason.splitlines()[0],
        "; trying halves of it" if len(items) > 1 else "",
    )
    return [], reason


@dataclass(frozen=True)
class Request:
    """Work for a parser.

    Args:
        kind: ``words`` or ``text`` (see :data:`KINDS`), ``lines``, or ``labels``.
        payload: a batch of texts; for ``lines`` the lines, the number of the first one, and their file; for ``labels`` nothing.
        context: for the caller's use; it stays in the caller's process.
    """

    kind: str
    payload: Any
    context: Any = None


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
        return [
            [texts[position] for position in batch]
            for batch in plan_batches([self.size(text) for text in texts], batch_size)
        ]


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
    if len(leaves) != len(parsed.offsets) or leaves != [
        "_".join(line[start:end].split()) for start, end in parsed.offsets
    ]:
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
    return json.dumps(
        {"trees": write_forest(parsed.forest), "offsets": parsed.offsets}, ensure_ascii=False, separators=(",", ":")
    )


def decode_text(answer: str) -> tuple[str, list[tuple[int, int]]] | None:
    """The forest in brackets and the span of characters of each leaf; None if the answer is none of ours."""
    try:
        values: dict[str, Any] = json.loads(answer)
        return values["trees"], [(int(start), int(end)) for start, end in values["offsets"]]
    except (ValueError, KeyError, TypeError):
        return None
