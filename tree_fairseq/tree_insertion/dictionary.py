"""Dictionaries of the labels of target trees, and the words and sequences of ids that represent the trees.

In token files a target is the labels of its nodes in preorder. Characters that cannot be part of a word are escaped as
:mod:`tree_fairseq.trees.symbols` does. Numbers tell equal labels apart: the k-th node of a label is ``label::k``.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch
from fairseq.data import Dictionary
from torch import Tensor
from torch.nn import functional

from tree_fairseq.data_bin.symbol_dictionary import TreeDictionary
from tree_fairseq.data_bin.tree_store import RESERVED_LABELS
from tree_fairseq.errors import DictionaryMismatchError, ReservedMarkError, SymbolTreeError
from tree_fairseq.tree_insertion.target import ROOT_LABEL
from tree_fairseq.trees.notations import Notation
from tree_fairseq.trees.symbols import tree_of_parents
from tree_fairseq.trees.text import escape_label, unescape_label
from tree_fairseq.trees.tree import Tree

NUMBER_MARK = "::"
RESERVED = frozenset({ROOT_LABEL, *RESERVED_LABELS})
"""Labels that no tree may have: that of the first root, and the special symbols of fairseq's dictionaries."""

_NUMBERED = re.compile(rf"(.+){NUMBER_MARK}[1-9][0-9]*")
_FILLING = "madeupword"  # prefix of the symbols that fairseq adds to pad a dictionary


def words_of(tree: Tree) -> list[str]:
    """Returns the words of all nodes, in preorder; raises ReservedMarkError if a label cannot be a word."""
    words = []
    seen: Counter[str] = Counter()
    for label in (node.label for node in tree.preorder()):
        if label not in seen and (label in RESERVED or NUMBER_MARK in label):
            hint = f"Give it another name: {', '.join(sorted(RESERVED))} and names with {NUMBER_MARK} cannot be labels."
            raise ReservedMarkError(f"the label {label!r} is reserved", hint=hint)
        seen[label] += 1
        words.append(f"{escape_label(label)}{NUMBER_MARK}{seen[label]}")
    return words


def label_of(word: str) -> str:
    """Returns the label of a word; ``<unk>`` and the root's label are words themselves."""
    if word in RESERVED:
        return word
    found = _NUMBERED.fullmatch(word)
    return unescape_label(found[1] if found else word)


def tree_of_words(words: Sequence[str], parents: Sequence[int]) -> Tree:
    """Returns the tree whose nodes have these words and parents, in preorder; the root's parent does not matter."""
    return tree_of_parents([label_of(word) for word in words], parents)


class InsertionDictionary(TreeDictionary):
    """A dictionary of labels with two brackets, so that a sequence of ids represents a tree.

    A node with children is ``open label child … close``, a leaf is ``label``. Hypotheses and the targets of batches are
    such sequences. The ids of the brackets follow those of the labels. The brackets have no embeddings, and tree models
    never predict them. Decoding begins with ``root``, the first label; ``keep``, the id of EOS, is predicted for a slot
    in which nothing is inserted. ``open`` and ``close`` are the first brackets.
    """

    def __init__(self, dictionary: Dictionary, notation: Notation):
        super().__init__(dictionary, notation)
        self.root = self.indices[ROOT_LABEL]
        self.keep = self.eos_index
        self.open, self.close = len(self), len(self) + 1

    @functools.cached_property
    def label_ids(self) -> np.ndarray:
        """The ids of all labels that can be inserted, ascending; ``<unk>`` cannot."""
        ids = range(self.nspecial, len(self))
        return np.array([index for index in ids if index != self.root and not self[index].startswith(_FILLING)])

    def sequence(self, labels: Sequence[int], parents: Sequence[int]) -> Tensor:
        """Writes a tree, ``[M]`` labels and parents, as one sequence of ids ``[T]`` int64.

        Its first node, the root that decoding begins with, is left out if it has exactly one child.
        """
        counts = np.bincount(np.asarray(parents)[1:], minlength=len(labels)).tolist()
        ids: list[int] = []
        missing: list[int] = []  # how many children, in each open bracket
        for place in range(counts[0] == 1, len(labels)):
            if missing:
                missing[-1] -= 1
            if counts[place]:
                ids.append(self.open)
                missing.append(counts[place])
            ids.append(int(labels[place]))
            while missing and not missing[-1]:
                ids.append(self.close)
                missing.pop()
        return torch.tensor(ids)

    def tree(self, ids: Iterable[int]) -> Tree:
        """Reads a tree without numbers."""
        found: list[Tree] = []
        opened: list[list[Tree]] = []  # what each open bracket has so far: its node, then the children of that
        for index in self.kept(ids):
            is_bracket, needs_label = index in (self.open, self.close), bool(opened) and not opened[-1]
            if found or (is_bracket and needs_label) or (index == self.close and not opened):
                raise SymbolTreeError("brackets do not make one tree")
            if index == self.open:
                opened.append([])
                continue
            node, *children = opened.pop() if is_bracket else [Tree(label_of(self[index]))]
            (opened[-1] if opened else found).append(Tree(node.label, children))
        if not found:
            raise SymbolTreeError("the tree is not complete")
        return found[0]

    def text(self, index: int) -> str | None:
        is_label = index < self.open and index != self.root
        return self.notation.leaf_text(label_of(self[index])) if is_label else None

    def __getitem__(self, index: int) -> str:
        return {self.open: "(", self.close: ")"}.get(index) or super().__getitem__(index)


def build_insertion_dictionary(
    counts: Mapping[str, int], lines: int, *, threshold: int, nwords: int, padding_factor: int
) -> Dictionary:
    """Builds the dictionary of labels, the root's first, from the counts of words in a number of ``lines``."""
    labels = Dictionary()
    for word, count in sorted(counts.items()):
        labels.add_symbol(word, count)
    labels.finalize(threshold=threshold, nwords=nwords, padding_factor=1)
    dictionary = Dictionary()
    dictionary.add_symbol(ROOT_LABEL, lines)
    for index in range(labels.nspecial, len(labels)):
        dictionary.add_symbol(labels[index], labels.count[index])
    dictionary.pad_to_multiple_(padding_factor)
    return dictionary


def require_labels(dictionary: Dictionary, place: str) -> None:
    """Raises DictionaryMismatchError unless the dictionary of a file has the labels of trees."""
    if len(dictionary) <= dictionary.nspecial or dictionary[dictionary.nspecial] != ROOT_LABEL:
        raise DictionaryMismatchError(
            f"{place} is not a dictionary of the labels of trees, it does not begin with {ROOT_LABEL}: make one with "
            "fairseq-preprocess --task tree_insertion"
        )


class SequenceDictionary(InsertionDictionary):
    """The dictionary of a sequence model: labels, and brackets that have embeddings and are predicted.

    Brackets are numbered like labels, so that a sequence model can tell them apart: the k-th opening bracket of a
    sequence is ``open + 2 (k - 1)``, the k-th closing bracket ``close + 2 (k - 1)``. There are ``numbers`` of each; the
    last number is shared by all further brackets.
    """

    def __init__(self, labels: InsertionDictionary, numbers: int):
        super().__init__(labels, labels.notation)
        self.__dict__.pop("label_ids", None)  # those of the labels alone, if they are cached
        self.labels = labels
        self.numbers = numbers
        for _ in range(numbers):
            for bracket in "()":
                self.add_symbol(bracket, overwrite=True)

    @functools.cached_property
    def label_ids(self) -> np.ndarray:
        """The ids of all labels and brackets that can be inserted, ascending."""
        return np.concatenate([self.labels.label_ids, np.arange(self.open, len(self))])

    def numbered(self, tokens: Tensor) -> Tensor:
        """Numbers the brackets of sequences ``[…, T]`` of :meth:`InsertionDictionary.sequence`."""
        for bracket in (self.open, self.close):
            is_own = tokens == bracket
            count = is_own.long().cumsum(-1).clamp(max=self.numbers)
            tokens = torch.where(is_own, bracket + 2 * (count - 1), tokens)
        return tokens

    def plain(self, tokens: Tensor) -> Tensor:
        """Removes the numbers of brackets; the inverse of :meth:`numbered`."""
        return torch.where(tokens >= self.open, self.open + (tokens - self.open) % 2, tokens)

    def balanced(self, tokens: Tensor, scores: Tensor) -> dict[str, Tensor]:
        """Completes the brackets of a predicted sequence ``[T]`` as in the evaluation of Lukovnikov & Fischer (2021).

        The sequence is cut at EOS. If it has more than one token, it is made to begin with an opening bracket. Missing
        closing brackets are added at the end, then missing opening brackets at the beginning. The result need not be a
        tree. An empty one is a lone EOS, which fairseq does not print: its BLEU score needs a token.

        Returns entries of a hypothesis: ``tokens`` ``[T']`` int64, brackets not numbered, and ``positional_scores``
        ``[T']``, the log-probabilities ``scores``, 0 for tokens that were added.
        """
        predicted = self.plain(tokens).tolist()
        ids = list(itertools.takewhile(lambda index: index != self.eos(), predicted))
        before = depth = int(len(ids) > 1 and ids[0] != self.open)
        for index in ids:
            depth += (index == self.open) - (index == self.close)
            if depth < 0:
                before += 1
                depth = 0
        completed = [self.open] * before + ids + [self.close] * depth or [self.eos()]
        # A lone EOS has its score if it was predicted.
        said = scores[: len(ids) or 1].cpu().float()
        positional = functional.pad(said, (before, len(completed) - before - len(said)))
        return {"tokens": torch.tensor(completed), "positional_scores": positional}

    def kept(self, ids: Iterable[int]) -> list[int]:
        return [index if index < self.open else self.open + (index - self.open) % 2 for index in super().kept(ids)]

    def __getitem__(self, index: int) -> str:
        return "()"[(index - self.open) % 2] if self.open <= index < len(self) else super().__getitem__(index)
