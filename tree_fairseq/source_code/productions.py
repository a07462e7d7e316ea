r"""Labels of program trees: one production a node, as short as the grammar of the language allows.

A label is a list of words with a blank between them. The first word is the type of the node in the library that parses
the language. The others are its fields, in order:

=============  ==========================================================================================
word           meaning
=============  ==========================================================================================
``test``       a field with one child
``body*3``     a field with three children
``body[]``     a list with one child
``kind=LEFT``  a field whose value is part of the grammar, not a child
``+distinct``  a field that is true; ``-desc``, one that is false
``'(``         a token of the text; ``'``, that no blank stands here
``...``        the rest of a long list, which is the last child
``|``          the only child follows: chains of nodes with one child are folded into one node
``"text``      the text of a leaf, up to the end of the label, blanks included
=============  ==========================================================================================

``If test body*2``, ``Where this | EQ this expression`` and ``Name "x`` are labels. A leaf that is spelled has the label
``Name "`` and its pieces as children, whose labels are ``"get``, ``"User``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tree_fairseq.trees.tree import Tree

QUOTE = '"'  # begins the text of a leaf, and the label of a piece
CHAIN = " | "
REST = "..."
MOST_CHILDREN = 16
"""A node with more children has the rest of them under its last child, so any program needs a bounded set of labels."""


class Link(NamedTuple):
    """One node of a chain: its type, its words, and the name of the field of each of its children.

    Children that stand in no named field have the type and the token before them as the name of their field.
    """

    type: str
    words: tuple[str, ...]
    fields: tuple[str, ...]


class Production(NamedTuple):
    """A parsed label: the links of the chain, and the text of a leaf, or None."""

    links: tuple[Link, ...]
    text: str | None

    @property
    def type(self) -> str:
        """The type of the topmost node."""
        return self.links[0].type

    @property
    def fields(self) -> tuple[str, ...]:
        """The field of each child of the lowest node."""
        return self.links[-1].fields


def is_piece(label: str) -> bool:
    """Whether the label is that of a piece of a leaf."""
    return label.startswith(QUOTE)


def leaf_label(head: str, text: str) -> str:
    """The label of a leaf with this text; ``head`` is its production."""
    return f"{head} {QUOTE}{text}"


def split_leaf(label: str) -> tuple[str, str | None]:
    """The production of a label and the text of the leaf, which is None for a label without a text."""
    if is_piece(label):
        return "", label[1:]
    head, quote, text = label.partition(f" {QUOTE}")
    return head, text if quote else None


@functools.lru_cache(maxsize=100_000)
def parse_label(label: str) -> Production:
    """The production of a label; a piece has the type of its quotation mark and no fields."""
    if is_piece(label):
        return Production((Link(QUOTE, (), ()),), label[1:])
    head, text = split_leaf(label)
    return Production(tuple(map(_parse_link, head.split(CHAIN))), text)


def _parse_link(link: str) -> Link:
    type_name, *words = link.split(" ")
    fields: list[str] = []
    base, token = type_name.removesuffix(REST), ""
    for word in words:
        if _has_no_child(word):
            token = word if word != "'" else token
            continue
        name, _, many = list_word(word)
        if name == REST:
            fields.append(rest_type(type_name))
        else:
            fields += [f"{base} {token}" if name == "_" else f"{base}.{name}"] * many
    return Link(type_name, tuple(words), tuple(fields))


def _has_no_child(word: str) -> bool:
    return word[0] in "'+-" or "=" in word


def rest_type(type_name: str) -> str:
    """The type of the rest of a node, which is also the name of its field."""
    return f"{type_name.removesuffix(REST)}{REST}"


def counted(name: str, count: int) -> str:
    """The word of a field with so many children."""
    return name if count == 1 else f"{name}*{count}"


def counted_list(name: str, count: int) -> str:
    """The word of a list of so many children; one child alone would read as a field that is not a list."""
    return f"{name}[]" if count == 1 and name != "_" else counted(name, count)


def node(type_name: str, words: Sequence[str], children: Sequence[Tree]) -> Tree:
    """The tree of a node: long lists are split, and an only child is folded into its parent.

    Words that stand for children have one of the forms of fields, in the order of the children.
    """
    if len(children) > MOST_CHILDREN:
        words, children = _with_rest(type_name, words, children)
    label = " ".join((type_name, *words)) if words else type_name
    if len(children) == 1 and not is_piece(children[0].label):
        below = children[0]
        return Tree(label + CHAIN + below.label, below.children)
    return Tree(label, children)


def _with_rest(type_name: str, words: Sequence[str], children: Sequence[Tree]) -> tuple[list[str], list[Tree]]:
    """The words and the children of a node whose last child has the rest of them."""
    kept: list[str] = []
    room = MOST_CHILDREN - 1
    for place, word in enumerate(words):
        name, _, many = ("", False, 0) if _has_no_child(word) else list_word(word)
        if many > room:
            others = [counted_list(name, many - room) if room else word, *words[place + 1 :]]
            kept += [counted_list(name, room)] if room else []
            rest = node(rest_type(type_name), others, children[MOST_CHILDREN - 1 :])
            return [*kept, REST], [*children[: MOST_CHILDREN - 1], rest]
        room -= many
        kept.append(word)
    raise ValueError(f"{type_name}: {len(children)} children for the words {words}")


def parts(label: str, children: Sequence[Tree]) -> Tree:
    """The node of a label that is not a chain as a chain of nodes with one field each, joined by their rests."""
    type_name, *words = label.split(" ")
    singles = [single for word in words for single in _single_words(word)]
    cuts: list[list[str]] = [[]]
    for word in singles:
        is_next_field = not _has_no_child(word) and any(not _has_no_child(earlier) for earlier in cuts[-1])
        if is_next_field or (not children and cuts[-1]):
            cuts.append([])
        cuts[-1].append(word)
    if len(cuts) == 1:
        return Tree(label, children)
    rest: list[Tree] = []
    taken = len(children)
    for number in range(len(cuts) - 1, -1, -1):
        own = sum(not _has_no_child(word) for word in cuts[number])
        name = rest_type(type_name) if number else type_name
        below = [*children[taken - own : taken], *rest]
        taken -= own
        rest = [Tree(" ".join([name, *cuts[number], *([REST] if number < len(cuts) - 1 else [])]), below)]
    return rest[0]


def _single_words(word: str) -> list[str]:
    """A word for each child of a field; fields of several children stay lists."""
    if _has_no_child(word) or "*" not in word:
        return [word]
    name, _, count = list_word(word)
    return [counted_list(name, 1)] * count


def unfolded(tree: Tree) -> Tree:
    """The tree with one node for each link of a chain and without rests, whose words are complete."""

    def unfold(here: Tree, children: list[Tree]) -> Tree:
        if is_piece(here.label) or (not children and CHAIN not in here.label):
            return here
        head, text = split_leaf(here.label)
        *above, lowest = head.split(CHAIN)
        if lowest.endswith(f" {REST}") and children:
            name, more = lowest[: -len(REST) - 1], children[-1]
            start = rest_type(name.partition(" ")[0])
            if more.label.partition(" ")[0] == start:
                lowest = _joined_lists(name, more.label[len(start) :].strip())
                children = [*children[:-1], *more.children]
        built = Tree(lowest if text is None else leaf_label(lowest, text), children)
        for label in reversed(above):
            built = Tree(label, (built,))
        return built

    return tree.fold(unfold)


def _joined_lists(words: str, others: str) -> str:
    """The words of a node and those of its rest; a list that was cut is one list again."""
    first, _, last = words.rpartition(" ")
    following, _, rest = others.partition(" ")
    name, is_list, many = list_word(last)
    next_name, next_is_list, next_many = list_word(following)
    if name == next_name and (is_list or next_is_list or name == "_"):
        return f"{first} {name}*{many + next_many} {rest}".rstrip()
    return f"{words} {others}".rstrip()


def list_word(word: str) -> tuple[str, bool, int]:
    """The name of a field, whether it is a list, and how many children it has."""
    name, star, count = word.partition("*")
    return name.removesuffix("[]"), bool(star) or name.endswith("[]"), int(count or 1)


def unspelled(tree: Tree) -> Tree:
    """The tree with whole leaves again, whichever model spelled them."""

    def whole(node: Tree, children: list[Tree]) -> Tree:
        if not children:
            return node
        if split_leaf(node.label)[1] is not None and not is_piece(node.label):
            return Tree(node.label + "".join(_texts(children)))
        return Tree(node.label, children)

    return tree.fold(whole)


def _texts(pieces: Iterable[Tree]) -> Iterator[str]:
    for piece in pieces:
        if piece.label == REST:
            yield from _texts(piece.children)
        else:
            yield split_leaf(piece.label)[1] or piece.label
