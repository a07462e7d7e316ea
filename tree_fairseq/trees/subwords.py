"""Subword pieces as subtrees: every word of a forest is replaced by the pieces that it was split into.

A word of two or more pieces becomes a constituent with the tag of the word: ``(NN w)`` becomes
``(NN (NN_sub p1) (NN_sub p2))``. A word that is one piece stays a preterminal.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from itertools import accumulate, count
from typing import Optional

from tree_fairseq.errors import PieceAlignmentError
from tree_fairseq.trees.tree import Forest, Tree, check_preterminals, forest_leaves

SUBWORD_SUFFIX = "_sub"  # added to the tag of a split word to make the tag of its pieces
WORD_START = "\u2581"  # SentencePiece's sign for a blank: a piece that begins with it begins a word
_BYTE_PIECES = re.compile(r"(?:<0x[0-9A-F]{2}>)+")


def split_words(forest: Forest, pieces: Sequence[Sequence[str]]) -> Forest:
    """Replaces every word by its pieces; ``pieces`` has one list for each word from left to right.

    Raises PieceAlignmentError if there are more or fewer lists than words, or a word has no pieces, and
    MixedChildrenError or OutsideTreeError if a word is not the only child of its parent.
    """
    check_preterminals(forest)
    word_count = len(forest_leaves(forest))
    if len(pieces) != word_count:
        raise PieceAlignmentError(f"pieces of {len(pieces)} words for a line of {word_count} words")
    remaining = iter(pieces)

    def split(node: Tree, children: list[Tree]) -> Tree:
        if node.is_preterminal:
            return _word_tree(node.label, next(remaining))
        return Tree(node.label, children) if children else node

    return tuple(tree.fold(split) for tree in forest)


def _word_tree(tag: str, pieces: Sequence[str]) -> Tree:
    if not pieces:
        raise PieceAlignmentError(f"a word tagged {tag} has no pieces")
    if len(pieces) == 1:
        return Tree(tag, (Tree(pieces[0]),))
    return Tree(tag, (_piece_tree(tag, piece) for piece in pieces))


def _piece_tree(label: str, piece: str) -> Tree:
    return Tree(label + SUBWORD_SUFFIX, (Tree(piece),))


def join_words(forest: Forest, join: Callable[[Sequence[str]], str] = "".join) -> Forest:
    """Makes every split word one leaf again; the inverse of `split_words`.

    `is_split_word` recognises split words by their shape, so the original trees may not contain this shape themselves.
    ``join`` returns the word of its pieces, also for one piece.
    """

    def rejoin(node: Tree, children: list[Tree]) -> Tree:
        if node.is_preterminal or is_split_word(node):
            return Tree(node.label, (Tree(join(node.leaves())),))
        return Tree(node.label, children) if children else node

    check_preterminals(forest)
    return tuple(tree.fold(rejoin) for tree in forest)


def is_split_word(node: Tree) -> bool:
    """Whether a node has the shape that `split_words` gives to a word of several pieces."""
    piece_tag = node.label + SUBWORD_SUFFIX
    return len(node.children) >= 2 and all(child.label == piece_tag and child.is_preterminal for child in node.children)


def join_bpe(tokens: Sequence[str], joiner: str = "@@") -> tuple[list[str], list[list[str]]]:
    """Joins the tokens of a line that subword-nmt split: all pieces of a word except the last end with the joiner.

    Returns the words and the pieces of each; a word that the line cuts off ends with the line.
    """
    pieces: list[list[str]] = []
    continues = False
    for token in tokens:
        if continues:
            pieces[-1].append(token)
        else:
            pieces.append([token])
        continues = token.endswith(joiner)
    return [bpe_word(word_pieces, joiner) for word_pieces in pieces], pieces


def bpe_word(pieces: Sequence[str], joiner: str = "@@") -> str:
    """The word of subword-nmt pieces; if they consist of joiners alone, the joiners themselves."""
    return "".join(piece.removesuffix(joiner) for piece in pieces) or "".join(pieces)


def join_sentencepiece(pieces: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Joins SentencePiece's pieces of a line: the first piece of a word begins with ``\u2581``.

    Returns the words and the pieces of each. A ``\u2581`` by itself belongs to the word after it, or at the end of the
    line to the word before it.
    """
    grouped: list[list[str]] = []
    only_blank = False
    for piece in pieces:
        if not grouped or (piece.startswith(WORD_START) and not only_blank):
            grouped.append([piece])
            only_blank = True
        else:
            grouped[-1].append(piece)
        only_blank = only_blank and not piece.strip(WORD_START)
    if only_blank and len(grouped) > 1:
        grouped[-2:] = [grouped[-2] + grouped[-1]]
    return [sentencepiece_word(group) for group in grouped], grouped


def sentencepiece_word(pieces: Sequence[str]) -> str:
    """The word of SentencePiece pieces; if they consist of ``\u2581`` alone, these signs themselves.

    Pieces for single bytes (``<0xE2>``) are decoded to characters.
    """
    text = _BYTE_PIECES.sub(_decode_bytes, "".join(pieces))
    return text.strip(WORD_START) or "".join(pieces)


def _decode_bytes(found: re.Match) -> str:
    text = found.group()
    decoded = bytes.fromhex(re.sub("<0x|>", "", text)).decode("utf-8", errors="replace")
    # A word must stay one token, so bytes that are whitespace or not valid UTF-8 stay as they are.
    return text if "\ufffd" in decoded or any(character.isspace() for character in decoded) else decoded


def align_pieces(
    forest: Forest,
    token_offsets: Sequence[tuple[int, int]],
    piece_offsets: Sequence[tuple[int, int]],
    pieces: Sequence[str],
) -> Forest:
    """Replaces the words by the pieces of the raw text, which are aligned by character offset.

    A piece becomes a leaf at the token that it overlaps, as in `split_words`. A piece over several tokens becomes a
    leaf of their lowest common ancestor, and a token disappears if such pieces cover all its characters. A piece over
    no token (a blank, or a piece without width) goes to the token after it, or at the end of the text to the last one.
    A piece over two trees goes to the first.

    Offsets are ``[start, end)``, from left to right; tokens may have the same ones (the parts of a contraction). Raises
    PieceAlignmentError if there are pieces but no token, and MixedChildrenError or OutsideTreeError if a word is not
    the only child of its parent.
    """
    check_preterminals(forest)
    if pieces and not forest:
        raise PieceAlignmentError(f"{len(pieces)} pieces for a line without words")
    own_pieces, crossing = _pieces_by_token(forest, token_offsets, piece_offsets, pieces)
    # The pieces whose tokens have all been visited but whose common ancestor has not, by first token.
    waiting: list[tuple[int, str]] = []
    tokens = count()

    def align(node: Tree, children: list[_Aligned]) -> _Aligned:
        if not node.children:
            return None, 0, 0
        if node.is_preterminal:
            token = next(tokens)
            waiting.extend(crossing[token])
            own = own_pieces[token]
            return _word_tree(node.label, own) if own else None, token, token + 1
        start, end = children[0][1], children[-1][2]
        split = bisect_left(waiting, (start, ""))
        joined = waiting[split:]
        del waiting[split:]
        return _with_joined_pieces(node.label, children, joined), start, end

    aligned = [tree.fold(align)[0] for tree in forest]
    return tuple(tree for tree in aligned if tree is not None)


# A node over pieces, None if it has none, and the span of the tokens that it covered.
_Aligned = tuple[Optional[Tree], int, int]


def _pieces_by_token(
    forest: Forest,
    token_offsets: Sequence[tuple[int, int]],
    piece_offsets: Sequence[tuple[int, int]],
    pieces: Sequence[str],
) -> tuple[defaultdict[int, list[str]], defaultdict[int, list[tuple[int, str]]]]:
    """The pieces within tokens; and by last token the pieces over several tokens of a tree, with the first token."""
    own_pieces, crossing = defaultdict[int, list[str]](list), defaultdict[int, list[tuple[int, str]]](list)
    sizes = [len(tree.leaves()) for tree in forest]
    last_of_tree = [end - 1 for end, size in zip(accumulate(sizes), sizes) for _ in range(size)]
    # Both only grow: where text was normalised, offsets can decrease, and the pieces must keep their order.
    first = last = 0
    for piece, (start, end) in zip(pieces, piece_offsets):
        while first < len(token_offsets) - 1 and token_offsets[first][1] <= start:
            first += 1
        last = max(last, first)
        while last + 1 < len(token_offsets) and token_offsets[last + 1][0] < end:
            last += 1
        if (last_here := min(last, last_of_tree[first])) == first:
            own_pieces[first].append(piece)
        else:
            crossing[last_here].append((first, piece))
    return own_pieces, crossing


def _with_joined_pieces(label: str, children: list[_Aligned], joined: list[tuple[int, str]]) -> Tree | None:
    """A constituent of its remaining children; each joined piece follows the child in which it begins."""
    subtrees: list[Tree] = []
    following = deque(joined)
    for subtree, _, end in children:
        if subtree is not None:
            subtrees.append(subtree)
        while following and following[0][0] < end:
            subtrees.append(_piece_tree(label, following.popleft()[1]))
    if len(subtrees) == 1 and joined:
        return _word_tree(label, [joined[0][1]])
    return Tree(label, subtrees) if subtrees else None
