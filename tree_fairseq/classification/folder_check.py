"""What is wrong with the classes of a folder for classification."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from fairseq.data import Dictionary

from tree_fairseq.classification.class_trees import ClassNodes
from tree_fairseq.classification.examples import SEPARATOR
from tree_fairseq.classification.folder import CLASS, SENTENCE_TASK, TEXT, ClassificationRecord
from tree_fairseq.classification.targets import UNLABELLED, is_number
from tree_fairseq.data_bin.kinds import DataKind, Export, ExportRequest, register_kind
from tree_fairseq.data_bin.label_dictionary import load_label_dictionary
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.side_kinds import export_forests
from tree_fairseq.data_bin.token_files import load_dictionary, token_ids, token_lengths, token_prefix, token_words
from tree_fairseq.data_bin.tree_store import TreeStore
from tree_fairseq.errors import CorruptFileError, DataFolderError
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.trees.bracket import write_forest
from tree_fairseq.trees.spans import SpanForest, decode, encode
from tree_fairseq.trees.subwords import bpe_word, join_words, sentencepiece_word
from tree_fairseq.trees.tree import Forest, forest_leaves

_PROBLEMS_SHOWN = 5


def class_problems(folder: Path, manifest: Manifest) -> Iterator[str]:
    """Everything that is wrong with the content of the token files of classes, one sentence each.

    Args:
        folder: a folder with trees
        manifest: its manifest; nothing is wrong where it says nothing of classes
    """
    record = manifest.section(ClassificationRecord)
    for split in record.splits if record is not None else ():
        try:
            yield from _split_problems(folder, manifest, split)
        except DataFolderError as error:
            yield str(error)


def _split_problems(folder: Path, manifest: Manifest, split: str) -> Iterator[str]:
    record = manifest.section(ClassificationRecord).splits[split]
    prefix = folder / record.prefix
    dictionary = load_dictionary(folder, CLASS)
    expected = _expected_tokens(folder, manifest, split)
    regression = manifest.section(ClassificationRecord).regression
    lines = tokens = unlabelled = wrong = 0
    for ids in token_ids(prefix, dictionary):
        due = expected[lines] if lines < len(expected) else None
        lines += 1
        tokens += len(ids)
        unlabelled += int((ids == dictionary.unk()).sum())
        what = _number_problem(ids, dictionary) if regression else _line_problem(ids, due, dictionary)
        wrong += what is not None
        if what is not None and wrong <= _PROBLEMS_SHOWN:
            yield f"{prefix}, line {lines}: {what}"
    if wrong > _PROBLEMS_SHOWN:
        yield f"{prefix}: {wrong - _PROBLEMS_SHOWN} more such problems"
    if lines != len(expected):
        yield f"{prefix} has {lines} lines for {len(expected)} examples"
    for name, number in {"lines": lines, "tokens": tokens, "unlabelled": unlabelled}.items():
        if number != getattr(record, name):
            yield f"{prefix} has {number} {name} where {getattr(record, name)} were written"


def _line_problem(ids: np.ndarray, due: int | None, dictionary: Dictionary) -> str | None:
    """What is wrong with a line of classes of which so many are due, None if nothing."""
    if len(ids) and not 0 <= ids.min() <= ids.max() < len(dictionary):
        return f"a class is outside the dictionary of {len(dictionary)} symbols"
    if due is not None and len(ids) != due:
        return f"{len(ids)} classes where {due} are due"
    if not len(ids) or ids[0] < dictionary.nspecial:
        return "the example has no class"
    if ((ids < dictionary.nspecial) & (ids != dictionary.unk())).any():
        return "a special symbol stands for a class"
    return None


def _number_problem(ids: np.ndarray, dictionary: Dictionary) -> str | None:
    """What is wrong with a line of the characters of a number, None if nothing."""
    if len(ids) and not 0 <= ids.min() <= ids.max() < len(dictionary):
        return f"a character is outside the dictionary of {len(dictionary)} symbols"
    written = "".join(dictionary[index] for index in ids)
    return None if is_number(written) else f"{written!r} is no number"


def _expected_tokens(folder: Path, manifest: Manifest, split: str) -> np.ndarray:
    """How many classes each line should have, int64 ``[lines]``; of numbers that cannot be told."""
    if manifest.section(ClassificationRecord).task == SENTENCE_TASK:
        return np.ones(len(token_lengths(folder / token_prefix(split, TEXT, CLASS, TEXT))), np.int64)
    prefix = folder / manifest.split(TEXT, split).prefix
    if not manifest.section(ClassificationRecord).node_labels:
        return np.ones(len(token_lengths(prefix)), np.int64)
    has_class = ClassNodes(load_label_dictionary(folder / manifest.side(TEXT).labels))
    trees = TreeStore(f"{prefix}.tree")
    return np.array([len(has_class(trees[line])) for line in range(len(trees))], np.int64)


# FROM data/class_export: Examples with their classes, as they were read: ``python -m tree_fairseq.commands.export data-bin --examples``.


def export_examples(request: ExportRequest) -> Iterator[str]:
    """The lines of a file of examples: a text, a tab and its class; or a tree whose labels are classes.

    Args:
        request: a folder for classification, and a split of it

    Raises:
        DataFolderError: the folder holds no classes of this split, or they are damaged.
    """
    folder, split, words_from = request
    forests = export_forests(folder, TEXT, split, words_from)
    manifest = Manifest.load(folder)
    record = manifest.verify_section(ClassificationRecord, folder, [split])
    classes = _classes(folder / record.splits[split].prefix, load_dictionary(folder, CLASS))
    options = manifest.side(TEXT).options
    for number, (forest, names) in enumerate(zip(forests, classes, strict=True), start=1):
        if not record.node_labels:
            yield f"{' '.join(forest_leaves(forest))}\t{' '.join(names)}"
            continue
        words = encode(_joined(forest, options))
        if len(words.labels) != len(names):
            raise CorruptFileError(
                f"{folder}, {split}, line {number}: {len(names)} classes for {len(words.labels)} nodes. Preprocess again"
            )
        yield write_forest(decode(SpanForest(words.leaves, names, words.spans)))


def export_sentences(request: ExportRequest) -> Iterator[str]:
    """The lines of a file of sentences, or pairs of them, and their classes or numbers; words that the dictionary lacks are ``<unk>``.

    Args:
        request: a folder for ``tree_sentence_classification``, and a split of it

    Raises:
        DataFolderError: the folder holds none of this split, or they are damaged.
    """
    folder, split, _ = request
    record = Manifest.load(folder).verify_section(ClassificationRecord, folder, [split])
    texts = token_words(folder / token_prefix(split, TEXT, CLASS, TEXT), load_dictionary(folder, TEXT))
    classes = token_words(folder / record.splits[split].prefix, load_dictionary(folder, CLASS))
    for words, names in zip(texts, classes, strict=True):
        yield f"{' '.join(words).replace(f' {SEPARATOR} ', chr(9))}\t{''.join(names)}"


def _classes(prefix: Path, dictionary: Dictionary) -> Iterator[Sequence[str]]:
    for names in token_words(prefix, dictionary):
        yield [UNLABELLED if name == dictionary.unk_word else name for name in names]


def _joined(forest: Forest, options: ParserOptions) -> Forest:
    """The forest over whole words."""
    if options.subword_model is None:
        return forest
    return join_words(forest, sentencepiece_word if options.subword_model.endswith(".model") else bpe_word)


def _sentence_exports(manifest: Manifest) -> dict[str, Export]:
    record = manifest.section(ClassificationRecord)
    return {"source": export_sentences} if record is not None and record.task == SENTENCE_TASK else {}


def _example_exports(manifest: Manifest) -> dict[str, Export]:
    is_classification = manifest.section(ClassificationRecord) is not None
    return _sentence_exports(manifest) or ({"source": export_examples} if is_classification else {})


register_kind("classification", DataKind(class_problems, _sentence_exports, _example_exports))
