"""Spelled leaves: names that no dictionary has, as pieces that it has.

The text of a leaf is cut where its case changes, at digits and at marks; words of letters are then cut by byte pair
encoding (subword-nmt) that was learned on the leaves. The pieces become the children of the leaf, so positions, arities
and search need nothing special: a leaf of n pieces has n + 1 symbols. The most frequent leaves stay whole.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from tree_fairseq.errors import CorruptFileError
from tree_fairseq.source_code.language import Language
from tree_fairseq.source_code.productions import CHAIN, MOST_CHILDREN, QUOTE, REST, leaf_label, parts, split_leaf
from tree_fairseq.support.python_versions import import_library
from tree_fairseq.trees.notations.notation import Notation
from tree_fairseq.trees.tree import Tree

_CUTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+|.", re.DOTALL)
_LETTERS = re.compile(r"[^\W\d_]{2,}")
FREQUENT_LEAF, FREQUENT_PRODUCTION = 5, 2
"""How often training has what stays whole, at least."""
CHARACTERS = [chr(code) for code in range(32, 127)]
"""Pieces that every dictionary of spelled leaves has, so all names in ASCII can be written."""


class Spelling:
    """How programs are written with the symbols of a dictionary.

    A leaf that is not among the frequent ones is spelled. A production that training hardly has is written in parts,
    so programs may have combinations of fields, chains and lengths of lists that no training program has.

    Args:
        merges: the lines of a model of subword-nmt
        whole: labels of leaves that stay whole
        productions: labels, without texts, that stay whole
        known: pieces that training has; others are cut into characters
    """

    def __init__(self, merges: str, whole: Iterable[str], productions: Iterable[str], known: Iterable[str]):
        self.merges, self.whole, self.productions = merges, frozenset(whole), frozenset(productions)
        self.known = frozenset(known)
        self._pieces: dict[str, list[str]] = {}
        # subword-nmt marks all pieces of a word but the last.
        self._vocabulary = {*self.known, *(f"{piece}@@" for piece in self.known)} or None

    @classmethod
    def of_text(cls, programs: Sequence[tuple[Spelling, Iterable[str]]], words: Mapping[str, int]) -> Spelling:
        """How words of a text are cut, so that names can be copied from them leaf by leaf or piece by piece.

        What is whole in programs, and frequent words that programs do not spell, stay whole.

        Args:
            programs: the spellings of the programs beside the text, and all labels of training
            words: how often training has each word, as :func:`words_of` finds them
        """
        whole, spelled = set[str](), set[str]()
        for spelling, labels in programs:
            for label in labels:
                (whole if label in spelling.whole else spelled).add(split_leaf(label)[1] or "")
        whole |= {word for word, count in words.items() if count >= FREQUENT_LEAF} - spelled
        return cls(programs[0][0].merges, whole, (), set().union(*(spelling.known for spelling, _ in programs)))

    def cut_text(self, text: str) -> list[str]:
        """The pieces of a text without blanks, as :meth:`of_text` says."""
        parts = ([word] if word in self.whole else self.pieces(word) for word in words_of(text))
        return list(itertools.chain.from_iterable(parts))

    def pieces(self, text: str) -> list[str]:
        """The pieces of a text, which joined together are the text."""
        if text not in self._pieces:
            cut = ([piece] if piece in self.known else list(piece) for piece in self._cut(text))
            self._pieces[text] = list(itertools.chain.from_iterable(cut))
        return self._pieces[text]

    def _cut(self, text: str) -> Iterator[str]:
        for word in _CUTS.findall(text):
            if _LETTERS.fullmatch(word) and len(self.merges.splitlines()) > 1:
                yield from (piece.removesuffix("@@") for piece in self._encoder.segment_tokens([word]))
            else:
                yield from word if _LETTERS.fullmatch(word) else [word]

    @cached_property
    def _encoder(self):
        library = import_library("subword_nmt.apply_bpe", "code", "--leaf-merges")
        return library.BPE(io.StringIO(self.merges), vocab=self._vocabulary)

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

    def save(self, path: str | os.PathLike) -> None:
        """Writes the model to a file."""
        with open(path, "w", encoding="utf-8") as file:
            content = {name: sorted(getattr(self, name)) for name in ("whole", "productions", "known")}
            json.dump({"merges": self.merges.splitlines(), **content}, file, ensure_ascii=False, indent=0)

    @classmethod
    def load(cls, path: str | os.PathLike) -> Spelling:
        """Reads the model of a file; raises CorruptFileError for another file."""
        try:
            with open(path, encoding="utf-8") as file:
                content = json.load(file)
            return cls("\n".join(content["merges"]) + "\n", content["whole"], content["productions"], content["known"])
        except (ValueError, KeyError, TypeError, UnicodeDecodeError):
            raise CorruptFileError(f"{path}: not a model of spelled leaves; preprocess the data again") from None


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

    def leaf_text(self, label: str) -> str | None:
        """The text of a leaf or of a piece."""
        return self.language.leaf_text(label)


def words_of(text: str) -> list[str]:
    """The words of a text: letters, digits and underscores; every other mark alone."""
    return re.findall(r"\w+|[^\w\s]", text)


def learn_spellings(
    programs: Mapping[str, Mapping[str, int]], merges: int, words: Mapping[str, int] | None = None
) -> dict[str, Spelling]:
    """Learns so many merges from the names of all programs and from words of text, so all of them have the same pieces.

    Args:
        programs: how often each label occurs in the training trees of a language
        words: how often each word occurs in the text beside them
    """
    names, spelled = Counter(words), set(words or ())
    whole: dict[str, set[str]] = {lang: set() for lang in programs}
    productions: dict[str, Counter[str]] = {lang: Counter() for lang in programs}
    for lang, counts in programs.items():
        for label, count in counts.items():
            text = split_leaf(label)[1] or ""
            names[text] += count
            productions[lang][_production(label)] += count
            if text and count >= FREQUENT_LEAF:
                whole[lang].add(label)
            else:
                spelled.add(text)
    letters: Counter[str] = Counter()
    for text, count in names.items():
        for word in filter(_LETTERS.fullmatch, _CUTS.findall(text)):
            letters[word] += count
    cut = Spelling(_learned_merges(letters, merges), (), (), ())
    known = {piece for text in spelled for piece in cut._cut(text)}
    frequent = {
        lang: [each for each, count in found.items() if count >= FREQUENT_PRODUCTION]
        for lang, found in productions.items()
    }
    return {lang: Spelling(cut.merges, whole[lang], frequent[lang], known) for lang in programs}


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
