"""Spelled leaves: names that no dictionary has, as pieces that it has.

The text of a leaf is cut into pieces (see :mod:`tree_fairseq.trees.name_pieces`). They become the children of the leaf,
so positions, arities and search need nothing special: a leaf of n pieces has n + 1 symbols. The most frequent leaves
stay whole.
"""

from __future__ import annotations

import contextlib
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tree_fairseq.source_code.language import Language
from tree_fairseq.source_code.productions import CHAIN, MOST_CHILDREN, QUOTE, REST, leaf_label, parts, split_leaf
from tree_fairseq.support.python_versions import import_library
from tree_fairseq.trees.name_pieces import NamePieces, words_of, words_of_letters
from tree_fairseq.trees.notations.notation import Notation
from tree_fairseq.trees.tree import Tree

FREQUENT_LEAF, FREQUENT_PRODUCTION = 5, 2  # how often training has what stays whole, at least
CHARACTERS = [chr(code) for code in range(32, 127)]
"""Pieces that every dictionary of spelled leaves has, so all names in ASCII can be written."""


class Spelling(NamePieces):
    """How programs are written with the symbols of a dictionary.

    A leaf that is not among the frequent ones is spelled. A production that training hardly has is written in parts,
    so programs may have combinations of fields, chains and lengths of lists that no training program has.

    Args:
        merges: the lines of a model of subword-nmt
        whole: labels of leaves that stay whole
        known: pieces that training has; others are cut into characters
        productions: labels, without texts, that stay whole
    """

    LISTS = ("whole", "known", "productions")

    def __init__(self, merges: str, whole: Iterable[str], known: Iterable[str], productions: Iterable[str]):
        super().__init__(merges, known)
        self.whole, self.productions = frozenset(whole), frozenset(productions)

    @staticmethod
    def of_text(spellings: Sequence[Spelling]) -> NamePieces:
        """How the text beside programs is cut, so that names can be copied from it leaf by leaf or piece by piece."""
        return NamePieces(spellings[0].merges, set().union(*(spelling.known for spelling in spellings)))

    def spell(self, tree: Tree) -> Tree:
        """The tree as the dictionary has it."""

        def spelled(node: Tree, children: list[Tree]) -> Tree:
            head, text = split_leaf(node.label)
            if text and node.label not in self.whole:
                return self._in_parts(leaf_label(head, ""), _piece_trees(self.pieces(text)))
            return self._in_parts(node.label, children)

        return tree.fold(spelled)

    def _in_parts(self, label: str, children: Sequence[Tree]) -> Tree:
        """The node, or several nodes if its production is not known."""
        head, text = split_leaf(label)
        if _production(label) not in self.productions:
            above, is_chain, below = label.partition(CHAIN)
            if is_chain and len(above) < len(head):
                return self._in_parts(above, [self._in_parts(below, children)])
            if text is None:
                return parts(label, children)
        return Tree(label, children)


def _piece_trees(pieces: list[str]) -> list[Tree]:
    trees = [Tree(QUOTE + piece) for piece in pieces]
    if len(trees) > MOST_CHILDREN:
        last = len(trees) // (MOST_CHILDREN - 1) * (MOST_CHILDREN - 1)
        rest = trees[last:]
        for first in range(last - MOST_CHILDREN + 1, -1, 1 - MOST_CHILDREN):
            rest = [*trees[first : first + MOST_CHILDREN - 1], Tree(REST, rest)] if rest else trees[first:last]
        return rest
    return trees


class SpelledNotation(Notation):
    """A language whose trees are spelled with a model: the form that a folder has."""

    def __init__(self, language: Language, spelling: Spelling):
        self.language, self.spelling = language, spelling

    def _read(self, line: str) -> Tree:
        return self.spelling.spell(self.language.read(line))

    def write(self, tree: Tree) -> str:
        """Writes a program."""
        return self.language.write(tree)

    def accepts(self, tree: Tree) -> bool:
        """Whether the language's own parser reads what is written for a tree."""
        return self.language.accepts(tree)

    def leaf_text(self, label: str) -> str | None:
        """The text of a leaf or of a piece."""
        return self.language.leaf_text(label)


def learn_spellings(
    programs: Mapping[str, Mapping[str, int]], merges: int, words: Mapping[str, int] | None = None
) -> dict[str, Spelling]:
    """Learns so many merges from the names of all programs and from words of text, so all of them have the same pieces.

    A name that a frequent leaf has is one piece in all other leaves and in text, and so is a frequent word of text that
    no program has. ``programs`` say how often each label occurs in the training trees of a language, ``words`` how
    often each word occurs in the text beside them.
    """
    names, kept, spelled = Counter(words), set[str](), set[str]()
    whole: dict[str, set[str]] = {lang: set() for lang in programs}
    productions: dict[str, Counter[str]] = {lang: Counter() for lang in programs}
    for lang, counts in programs.items():
        for label, count in counts.items():
            text = split_leaf(label)[1] or ""
            names[text] += count
            productions[lang][_production(label)] += count
            if text and count >= FREQUENT_LEAF:
                whole[lang].add(label)
                kept.update([text] if words_of(text) == [text] else [])
            else:
                spelled.add(text)
    letters: Counter[str] = Counter()
    for text, count in names.items():
        for word in words_of_letters(text):
            letters[word] += count
    cut = NamePieces(_learned_merges(letters, merges), ())
    kept |= {word for word, count in (words or {}).items() if count >= FREQUENT_LEAF and word not in spelled}
    known = kept.union(*(cut.cut(text) for text in {*spelled, *(words or ())} - kept))
    frequent = {
        lang: [each for each, count in found.items() if count >= FREQUENT_PRODUCTION]
        for lang, found in productions.items()
    }
    return {lang: Spelling(cut.merges, whole[lang], known, frequent[lang]) for lang in programs}


def _production(label: str) -> str:
    """The label without the text of a leaf."""
    head, text = split_leaf(label)
    return head if text is None else leaf_label(head, "")


def _learned_merges(counts: Mapping[str, int], merges: int) -> str:
    if not counts:
        return "#version: 0.2\n"
    library = import_library("subword_nmt.learn_bpe", "code", "--leaf-merges")
    words = io.StringIO("".join(f"{word} {count}\n" for word, count in sorted(counts.items())))
    model = io.StringIO()
    with contextlib.redirect_stderr(io.StringIO()):
        library.learn_bpe(words, model, merges, is_dict=True)
    return model.getvalue()
