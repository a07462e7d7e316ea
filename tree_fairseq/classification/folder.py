"""Folders for classification: texts on the source side, classes on the target side, and the record of that in ``tree.json``."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from fairseq.data import Dictionary, data_utils
from torch import Tensor

from tree_fairseq.data_bin.label_dictionary import RESERVED_LABELS
from tree_fairseq.data_bin.manifest import Manifest, register_section
from tree_fairseq.data_bin.token_files import joined
from tree_fairseq.data_bin.tree_store import StoredTree, TreeStore
from tree_fairseq.errors import ClassError, CorruptFileError, MissingTreesError, UnknownClassError
from tree_fairseq.parsing.parsers import ParserOptions

TASK = "tree_classification"
"""The task of folders of texts with trees."""

SENTENCE_TASK = "tree_sentence_classification"
"""The task of folders of single sentences, or pairs of them, without trees."""

TEXT = "text"
"""The source "language"."""

CLASS = "class"
"""The target "language": its tokens are classes."""

INPUT_FORMATS = ("tsv", "trees")
SENTENCE_FORMATS = ("sentence", "pair")
SYMBOL_SOURCES = ("constant", "parser")

NODE_SYMBOL = "X"
"""What stands at a node in place of its class, where no parser gives it a label: a class is never an input."""

UNLABELLED = "-"
"""Stands for the class of a node that has none. It is no entry of the dictionary of classes, so it is stored as ``<unk>``."""

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


@dataclass
class ClassSplitRecord:
    """The classes of a split.

    Attributes:
        prefix: name of the token files without extension, such as ``train.text-class.class``
        lines: examples
        tokens: tokens of all lines, without EOS: one a line, or one a node of the full trees
        unlabelled: how many of them are ``-``
        files: names of the token files
    """

    prefix: str
    lines: int
    tokens: int
    unlabelled: int
    files: list[str]


@register_section("classification")
@dataclass
class ClassificationRecord:
    """What the examples of a folder are.

    Attributes:
        input_format: ``tsv``, a text and its class a line; or ``trees``, a bracketed tree a line whose node labels are classes;
            without trees ``sentence`` or ``pair``, one sentence or two and their label a line
        node_labels: whether every node has a token in its line of classes, in preorder; otherwise a line is the example's class alone
        node_symbols: what the nodes are labelled with as inputs: ``parser``, the labels of a parse; ``constant``, `NODE_SYMBOL`; or
            ``none`` without trees
        binarize: whether parses of new text are binarised, as the trees that were given were binary
        text_parser: options of the parser for new text in a folder of trees, None without one; a folder of texts has those of its side
        text_identity: name, version and model of that parser
        splits: by name
        regression: whether labels are numbers, written digit by digit (:mod:`tree_fairseq.classification.numbers`), and not classes
    """

    contents: ClassVar[str] = "classes"
    missing: ClassVar[str] = "preprocess with --task tree_classification"

    input_format: str
    node_labels: bool
    node_symbols: str
    binarize: bool = False
    text_parser: dict[str, Any] | None = None
    text_identity: dict[str, Any] | None = None
    splits: dict[str, ClassSplitRecord] = field(default_factory=dict)
    regression: bool = False

    @property
    def task(self) -> str:
        """The task of the folder."""
        return SENTENCE_TASK if self.input_format in SENTENCE_FORMATS else TASK

    @property
    def text_options(self) -> ParserOptions | None:
        """How new text is parsed in a folder of trees."""
        return None if self.text_parser is None else ParserOptions.from_json(self.text_parser)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> ClassificationRecord:
        """The record that ``dataclasses.asdict`` took apart."""
        return cls(
            **{**values, "splits": {name: ClassSplitRecord(**split) for name, split in values["splits"].items()}}
        )

    def dictionaries(self, source_lang: str) -> list[str]:
        """The dictionary of classes, once a split has classes."""
        return [f"dict.{CLASS}.txt"] if self.splits else []


def class_order(name: str) -> tuple[int, float, str]:
    """Sorts classes: numbers as numbers, then names."""
    return (0, float(name), name) if _NUMBER.fullmatch(name) else (1, 0.0, name)


def check_class(name: str, path: str | os.PathLike | None = None, line: int | None = None) -> str:
    """The name of a class, if it can be an entry of a dictionary.

    Raises:
        ClassError: it is one of the dictionary's special symbols.
    """
    if name in RESERVED_LABELS:
        raise ClassError(
            f"a class is called {name}, which names a special symbol of the dictionary",
            path,
            line,
            hint="Give it another name.",
        )
    return name


def require_known_class(
    name: str, known: Iterable[str], path: str | os.PathLike | None = None, line: int | None = None
) -> None:
    """Makes sure that a class is known; that there may be none (`UNLABELLED`) is not judged here.

    Raises:
        UnknownClassError: otherwise.
    """
    if name != UNLABELLED and name not in known:
        raise UnknownClassError(
            f"{name!r} is no class, the classes are {', '.join(sorted(known, key=class_order))}",
            path,
            line,
            hint=f"A class has to occur in train; a node without a class is labelled {UNLABELLED}.",
        )


# FROM data/classification_split: The files of a split of a folder for classification.


class ClassificationSplit(NamedTuple):
    """The examples of a split.

    Attributes:
        tokens: leaves of each, with EOS
        trees: full trees of each
        classes: tokens of the classes of each, with EOS; None where the split was preprocessed without
        leaves: number of leaves of each, ``[examples]``
        parts: the files that they come from and the number of their lines, in order
    """

    tokens: Sequence[Tensor]
    trees: Sequence[StoredTree]
    classes: Sequence[Tensor] | None
    leaves: np.ndarray
    parts: list[tuple[str, int]]

    def place(self, index: int) -> tuple[str, int]:
        """The file of an example, and its line from 1."""
        for path, count in self.parts:
            if index < count:
                return path, index + 1
            index -= count
        raise IndexError(index)


def load_split(
    folder: Path,
    split: str,
    combine: bool,
    text_dictionary: Dictionary,
    class_dictionary: Dictionary,
    dataset_impl: str | None,
) -> ClassificationSplit:
    """Opens the files of a split and makes sure that they belong together, as far as that is quickly done.

    Args:
        folder: where they are
        split: name of the first part
        combine: whether there may be more parts than one: ``train``, ``train1``, ...
        text_dictionary, class_dictionary: of the tokens
        dataset_impl: kind of the token files; None to find it out

    Raises:
        MissingTreesError: the folder has none for the split.
        CorruptFileError, DictionaryMismatchError: they do not belong together.
    """
    manifest = Manifest.load(folder)
    known = manifest.side(TEXT).splits
    numbers = itertools.count() if combine else [0]
    names = list(itertools.takewhile(known.__contains__, (f"{split}{number or ''}" for number in numbers)))
    if not names:
        raise MissingTreesError(
            f"{folder} has examples for {', '.join(known) or 'no split'}, but not for {split}: preprocess them with the dictionaries of "
            "this folder (--srcdict, --tgtdict)"
        )
    manifest.verify_quickly(folder, TEXT, names)
    texts = [folder / manifest.split(TEXT, name).prefix for name in names]
    tokens = joined([_tokens(prefix, text_dictionary, dataset_impl) for prefix in texts], 1)
    classes = None
    if manifest.section(ClassificationRecord).splits.keys() & set(names):
        labels = manifest.verify_section(ClassificationRecord, folder, names).splits
        classes = joined([_tokens(folder / labels[name].prefix, class_dictionary, dataset_impl) for name in names], 1)
    stores = [TreeStore(f"{prefix}.tree") for prefix in texts]
    trees = joined(stores, 1)
    counts = {len(examples) for examples in (tokens, trees, classes) if examples is not None}
    if len(counts) > 1:
        numbers = ", ".join(map(str, sorted(counts)))
        raise CorruptFileError(f"{folder}: texts, trees and classes of '{split}' are not as many ({numbers})")
    leaves = np.concatenate([store.leaf_counts for store in stores])
    return ClassificationSplit(
        tokens, trees, classes, leaves, [(str(prefix), len(store)) for prefix, store in zip(texts, stores)]
    )


def _tokens(prefix: Path, dictionary: Dictionary, dataset_impl: str | None) -> Sequence[Tensor]:
    tokens = data_utils.load_indexed_dataset(str(prefix), dictionary, dataset_impl)
    if tokens is None:
        raise CorruptFileError(f"there is no token data set {prefix}")
    return tokens
