"""Finds subjects and their verbs in constituency trees.

Trees have the tags of the Penn treebank; function tags are not needed. The selection follows Linzen, Dupoux and
Goldberg (2016), who read it off dependencies: a verb counts if its subject is a noun before it and if its form shows
its number. A subject and a verb of different numbers ("a number of books are") are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_fairseq.trees.tree import Forest, Tree

SINGULAR, PLURAL = "singular", "plural"
NUMBERS = (SINGULAR, PLURAL)

COMMON_NOUNS = {"NN": SINGULAR, "NNS": PLURAL}
NOUNS = {**COMMON_NOUNS, "NNP": SINGULAR, "NNPS": PLURAL}

_PRESENT = {"VBZ": SINGULAR, "VBP": PLURAL}
_PAST = {"was": SINGULAR, "were": PLURAL}
_FINITE = {"VBZ", "VBP", "VBD", "MD"}
_CLAUSES = {"S", "SBAR", "SINV", "SQ", "SBARQ"}
_NOMINALS = {"NML", "NX", "NAC"}


@dataclass(frozen=True)
class Agreement:
    """A verb and its subject in a sentence.

    Attributes:
        words: words of the sentence
        subject: position of the head of the subject
        verb: position of the verb
        number: number of both, `SINGULAR` or `PLURAL`
        attractors: number of common nouns of the other number between them
    """

    words: Sequence[str]
    subject: int
    verb: int
    number: str
    attractors: int

    @property
    def prefix(self) -> list[str]:
        """The words before the verb, which are all that a model may read."""
        return list(self.words[: self.verb])


@dataclass(frozen=True)
class _Node:
    """A constituent: its parent in preorder (-1 at the root), its place among the children, and its first leaf."""

    tree: Tree
    parent: int
    place: int
    start: int


def verb_number(tag: str, word: str) -> str | None:
    """Returns the number that the form of a finite verb shows.

    None means that the form does not show it (``walked``, ``can``) or is first person (``am``).
    """
    word = word.lower()
    if tag == "VBD":
        return _PAST.get(word)
    return None if word in ("am", "'m", "’m") else _PRESENT.get(tag)


def agreements(forest: Forest) -> Iterator[Agreement]:
    """Yields the verbs whose subjects precede them, from left to right.

    The subject of a verb is the last noun phrase before its verb phrase in the same clause. A verb that follows another
    finite verb in its clause (``sleeps and eats``) is left out, because the first verb already shows the number.
    """
    for tree in forest:
        yield from _agreements(tree)


def _agreements(tree: Tree) -> Iterator[Agreement]:
    nodes = _placed(tree)
    words = tree.leaves()
    tags = {node.start: node.tree.label for node in nodes if node.tree.is_preterminal}
    for number, node in enumerate(nodes):
        if not node.tree.is_preterminal:
            continue
        form = verb_number(node.tree.label, words[node.start])
        phrase = None if form is None else _subject_phrase(nodes, number)
        if phrase is None:
            continue
        head, end = _head(phrase)
        if head is None or COMMON_NOUNS.get(tags[head]) != form:
            continue
        if any(tags[position] in _FINITE for position in range(end, node.start)):
            continue
        between = (COMMON_NOUNS.get(tags[position], form) for position in range(head + 1, node.start))
        yield Agreement(words, head, node.start, form, sum(other != form for other in between))


def _placed(tree: Tree) -> list[_Node]:
    """Returns all constituents in preorder, preterminals included."""
    nodes: list[_Node] = []
    leaf = 0
    stack = [(tree, -1, 0)]
    while stack:
        node, parent, place = stack.pop()
        if node.is_leaf:
            leaf += 1
            continue
        nodes.append(_Node(node, parent, place, leaf))
        own = len(nodes) - 1
        stack.extend((child, own, index) for index, child in reversed(list(enumerate(node.children))))
    return nodes


def _subject_phrase(nodes: list[_Node], number: int) -> _Node | None:
    """Returns the last noun phrase before the topmost verb phrase of a verb in its clause, or None."""
    node = nodes[number]
    parent = nodes[node.parent] if node.parent >= 0 else None
    if parent is None or parent.tree.label != "VP":
        return None
    while parent is not None and parent.tree.label == "VP":
        number, node = node.parent, parent
        parent = nodes[node.parent] if node.parent >= 0 else None
    if parent is None or parent.tree.label not in _CLAUSES:
        return None
    phrases = [place for place, child in enumerate(parent.tree.children[: node.place]) if child.label == "NP"]
    if not phrases:
        return None
    start = parent.start + sum(len(child.leaves()) for child in parent.tree.children[: phrases[-1]])
    return _Node(parent.tree.children[phrases[-1]], node.parent, phrases[-1], start)


def _head(phrase: _Node) -> tuple[int | None, int]:
    """Returns the position of the head of a noun phrase (None if it is not a noun) and the position after the phrase.

    The head is the last noun (or the head of the last nominal phrase) among the children. Without one it is the head
    of the first noun phrase, as in ``(NP (NP keys) (PP to doors))``.
    """
    tree, start = phrase.tree, phrase.start
    end = start + len(tree.leaves())
    while True:
        starts = [start]
        for child in tree.children:
            starts.append(starts[-1] + len(child.leaves()))
        nominal = [
            place for place, child in enumerate(tree.children) if child.label in NOUNS or child.label in _NOMINALS
        ]
        phrases = [place for place, child in enumerate(tree.children) if child.label == "NP"]
        if not nominal and not phrases:
            return None, end
        place = nominal[-1] if nominal else phrases[0]
        tree, start = tree.children[place], starts[place]
        if tree.is_preterminal:
            return (start if tree.label in NOUNS else None), end
