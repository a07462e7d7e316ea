"""Subword pieces as subtrees: the leaves of a forest become the pieces that its words were split into.

A word of two pieces or more becomes a constituent that keeps the word's tag, ``(NN w)`` to
``(NN (NN_sub p1) (NN_sub p2))``; a word that is one piece stays a preterminal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tree_fairseq.errors import PieceAlignmentError
from tree_fairseq.trees.tree import Forest, Tree, check_preterminals

SUBWORD_SUFFIX = "_sub"
"""What is added to the tag of a split word to make the tag of its pieces."""

WORD_START = "\u2581"
"""SentencePiece's sign for a blank: a piece that begins with it begins a word."""

_BYTE_PIECES = re.compile(r"(?:<0x[0-9A-F]{2}>)+")


def split_words(forest: Forest, pieces: Sequence[Sequence[str]]) -> Forest:
    """Replace every word by its pieces.

    Args:
        forest: the trees of a line.
        pieces: for each leaf from left to right its pieces, one at least.

    Returns:
        a forest whose leaves are all the pieces in order.

    Raises:
        PieceAlignmentError: there are more or fewer lists than words, or a word has no piece.
        MixedChildrenError, OutsideTreeError: a word is not the only child of its parent.
    """
    check_preterminals(forest)
    word_count = sum(not node.children for tree in forest for node in tree.preorder())
    if len(pieces) != word_count:
        raise PieceAlignmentError(f"pieces of {len(pieces)} words for a line of {word_count} words")
    remaining = iter(pieces)

    def split(node: Tree, children: list[Tree]) -> Tree:
        if not node.children:
            return node
        if node.is_preterminal:
            return _word_tree(node.label, next(remaining))
        return Tree(node.label, children)

    return tuple(tree.fold(split) for tree in forest)


def _word_tree(tag: str, pieces: Sequence[str]) -> Tree:
    if not pieces:
        raise PieceAlignmentError(f"a word tagged {tag} has no piece")
    if len(pieces) == 1:
        return Tree(tag, (Tree(pieces[0]),))
    return Tree(tag, (_piece_tree(tag, piece) for piece in pieces))


def _piece_tree(label: str, piece: str) -> Tree:
    return Tree(label + SUBWORD_SUFFIX, (Tree(piece),))


def join_words(forest: Forest, join: Callable[[Sequence[str]], str] = "".join) -> Forest:
    """Undo `split_words`: every split word becomes one leaf again.

    A split word is known by its form, so the inverse holds for trees without such a form of their own.

    Args:
        forest: the trees of a line over pieces.
        join: gives the word for its pieces; called for every word, also for one of a single piece.
    """

    def rejoin(node: Tree, children: list[Tree]) -> Tree:
        if is_split_word(node):
            return _join_under(node.label, node.children, join)
        # A preterminal is joined by its parent, which knows whether it is a word or the piece of one.
        joined = [
            _join_under(child.label, [child], join) if child.is_preterminal else result
            for child, result in zip(node.children, children, strict=True)
        ]
        return Tree(node.label, joined)

    check_preterminals(forest)
    return tuple(_join_under(tree.label, [tree], join) if tree.is_preterminal else tree.fold(rejoin) for tree in forest)


def _join_under(tag: str, preterminals: Sequence[Tree], join: Callable[[Sequence[str]], str]) -> Tree:
    return Tree(tag, (Tree(join([preterminal.children[0].label for preterminal in preterminals])),))


def is_split_word(node: Tree) -> bool:
    """Whether a node is what `split_words` makes of a word of several pieces."""
    piece_tag = node.label + SUBWORD_SUFFIX
    return len(node.children) >= 2 and all(child.label == piece_tag and child.is_preterminal for child in node.children)


def join_bpe(tokens: Sequence[str], joiner: str = "@@") -> tuple[list[str], list[list[str]]]:
    """Join the tokens that subword-nmt split: all but the last piece of a word end with the joiner.

    Args:
        tokens: the tokens of a line.
        joiner: the sign at the end of a piece that is continued.

    Returns:
        ``(words, pieces)``, as many of each; the pieces of all words in order are the tokens.  A line that ends in the
        middle of a word gives the word as far as it goes.
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
    """The word whose subword-nmt pieces are given; where nothing is left without joiners, the pieces as they stand."""
    return "".join(piece.removesuffix(joiner) for piece in pieces) or "".join(pieces)


def join_sentencepiece(pieces: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Join SentencePiece's pieces: the first piece of a word begins with ``\u2581``.

    Args:
        pieces: the pieces of a line.

    Returns:
        ``(words, pieces_per_word)``, as many of each; the pieces of all words in order are the given ones.  A lone
        ``\u2581`` belongs to the word after it, at the end of the line to the word before it.
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
    """The word whose SentencePiece pieces are given.

    Pieces that stand for single bytes (``<0xE2>``) are put together to characters; where nothing is left without
    ``\u2581``, the pieces as they stand.
    """
    text = _BYTE_PIECES.sub(_decode_bytes, "".join(pieces))
    return text.strip(WORD_START) or "".join(pieces)


def _decode_bytes(found: re.Match) -> str:
    text = found.group()
    values = bytes(int(text[place : place + 2], 16) for place in range(3, len(text), 6))
    decoded = values.decode("utf-8", errors="replace")
    # A word must stay one token: bytes of whitespace or of no character are left spelled out.
    return text if "\ufffd" in decoded or any(character.isspace() for character in decoded) else decoded


def align_pieces(
    forest: Forest,
    token_offsets: Sequence[tuple[int, int]],
    piece_offsets: Sequence[tuple[int, int]],
    pieces: Sequence[str],
) -> Forest:
    """Replace the words by the pieces of the raw text, by character offset.

    A piece goes to the token that it overlaps, together with that token's other pieces as in `split_words`.  A piece
    over several tokens becomes a leaf of their lowest common ancestor; a token all of whose characters went to such
    pieces disappears.  A piece over no token (a blank, or a piece of no width) goes to the token that follows, at the
    end of the text to the last one.  A piece over two trees goes to the first of them.

    Args:
        forest: the trees of the text's sentences over the parser's tokens.
        token_offsets: ``[start, end)`` of each leaf in the text, from left to right; tokens may coincide (the parts of
            a contraction).
        piece_offsets: ``[start, end)`` of each piece, from left to right.
        pieces: the pieces.

    Returns:
        a forest whose leaves are all the pieces in order.

    Raises:
        PieceAlignmentError: numbers of tokens, offsets or pieces differ, or there are pieces and no token.
        MixedChildrenError, OutsideTreeError: a word is not the only child of its parent.
    """
    check_preterminals(forest)
    word_count = sum(not node.children for tree in forest for node in tree.preorder())
    if len(token_offsets) != word_count:
        raise PieceAlignmentError(f"offsets of {len(token_offsets)} tokens for a line of {word_count} words")
    if len(piece_offsets) != len(pieces):
        raise PieceAlignmentError(f"offsets of {len(piece_offsets)} pieces for {len(pieces)} pieces")
    if pieces and not word_count:
        raise PieceAlignmentError(f"{len(pieces)} pieces for a line without words")
    aligner = _PieceAligner(pieces, _tokens_of_pieces(forest, token_offsets, piece_offsets))
    aligned = (tree.fold(aligner.node) for tree in forest)
    return tuple(tree for tree, _, _ in aligned if tree is not None)


def _tokens_of_pieces(
    forest: Forest, token_offsets: Sequence[tuple[int, int]], piece_offsets: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """The first and the last token of each piece, within one tree; both never decrease from piece to piece."""
    last_of_tree = []
    for tree in forest:
        size = sum(not node.children for node in tree.preorder())
        last_of_tree += [len(last_of_tree) + size - 1] * size
    placed = []
    count = len(token_offsets)
    # Neither is reset for a piece: offsets that step back, which normalisation can cause, must not reorder the pieces.
    first = last = 0
    for start, end in piece_offsets:
        while first < count - 1 and token_offsets[first][1] <= start:
            first += 1
        last = max(last, first)
        while last + 1 < count and token_offsets[last + 1][0] < end:
            last += 1
        placed.append((first, min(last, last_of_tree[first])))
    return placed


class _PieceAligner:
    """Puts pieces where their tokens were; `node` is folded over the trees of a line in order.

    Args:
        pieces: all pieces of the line.
        placed: the first and the last token of each.
    """

    def __init__(self, pieces: Sequence[str], placed: Sequence[tuple[int, int]]):
        self.own_pieces: dict[int, list[str]] = {}
        # Pieces over several tokens, by their last token.
        self.crossing: dict[int, list[tuple[int, str]]] = {}
        for piece, (first, last) in zip(pieces, placed, strict=True):
            if first == last:
                self.own_pieces.setdefault(first, []).append(piece)
            else:
                self.crossing.setdefault(last, []).append((first, piece))
        self.token = 0
        # Pieces all of whose tokens were seen, but not yet their common ancestor; their first tokens never decrease.
        self.waiting: list[tuple[int, str]] = []

    def node(self, node: Tree, children: list[tuple[Tree | None, int, int]]) -> tuple[Tree | None, int, int]:
        """The node over pieces (None if it has none) and the tokens ``[start, end)`` that it covered."""
        if not node.children:
            return None, self.token, self.token
        if node.is_preterminal:
            token = self.token
            self.token += 1
            own = self.own_pieces.get(token)
            self.waiting += self.crossing.get(token, ())
            return _word_tree(node.label, own) if own else None, token, token + 1
        start = children[0][1]
        split = len(self.waiting)
        while split and self.waiting[split - 1][0] >= start:
            split -= 1
        joined = self.waiting[split:]
        del self.waiting[split:]
        return _with_joined_pieces(node.label, children, joined), start, self.token


def _with_joined_pieces(
    label: str, children: list[tuple[Tree | None, int, int]], joined: list[tuple[int, str]]
) -> Tree | None:
    """A constituent of its remaining children and, each behind the child in which it begins, of the pieces joined."""
    subtrees: list[Tree] = []
    done = 0
    for subtree, _, end in children:
        if subtree is not None:
            subtrees.append(subtree)
        while done < len(joined) and joined[done][0] < end:
            subtrees.append(_piece_tree(label, joined[done][1]))
            done += 1
    if len(subtrees) == 1 and joined:
        return _word_tree(label, [joined[0][1]])
    return Tree(label, subtrees) if subtrees else None
