"""Dictionaries of the labels of trees that are decoded by insertions; ids are shown as the trees that they stand for."""

from __future__ import annotations

import copy
import functools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from fairseq.data import Dictionary
from torch import Tensor

from tree_fairseq.data_bin.label_dictionary import RESERVED_LABELS
from tree_fairseq.errors import DictionaryMismatchError, ReservedMarkError, SymbolTreeError
from tree_fairseq.tree_insertion.target import ROOT_LABEL
from tree_fairseq.trees.notations import Notation
from tree_fairseq.trees.symbols import escape_label, tree_of_parents, unescape_label
from tree_fairseq.trees.tree import Tree

# FROM data/insertion_labels: The labels of trees that are decoded by insertions as words of token files, numbered or not.
#
# The words of a tree are its labels in preorder; what cannot stand in a word is written as :mod:`tree_fairseq.trees.symbols` does. With
# numbers, the k-th node of a label is ``label::k``, so that a slot that may get one of several equal nodes has several answers.

NUMBER_MARK = "::"

RESERVED = frozenset({ROOT_LABEL, *RESERVED_LABELS})
"""Labels that no tree may have: that of the root that decoding begins with, and the symbols of every dictionary of fairseq's."""

_NUMBERED = re.compile(rf"(.+){NUMBER_MARK}[1-9][0-9]*")


@dataclass(frozen=True)
class LabelWords:
    """Turns the labels of a tree into words and back.

    Attributes:
        numbered: whether words are numbered
    """

    numbered: bool = True

    def encode(self, tree: Tree) -> list[str]:
        """The word of each node, in preorder.

        Raises:
            ReservedMarkError: a label is reserved, or holds what separates it from its number
        """
        words = []
        seen: Counter[str] = Counter()
        for node in tree.preorder():
            label = node.label
            if label not in seen:
                self._check(label)
            seen[label] += 1
            word = escape_label(label)
            words.append(f"{word}{NUMBER_MARK}{seen[label]}" if self.numbered else word)
        return words

    def label(self, word: str) -> str:
        """The label that a word stands for; ``<unk>`` and the root's stand for themselves."""
        if word in RESERVED:
            return word
        found = _NUMBERED.fullmatch(word) if self.numbered else None
        return unescape_label(found[1] if found else word)

    def decode(self, words: Sequence[str], parents: Sequence[int]) -> Tree:
        """The tree of nodes in preorder.

        Args:
            words: of the nodes
            parents: their parents' places, that of the root does not matter
        """
        return tree_of_parents([self.label(word) for word in words], parents)

    def is_word(self, symbol: str) -> bool:
        """Whether a symbol of a dictionary has the form of a word, as far as numbers go."""
        return not self.numbered or _NUMBERED.fullmatch(symbol) is not None

    def _check(self, label: str) -> None:
        if label in RESERVED:
            raise ReservedMarkError(
                f"the label {label!r} is reserved",
                hint=f"Give it another name: {', '.join(sorted(RESERVED))} cannot be labels.",
            )
        if self.numbered and NUMBER_MARK in label:
            raise ReservedMarkError(
                f"the label {label!r} contains {NUMBER_MARK!r}, which separates labels from their numbers",
                hint="Give it another name, or preprocess with --numbered-labels no.",
            )


_FILLING = "madeupword"
"""How fairseq calls the symbols that it fills dictionaries up with."""


class InsertionDictionary(Dictionary):
    """A dictionary of labels, and of two brackets beside them: with these a sequence of ids is a tree.

    A node with children is ``open label child … close``, one without is ``label``. The brackets' ids lie behind those of the labels;
    they have no embedding and are never predicted by insertions. An answer of a decoder and the target of a batch are such sequences.

    Args:
        dictionary: the same symbols as fairseq loaded them, that of the root first
        words: how labels are written
        notation: how trees are written
    """

    def __init__(self, dictionary: Dictionary, words: LabelWords, notation: Notation):
        self.__dict__.update(copy.deepcopy(dictionary.__dict__))
        self.words = words
        self.notation = notation

    @property
    def root(self) -> int:
        """Id of the root that decoding begins with."""
        return self.indices[ROOT_LABEL]

    @property
    def keep(self) -> int:
        """Id of the answer of a slot in which nothing is to be inserted: that of EOS."""
        return self.eos_index

    @property
    def open(self) -> int:
        """Id of an opening bracket."""
        return len(self)

    @property
    def close(self) -> int:
        """Id of a closing bracket."""
        return len(self) + 1

    @functools.cached_property
    def label_ids(self) -> np.ndarray:
        """The ids of all labels that can be inserted, ascending, ``<unk>`` not among them."""
        return np.array(
            [
                index
                for index in range(self.nspecial, len(self))
                if index != self.root and not self[index].startswith(_FILLING)
            ]
        )

    def sequence(self, labels: Sequence[int], parents: Sequence[int]) -> Tensor:
        """A tree as one sequence.

        Args:
            labels: ``[N]`` ids of the nodes in preorder, that of the root that decoding begins with first
            parents: ``[N]`` places of their parents

        Returns:
            ``[L]`` int64, of the tree under that root; with the root where it has not just one child, as at the start of decoding
        """
        counts = np.bincount(np.asarray(parents)[1:], minlength=len(labels)).tolist()
        ids: list[int] = []
        # Children that are still to come under each open bracket.
        waiting: list[int] = []
        for place in range(counts[0] == 1, len(labels)):
            if waiting:
                waiting[-1] -= 1
            if counts[place]:
                ids.append(self.open)
                waiting.append(counts[place])
            ids.append(int(labels[place]))
            while waiting and not waiting[-1]:
                ids.append(self.close)
                waiting.pop()
        return torch.tensor(ids)

    def tree(self, ids: Iterable[int]) -> Tree:
        """The tree that a sequence stands for, labels without numbers; padding and EOS are left out.

        Raises:
            SymbolTreeError: it stands for none
        """
        labels: list[int] = []
        parents: list[int] = []
        # Nodes whose brackets are open; -1 where the label after a bracket is still to come.
        path: list[int] = []
        complete = False
        for index in self._kept(ids):
            is_bracket = index in (self.open, self.close)
            if complete or (is_bracket and path and path[-1] < 0) or (index == self.close and not path):
                raise SymbolTreeError("brackets do not make one tree")
            if index == self.open:
                path.append(-1)
                continue
            if index == self.close:
                path.pop()
            elif path and path[-1] < 0:
                parents.append(path[-2] if len(path) > 1 else -1)
                path[-1] = len(labels)
                labels.append(index)
            else:
                parents.append(path[-1] if path else -1)
                labels.append(index)
            complete = not path
        if not complete:
            raise SymbolTreeError("the tree is not complete")
        return self.words.decode([self[label] for label in labels], parents)

    def string(
        self, tensor, bpe_symbol=None, escape_unk=False, extra_symbols_to_ignore=None, unk_string=None, **kwargs
    ) -> str:
        """Trees in the corpus's notation; words where ids make no tree."""
        if torch.is_tensor(tensor) and tensor.dim() == 2:
            return "\n".join(self.string(row, extra_symbols_to_ignore=extra_symbols_to_ignore) for row in tensor)
        ignored = set(extra_symbols_to_ignore or ())
        ids = [index for index in map(int, tensor) if index not in ignored]
        try:
            return self.notation.write(self.tree(ids))
        except SymbolTreeError:
            return " ".join(self[index] for index in self._kept(ids))

    def __getitem__(self, index: int) -> str:
        return {self.open: "(", self.close: ")"}.get(index) or super().__getitem__(index)

    def _kept(self, ids: Iterable[int]) -> list[int]:
        outside = (self.bos_index, self.pad_index, self.eos_index)
        return [index for index in map(int, ids) if index not in outside]


def build_insertion_dictionary(
    counts: Mapping[str, int], lines: int, *, threshold: int, nwords: int, padding_factor: int
) -> Dictionary:
    """A dictionary of labels, the root's first.

    Args:
        counts: how often each word of training trees occurs
        lines: number of trees
        threshold, nwords, padding_factor: as fairseq's dictionaries have them
    """
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


def require_labels(dictionary: Dictionary, words: LabelWords, place: str) -> None:
    """Makes sure that a dictionary is one of labels in this form.

    Args:
        dictionary: as fairseq loaded it
        words: how labels are to be written
        place: its file, for the message

    Raises:
        DictionaryMismatchError: it is not
    """
    if len(dictionary) <= dictionary.nspecial or dictionary[dictionary.nspecial] != ROOT_LABEL:
        raise DictionaryMismatchError(
            f"{place} is no dictionary of the labels of trees, it does not begin with {ROOT_LABEL}: make one with fairseq-preprocess "
            "--task tree_insertion"
        )
    labels = [symbol for symbol in dictionary.symbols[dictionary.nspecial + 1 :] if not symbol.startswith(_FILLING)]
    is_numbered = all(map(LabelWords(numbered=True).is_word, labels))
    if labels and is_numbered != words.numbered:
        made, asked = ("yes" if numbered else "no" for numbered in (is_numbered, words.numbered))
        raise DictionaryMismatchError(f"{place} was made with --numbered-labels {made}, this is {asked}")


# FROM data/sequence_dictionary: Dictionaries of sequence models of trees: labels and numbered brackets, and the way from what such a model says to a tree.


class SequenceDictionary(InsertionDictionary):
    """The V labels of a dictionary, and brackets that have embeddings and are predicted.

    Where labels are numbered brackets are, too: the k-th opening bracket of a sequence is ``open + 2 (k - 1)``, the k-th closing one
    ``close + 2 (k - 1)``; the last numbers stand for all that follow. So what a sequence model has to tell apart has names of its own.

    Args:
        labels: the dictionary
        numbers: how many opening and closing brackets there are, each; 1 where they are not numbered
    """

    def __init__(self, labels: InsertionDictionary, numbers: int):
        super().__init__(labels, labels.words, labels.notation)
        self.__dict__.pop("label_ids", None)  # those of the labels alone, if they were asked for
        self.labels = labels
        self.numbers = numbers
        for _ in range(numbers):
            for bracket in "()":
                self.add_symbol(bracket, overwrite=True)

    @property
    def open(self) -> int:
        """Id of the first opening bracket."""
        return self.labels.open

    @property
    def close(self) -> int:
        """Id of the first closing bracket."""
        return self.labels.close

    @functools.cached_property
    def label_ids(self) -> np.ndarray:
        """The ids of all that can be inserted in sequences: labels and brackets, ascending."""
        return np.concatenate([self.labels.label_ids, np.arange(self.open, len(self))])

    def numbered(self, tokens: Tensor) -> Tensor:
        """Numbers the brackets of sequences ``[…, L]`` of :meth:`InsertionDictionary.sequence`."""
        result = tokens
        for bracket in (self.open, self.close):
            is_own = tokens == bracket
            count = is_own.long().cumsum(-1).clamp(max=self.numbers)
            result = torch.where(is_own, bracket + 2 * (count - 1), result)
        return result

    def plain(self, tokens: Tensor) -> Tensor:
        """Takes the numbers of brackets away; the reverse of :meth:`numbered`."""
        return torch.where(tokens >= self.open, self.open + (tokens - self.open) % 2, tokens)

    def balanced(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """What a sequence model said with as many closing brackets as opening ones.

        It is cut at EOS. More than one token begin with an opening bracket. Closing brackets that are missing are put at the end,
        then opening ones at the beginning (Lukovnikov & Fischer's evaluation). The result need not be a tree.

        Args:
            tokens: ``[L]`` int64 ids, brackets numbered or not

        Returns:
            ``[L']`` int64, brackets not numbered; ``[L']`` bool, which of them were said
        """
        said = self.plain(tokens)
        ends = (said == self.eos()).nonzero().flatten().tolist()
        ids = said[: ends[0]].tolist() if ends else said.tolist()
        before = after = depth = 0
        if len(ids) > 1 and ids[0] != self.open:
            before = depth = 1
        for index in ids:
            depth += (index == self.open) - (index == self.close)
            if depth < 0:
                before += 1
                depth = 0
        after = depth
        completed = torch.tensor([self.open] * before + ids + [self.close] * after, dtype=torch.long)
        was_said = torch.zeros(len(completed), dtype=torch.bool)
        was_said[before : before + len(ids)] = True
        return completed, was_said

    def _kept(self, ids: Iterable[int]) -> list[int]:
        return [index if index < self.open else self.open + (index - self.open) % 2 for index in super()._kept(ids)]

    def __getitem__(self, index: int) -> str:
        return "()"[(index - self.open) % 2] if self.open <= index < len(self) else super().__getitem__(index)
