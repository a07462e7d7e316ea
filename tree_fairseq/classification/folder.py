"""Folders of texts and their targets, which are classes or numbers.

This module has the record of such a folder in ``tree.json``, reads lines of target tokens, and opens and exports
splits. A line of class tokens holds the class of the example. In a folder of trees it holds the classes of all nodes in
preorder, so the class of the example comes first. A number is written one character a token.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from fairseq.data import Dictionary, data_utils
from torch import Tensor

from tree_fairseq.data_bin import token_files
from tree_fairseq.data_bin.kinds import export_forests
from tree_fairseq.data_bin.manifest import Export, Manifest, Section, register_section
from tree_fairseq.data_bin.tree_store import RESERVED_LABELS, StoredTree, TreeStore
from tree_fairseq.errors import ClassError, CorruptFileError, InputError, MissingTreesError, UnknownClassError
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.trees.bracket import write_forest
from tree_fairseq.trees.spans import TreeSpans, decode, encode

TASK = "tree_classification"  # the task of folders of texts with trees

SENTENCE_TASK = "tree_sentence_classification"
"""The task of folders of single sentences, or pairs of them, without trees."""

TEXT = "text"  # the source "language"

CLASS = "class"  # the target "language": its tokens are classes, or the characters of numbers

INPUT_FORMATS = ("tsv", "trees")
SENTENCE_FORMATS = ("sentence", "pair")

SEPARATOR = "</s>"  # the word between the sentences of a pair; fairseq's dictionaries have it as their EOS

UNLABELLED = "-"
"""Marks a node without a class. The dictionary of classes does not contain it, so it is stored as ``<unk>``."""

IGNORE = -100  # takes the place of a class at padding and where a node has no class. The losses of torch skip it.

CHARACTERS = "0123456789.-+e"  # the characters of a number, in the order of their dictionary

_INTEGER_OR_FRACTION = re.compile(r"[+-]?\d+(\.\d+)?")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?")


@dataclass
class ClassSplitRecord:
    """The classes of a split: numbers of examples, of tokens (without EOS) and of those that are ``-``."""

    prefix: str
    lines: int
    tokens: int
    unlabelled: int
    files: list[str]


@register_section("classification")
@dataclass
class ClassificationRecord(Section):
    """The kind of examples that a folder holds."""

    contents: ClassVar[str] = "classes"
    missing: ClassVar[str] = "preprocess with --task tree_classification"
    split_record = ClassSplitRecord

    # ``tsv`` for lines of a text and its class; ``trees`` for bracketed trees whose node labels are classes;
    # ``sentence`` or ``pair``, without trees, for lines of one sentence or two and their class or number
    input_format: str
    # whether a line of classes has a token for every node, in preorder; otherwise it has that of the example alone
    node_labels: bool
    # what a model reads at the nodes: ``parser`` for the labels of a parse, ``constant`` for the same symbol
    # everywhere, ``none`` without trees
    node_symbols: str
    binarize: bool = False  # whether parses of new text are binarised, because the given trees were binary
    # options of the parser for new text in a folder of trees, None without one; a folder of texts uses those of its
    # source side
    text_parser: dict[str, Any] | None = None
    text_identity: dict[str, Any] | None = None  # name, version and model of that parser
    splits: dict[str, ClassSplitRecord] = field(default_factory=dict)  # by name
    # whether the targets are numbers, written digit by digit (:mod:`tree_fairseq.classification.folder`)
    regression: bool = False

    @property
    def task(self) -> str:
        """The task of the folder."""
        return SENTENCE_TASK if self.input_format in SENTENCE_FORMATS else TASK

    @property
    def text_options(self) -> ParserOptions | None:
        """The options of the parser for new text in a folder of trees."""
        return None if self.text_parser is None else ParserOptions.from_json(self.text_parser)

    def differences(self, other: ClassificationRecord) -> list[str]:
        """Returns what makes the two read the same examples, or new text, differently."""
        found = [
            f"--{name.replace('_', '-')} {getattr(self, name)} and {getattr(other, name)}"
            for name in ("input_format", "node_symbols", "regression")
            if getattr(self, name) != getattr(other, name)
        ]
        if None not in (self.text_parser, other.text_parser) and self.text_identity != other.text_identity:
            found.append(f"parser of new text: {self.text_identity} and {other.text_identity}")
        return found

    def dictionaries(self, source_lang: str) -> list[str]:
        """Names the dictionary of classes, once a split has classes."""
        return [f"dict.{CLASS}.txt"] if self.splits else []

    def exports(self) -> dict[str, Export]:
        """Trees of texts with one class are written as all trees are."""
        return {"source": export_class_trees} if self.input_format == "trees" else {}

    def refuse_trees(self, folder: Path) -> None:
        """Refuses trees: those of the folder and its classes belong together."""
        problem = f"{folder} is for classification: its trees and classes belong together"
        hint = f"Add a split with fairseq-preprocess --task {TASK} and the folder's --srcdict and --tgtdict."
        raise InputError(problem, hint=hint)


def class_order(name: str) -> tuple[int, float, str]:
    """Returns the key by which classes are sorted: numbers by their value, then names."""
    return (0, float(name), name) if _INTEGER_OR_FRACTION.fullmatch(name) else (1, 0.0, name)


def check_class(name: str, known: Collection[str] | None) -> None:
    """Raises ClassError for the name of a special symbol, and UnknownClassError for a class that is not ``known``."""
    if name in RESERVED_LABELS:
        problem = f"a class is called {name}, which names a special symbol of the dictionary"
        raise ClassError(problem, hint="Give it another name.")
    if known is not None and name not in (UNLABELLED, *known):
        raise UnknownClassError(
            f"{name!r} is not a class, the classes are {', '.join(sorted(known, key=class_order))}",
            hint=f"A class has to occur in train; a node without a class is labelled {UNLABELLED}.",
        )


def is_number(text: str) -> bool:
    """Returns whether a word is a finite number in decimal notation, with the exponent after ``e``."""
    return _NUMBER.fullmatch(text) is not None and math.isfinite(float(text))


class NumberDictionary(Dictionary):
    """fairseq's dictionary, filled with the characters of numbers."""

    @classmethod
    def of_characters(cls) -> NumberDictionary:
        made = cls()
        for character in CHARACTERS:
            made.add_symbol(character)
        return made

    def string(self, tensor, *args, **kwargs) -> str:
        """Also writes each number as one word."""
        # fairseq puts the lines of a batch one below the other, so only blanks are removed.
        return super().string(tensor, *args, **kwargs).replace(" ", "")

    def value(self, tokens: Tensor) -> float:
        """Returns the number that a line of tokens writes, with or without EOS; ``nan`` if that is not a number."""
        text = self.string(tokens)
        return float(text) if is_number(text) else math.nan

    def tokens(self, value: float) -> Tensor:
        """Writes a number with six digits as a line of tokens with EOS, int32."""
        return self.encode_line(" ".join(f"{value:.6g}"), add_if_not_exist=False)


def class_targets(tokens: Tensor, dictionary: Dictionary) -> np.ndarray:
    """Converts a line of class tokens, with or without EOS, to classes from 0, int64; ``<unk>`` becomes `IGNORE`."""
    ids = tokens.numpy()[: -1 if len(tokens) and tokens[-1] == dictionary.eos() else None].astype(np.int64)
    return np.where(ids == dictionary.unk(), IGNORE, ids - dictionary.nspecial)


def read_target(tokens: Tensor, dictionary: Dictionary, index: int) -> int | float:
    """Reads the line of example ``index``: its class, the first of the line, from 0; or its number."""
    if isinstance(dictionary, NumberDictionary):
        value = dictionary.value(tokens)
        if math.isnan(value):
            raise CorruptFileError(f"the label of example {index + 1} is not a number. Preprocess again")
        return value
    classes = class_targets(tokens, dictionary)
    if not len(classes) or classes[0] < 0:
        raise CorruptFileError(f"example {index + 1} has no class. Preprocess again")
    return int(classes[0])


class ExampleFiles(NamedTuple):
    """The opened files of a split."""

    tokens: Sequence[Tensor]  # of each example, with EOS
    # leaves of each document, or tokens of each text with the ends of its sentences, int64 ``[examples]``
    lengths: np.ndarray
    targets: Sequence[Tensor]  # target tokens of each, with EOS
    trees: Sequence[StoredTree] | None  # full trees of each document; None in a folder without trees


def open_split(
    folder: Path,
    manifest: Manifest,
    split: str,
    combine: bool,
    text_dictionary: Dictionary,
    target_dictionary: Dictionary,
    dataset_impl: str | None,
) -> ExampleFiles:
    """Opens the files of a split and makes sure that they belong together, as far as that is quickly done.

    With ``combine``, the split has all parts: ``train``, ``train1``, ...
    """
    record = manifest.verify_section(ClassificationRecord, folder, [])
    has_trees = record.task == TASK
    known = manifest.side(TEXT).splits if has_trees else record.splits
    numbers = itertools.count() if combine else [0]
    names = list(itertools.takewhile(known.__contains__, (f"{split}{number or ''}" for number in numbers)))
    if not names:
        raise MissingTreesError(
            f"{folder} has examples for {', '.join(known) or 'no split'}, but not for {split}: preprocess them with "
            "the dictionaries of this folder (--srcdict, --tgtdict)"
        )
    texts = [folder / token_files.token_prefix(name, TEXT, CLASS, TEXT) for name in names]

    def load(prefixes: list[Path], dictionary: Dictionary) -> Sequence[Tensor]:
        parts = [data_utils.load_indexed_dataset(str(prefix), dictionary, dataset_impl) for prefix in prefixes]
        if None in parts:
            raise CorruptFileError(f"there is no token data set {prefixes[parts.index(None)]}")
        return token_files.joined(parts, 1)

    if has_trees:
        manifest.verify_quickly(folder, TEXT, names)
        stores = [TreeStore(f"{prefix}.tree") for prefix in texts]
        trees, sizes = token_files.joined(stores, 1), [store.leaf_counts for store in stores]
    else:
        manifest.verify_texts(folder, names)
        trees, sizes = None, [token_files.token_lengths(prefix) + 1 for prefix in texts]
    manifest.verify_section(ClassificationRecord, folder, names)
    tokens = load(texts, text_dictionary)
    targets = load([folder / record.splits[name].prefix for name in names], target_dictionary)
    counts = {len(examples) for examples in (tokens, targets, trees) if examples is not None}
    if len(counts) > 1:
        raise CorruptFileError(
            f"{folder}: the numbers of texts, trees and classes of '{split}' differ "
            f"({', '.join(map(str, sorted(counts)))}). Preprocess again"
        )
    return ExampleFiles(tokens, np.concatenate(sizes).astype(np.int64), targets, trees)


def export_class_trees(folder: Path, split: str) -> Iterator[str]:
    """Writes the trees of a split with the classes as labels."""
    forests = export_forests(folder, TEXT, split)
    record = Manifest.load(folder).verify_section(ClassificationRecord, folder, [split])
    dictionary = token_files.load_dictionary(folder, CLASS)
    lines = token_files.token_words(folder / record.splits[split].prefix, dictionary)
    for number, (forest, tokens) in enumerate(zip_equal(forests, lines), start=1):
        classes = [UNLABELLED if token == dictionary.unk_word else token for token in tokens]
        trees = encode(forest)
        if len(trees.labels) != len(classes):
            raise CorruptFileError(
                f"{folder}, {split}, line {number}: {len(classes)} classes for {len(trees.labels)} nodes. "
                "Preprocess again"
            )
        yield write_forest(decode(TreeSpans(trees.leaves, classes, trees.spans)))
