"""Stanza's trees and tokens as ours. Nothing is imported from Stanza: only the attributes of its objects are read."""

from __future__ import annotations

from typing import Any

from tree_fairseq.parsing.base import ParsedText
from tree_fairseq.trees.subwords import align_pieces
from tree_fairseq.trees.tree import Tree


def to_label(label: str) -> str:
    """A label that can be written in brackets: the German tag ``$(`` becomes ``$-LRB-``, as ``-LRB-`` is what other treebanks call the same tag."""
    return label.replace("(", "-LRB-").replace(")", "-RRB-")


def to_tree(parsed: Any) -> Tree:
    """Our tree of a ``stanza...ParseTree``; iterative."""
    built: list[Tree] = []
    nodes = []
    stack = [parsed]
    while stack:
        node = stack.pop()
        nodes.append(node)
        stack.extend(node.children)
    for node in reversed(nodes):
        # Children were visited from right to left, so this order builds them from left to right.
        if not node.children:
            built.append(Tree(node.label))
            continue
        first = len(built) - len(node.children)
        children = built[first:]
        del built[first:]
        built.append(Tree(to_label(node.label), children))
    return built[0]


def merge_multiword_tokens(line: str, sentences: list[Any], trees: list[Tree]) -> ParsedText:
    """A forest over the tokens of a line, from trees over its words.

    A token such as German "zum" holds two words, "zu" and "dem", which are not in the text; it becomes one leaf where its words' constituents meet.
    A word that is a part of the text ("do", "n't") stays a leaf of its own.

    Args:
        line: the text.
        sentences: Stanza's sentences; all tokens have offsets into ``line``.
        trees: one for each sentence, over its words.
    """
    word_spans, leaf_spans, offsets = [], [], []
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
    forest = tuple(trees)
    if len(leaf_spans) == len(word_spans):
        return ParsedText(_relabel(forest, leaves), offsets)
    return ParsedText(align_pieces(forest, word_spans, leaf_spans, leaves), offsets)


def _parts(token: Any) -> list[tuple[int, int]] | None:
    """The spans of a token's words if they cut the token, else None."""
    if len(token.words) == 1:
        return [(token.start_char, token.end_char)]
    spans = [(word.start_char, word.end_char) for word in token.words]
    if any(start is None or end is None or start >= end for start, end in spans):
        return None
    edges = [spans[0][0], *(end for _, end in spans)]
    whole = edges[0] == token.start_char and edges[-1] == token.end_char
    return spans if whole and all(start == edge for (start, _), edge in zip(spans, edges)) else None


def _relabel(forest: tuple[Tree, ...], leaves: list[str]) -> tuple[Tree, ...]:
    """The forest over these leaves."""
    trees = []
    start = 0
    for tree in forest:
        width = len(tree.leaves())
        trees.append(tree.map_leaves(leaves[start : start + width]))
        start += width
    return tuple(trees)
