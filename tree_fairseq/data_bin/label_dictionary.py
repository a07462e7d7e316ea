"""The dictionary of node labels, which has the labels of the parser's inventory and those of the training trees."""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from fairseq.data import Dictionary

from tree_fairseq.errors import CorruptFileError, MissingTreesError, TreeFormatError
from tree_fairseq.trees.transforms import join_labels

RESERVED_LABELS = ("<s>", "<pad>", "</s>", "<unk>")


def label_dictionary_name(lang: str) -> str:
    """Returns the file name of a language's label dictionary."""
    return f"dict.label.{lang}.txt"


def build_label_dictionary(
    inventory: Iterable[str], label_counts: Mapping[str, int], chain_counts: Mapping[tuple[str, ...], int]
) -> Dictionary:
    """Makes a dictionary of every label that a node can have, the most frequent first, equally frequent ones by name.

    Args:
        inventory: labels that the parser can give, seen in training data or not
        label_counts: labels of the training trees and how often they occur
        chain_counts: unary chains of the training trees, from the top down, and how often they occur; each gets the
            joined label that :func:`tree_fairseq.trees.transforms.join_labels` makes of it

    Raises:
        TreeFormatError: a label has the name of one of the dictionary's special symbols.
    """
    counts = Counter(dict.fromkeys(inventory, 0))
    counts.update(label_counts)
    for chain, count in chain_counts.items():
        counts[join_labels(chain)] += count
    dictionary = Dictionary()
    for label in sorted(counts):
        if label in RESERVED_LABELS:
            raise TreeFormatError(
                f"a constituent is labelled {label}, which names a special symbol of the label dictionary",
                hint="Give the label another name.",
            )
        dictionary.add_symbol(label, counts[label])
    dictionary.finalize(padding_factor=1)
    return dictionary


def load_label_dictionary(path: str | os.PathLike) -> Dictionary:
    """Reads a label dictionary.

    Raises:
        MissingTreesError: there is no such file.
        CorruptFileError: the file is not a dictionary.
    """
    try:
        text = Path(path).read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise MissingTreesError(f"there is no label dictionary {path}") from None
    except UnicodeDecodeError as error:
        raise CorruptFileError(f"{path} is not a label dictionary: {error}") from None
    try:
        dictionary = Dictionary()
        dictionary.add_from_file(io.StringIO(text))
        return dictionary
    except (ValueError, RuntimeError) as error:
        raise CorruptFileError(f"{path} is not a label dictionary: {error}") from None


def save_label_dictionary(dictionary: Dictionary, path: str | os.PathLike) -> None:
    """Writes a label dictionary in fairseq's format."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        dictionary.save(file)


class ChainLabels:
    """Looks up the joined labels of unary chains.

    Args:
        dictionary: a label dictionary

    Attributes:
        unknown: how often each chain was looked up that the dictionary lacks, by joined label
    """

    def __init__(self, dictionary: Dictionary):
        self._dictionary = dictionary
        self._known: dict[bytes, int] = {}
        self.unknown: Counter[str] = Counter()

    def lookup(self, labels: np.ndarray, chain_start: np.ndarray, kept: np.ndarray) -> np.ndarray:
        """Returns the label ids of the kept nodes; labels of a chain are joined from the top down.

        Args:
            labels: ids of all nodes of a forest in preorder, ``[M]`` int
            chain_start: index of the top of each kept node's chain, ``[K]`` int
            kept: index of the kept nodes, the lowest of their chains, ``[K]`` int

        Returns:
            ``[K]`` int32; ``<unk>`` for a chain that is not in the dictionary
        """
        labels = np.ascontiguousarray(labels, np.int32)
        joined = labels[kept]
        for node in np.flatnonzero(chain_start < kept):
            chain = labels[chain_start[node] : kept[node] + 1]
            joined[node] = self._id(chain)
        return joined

    def _id(self, chain: np.ndarray) -> int:
        key = chain.tobytes()
        label_id = self._known.get(key)
        if label_id is None or label_id == self._dictionary.unk():
            name = self._name(chain.tolist())
            label_id = self._known[key] = self._dictionary.index(name)
            if label_id == self._dictionary.unk():
                self.unknown[name] += 1
        return label_id

    def _name(self, chain: Sequence[int]) -> str:
        return join_labels([self._dictionary[label] for label in chain])
