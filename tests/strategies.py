"""Hypothesis strategies for random words, labels, trees and forests."""

from __future__ import annotations

import re

from hypothesis import strategies as st

from tree_fairseq.trees.tree import Forest, Tree

LABELS = ("S", "NP", "VP", "PP", "SBAR", "ADJP", "NP-SBJ", "X")
TAGS = ("NN", "DT", "VBZ", "IN", ".", ",", "-LRB-", "$", "NN_sub")
PLAIN_WORDS = ("the", "man", "boat", "sleeps", ".", "über", "日本", "a", "1/2")

_AWKWARD = (
    "(", ")", "\\", "-LRB-", "-RRB-", "-LRB", "-RRB", "-", "LRB", "0=", "1=", "@@", "\u2581", "+", "é", "\u0301",
    "\ufeff", "\x00", "=",
)  # fmt: skip


def _visible(text: str) -> bool:
    return not any(character.isspace() or "\ud800" <= character <= "\udfff" for character in text)


def _is_discontinuous(tree: Tree) -> bool:
    """Whether all words have a number in front, as in formats of discontinuous trees, which brackets refuse."""
    leaves = tree.leaves()
    return len(leaves) > 1 and all(re.match(r"\d+=", leaf) for leaf in leaves)


def words() -> st.SearchStrategy[str]:
    """Any word that a tree can hold, often an unusual one."""
    fragments = st.sampled_from(_AWKWARD) | st.text(min_size=1, max_size=3)
    return st.sampled_from(PLAIN_WORDS) | st.lists(fragments, min_size=1, max_size=5).map("".join).filter(_visible)


def labels() -> st.SearchStrategy[str]:
    """Any label that a bracketed tree can hold."""
    awkward = st.text(min_size=1, max_size=4).filter(lambda text: _visible(text) and not set(text) & set("()"))
    return (
        st.sampled_from(LABELS + TAGS)
        | st.sampled_from(("@NP", "\\", "\\@", "A+B", "+", "\\+", "S\\+VP", "-", "="))
        | awkward
    )


def trees(
    word: st.SearchStrategy[str] | None = None, label: st.SearchStrategy[str] | None = None, max_words: int = 12
) -> st.SearchStrategy[Tree]:
    """Constituency trees in which every word is alone under its tag; unary chains are frequent."""
    word = words() if word is None else word
    label = labels() if label is None else label
    preterminals = st.builds(lambda tag, text: Tree(tag, (Tree(text),)), label, word)
    return st.recursive(
        preterminals,
        lambda subtrees: st.builds(Tree, label, st.lists(subtrees, min_size=1, max_size=4)),
        max_leaves=max_words,
    ).filter(lambda tree: not _is_discontinuous(tree))


def plain_trees(max_words: int = 12) -> st.SearchStrategy[Tree]:
    """Trees over ordinary words and labels, as treebanks have them."""
    return trees(st.sampled_from(PLAIN_WORDS), st.sampled_from(("S", "NP", "VP", "PP", "NN", "DT", "VBZ")), max_words)


def forests(
    tree: st.SearchStrategy[Tree] | None = None, min_trees: int = 0, max_trees: int = 3
) -> st.SearchStrategy[Forest]:
    """The trees of one line; ``()`` is among them unless ``min_trees`` forbids it."""
    return st.lists(trees() if tree is None else tree, min_size=min_trees, max_size=max_trees).map(tuple)


def any_trees() -> st.SearchStrategy[Tree]:
    """Trees of any shape: bare words, words beside constituents, empty labels, whitespace."""
    text = st.text(max_size=3) | st.sampled_from(LABELS)
    return st.recursive(
        st.builds(Tree, text), lambda subtrees: st.builds(Tree, text, st.lists(subtrees, max_size=3)), max_leaves=8
    )


def deep_tree(depth: int, branching: bool = True) -> Tree:
    """A right-branching tree (or, without branching, a unary chain) whose height is ``depth``."""
    tree = Tree("NN", (Tree("end"),))
    word = Tree("DT", (Tree("a"),))
    for _ in range(depth - 1):
        tree = Tree("X", (word, tree) if branching else (tree,))
    return tree


def symbol_trees(
    labels: tuple[str, ...] = ("f", "next_to:t", "$0", "x"), max_children: int = 4, max_leaves: int = 12
) -> st.SearchStrategy[Tree]:
    """Symbol trees: every node may have any label and up to ``max_children`` children."""
    label = st.sampled_from(labels)
    return st.recursive(
        label.map(Tree),
        lambda children: st.builds(Tree, label, st.lists(children, min_size=1, max_size=max_children)),
        max_leaves=max_leaves,
    )
