"""Subjects and their verbs in constituency trees: what the words before a verb have to tell of its number.

Trees have the Penn treebank's tags (and no need of function tags). As in Linzen, Dupoux and Goldberg (2016), who read them off
dependencies, only verbs count whose subject is a noun that stands before them and whose form shows its number, and a pair
whose numbers differ ("a number of books are") is left out.
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
        words: of the sentence
        subject: position of the subject's head
        verb: position of the verb
        number: of both, `SINGULAR` or `PLURAL`
        attractors: common nouns of the other number between them
    """

    words: Sequence[str]
    subject: int
    verb: int
    number: str
    attractors: int

    @property
    def prefix(self) -> list[str]:
        """The words before the verb: all that a model may see."""
        return list(self.words[: self.verb])


@dataclass(frozen=True)
class _Node:
    """A constituent in its sentence: its parent's number in preorder (-1 at the root), its place among the children, its first leaf."""

    tree: Tree
    parent: int
    place: int
    start: int


def verb_number(tag: str, word: str) -> str | None:
    """The number that a finite verb's form shows; None where it shows none (``walked``, ``can``) or is first person (``am``)."""
    word = word.lower()
    if tag == "VBD":
        return _PAST.get(word)
    return None if word in ("am", "'m", "’m") else _PRESENT.get(tag)


def agreements(forest: Forest, subjects: dict[str, str] = COMMON_NOUNS) -> Iterator[Agreement]:
    """The verbs whose subjects precede them, from left to right.

    A verb's subject is the last noun phrase before its verb phrase in the same clause. A verb that follows another finite one
    in its clause (``sleeps and eats``) does not count: the first tells its number.

    Args:
        forest: trees of one or more sentences
        subjects: tags of the subjects' heads that count, with their numbers
    """
    for tree in forest:
        yield from _agreements(tree, subjects)


def _agreements(tree: Tree, subjects: dict[str, str]) -> Iterator[Agreement]:
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
        if head is None or subjects.get(tags[head]) != form:
            continue
        if any(tags[position] in _FINITE for position in range(end, node.start)):
            continue
        between = (COMMON_NOUNS.get(tags[position], form) for position in range(head + 1, node.start))
        yield Agreement(words, head, node.start, form, sum(other != form for other in between))


def _placed(tree: Tree) -> list[_Node]:
    """All constituents in preorder, preterminals included."""
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
    """The last noun phrase before the verb's topmost verb phrase in its clause; None where the clause has none there."""
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
    """Position of a noun phrase's head, None where it is no noun, and the position after the phrase.

    The last noun (or nominal phrase) among the children; without one that of the first noun phrase: ``(NP (NP keys) (PP to doors))``.
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
