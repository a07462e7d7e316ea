"""Writes the trees of a folder back as text: ``python -m tree_fairseq.commands.export data-bin --split train``.

Constituency trees become brackets, symbol trees and those that grow by insertions the notation that they were read from.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import numpy as np
from fairseq.data import Dictionary

from tree_fairseq.classification.folder import SENTENCE_TASK, ClassificationRecord
from tree_fairseq.classification.folder_check import export_examples, export_sentences
from tree_fairseq.data_bin.label_dictionary import load_label_dictionary
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.side_files import require_equal_lengths
from tree_fairseq.data_bin.token_files import load_dictionary, require_same_tokens, token_words
from tree_fairseq.data_bin.tree_store import TreeStore
from tree_fairseq.errors import InputError, MissingTreesError, TreeFairseqError
from tree_fairseq.files import atomic_file
from tree_fairseq.tree_insertion.record import STORE_SUFFIX, InsertionRecord
from tree_fairseq.tree_insertion.store import open_store
from tree_fairseq.trees.bracket import write_forest
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.spans import SpanForest, decode
from tree_fairseq.trees.text import read_lines, tokens
from tree_fairseq.trees.tree import Forest


def export_forests(
    folder: str | os.PathLike, lang: str, split: str, words_from: str | os.PathLike | None = None
) -> Iterator[Forest]:
    """The forests of a split, line by line.

    Words and labels that the dictionaries did not have are ``<unk>``.

    Args:
        folder: a folder with trees
        lang: language of the trees
        split: such as ``train`` or ``valid1``
        words_from: the text of the split, to have its own words in place of ``<unk>``

    Raises:
        DataFolderError: there are no such trees, or a file is damaged.
        InputError: the text is not that of the split.
    """
    folder = Path(folder)
    manifest = Manifest.load(folder)
    manifest.verify_quickly(folder, lang, [split])
    prefix = folder / manifest.split(lang, split).prefix
    labels = load_label_dictionary(folder / manifest.side(lang).labels)
    dictionary = load_dictionary(folder, lang)
    trees = TreeStore(f"{prefix}.tree")
    require_equal_lengths(trees, prefix)
    if words_from is None:
        words = token_words(prefix, dictionary)
    else:
        require_same_tokens(words_from, prefix, dictionary)
        words = map(tokens, read_lines(words_from))
    return _forests(trees, words, labels)


def _forests(trees: TreeStore, words: Iterator[list[str]], labels: Dictionary) -> Iterator[Forest]:
    names = labels.symbols
    for index, leaves in enumerate(words):
        tree = trees[index]
        spans = np.stack([tree.start, tree.end, tree.depth], axis=1)
        yield decode(SpanForest(leaves, [names[label] for label in tree.label.tolist()], spans))


def export_symbol_trees(folder: str | os.PathLike, lang: str, split: str) -> Iterator[str]:
    """The symbol trees of a split in their notation, line by line; symbols that the dictionary did not have are ``<unk>``.

    Raises:
        DataFolderError: there are no such trees, or a file is damaged.
    """
    folder = Path(folder)
    manifest = Manifest.load(folder)
    manifest.verify_quickly(folder, lang, [split])
    side = manifest.symbols[lang]
    notation = notation_named(side.notation)
    for symbols in token_words(folder / manifest.symbol_split(lang, split).prefix, load_dictionary(folder, lang)):
        yield notation.write(side.encoding.decode(symbols))


def export_insertion_trees(folder: str | os.PathLike, split: str) -> Iterator[str]:
    """The targets of insertion-based decoding in their notation, line by line; labels that the dictionary did not have are ``<unk>``.

    Raises:
        DataFolderError: there are no such trees, or a file is damaged.
    """
    folder = Path(folder)
    record = Manifest.load(folder).verify_section(InsertionRecord, folder, [split])
    notation = notation_named(record.notation)
    prefix = folder / record.splits[split].prefix
    stored = open_store(Path(f"{prefix}.{STORE_SUFFIX}"), record.ways)
    for index, words in enumerate(token_words(prefix, load_dictionary(folder, record.lang))):
        yield notation.write(record.words.decode(words, stored[index].parents[1:] - 1))


def language_of(manifest: Manifest, side: str | None) -> str:
    """The language whose trees are meant: of a side, or the only one that has trees.

    Raises:
        MissingTreesError: the side has none.
        InputError: both have and none was named.
    """
    languages = {record.side: lang for lang, record in {**manifest.sides, **manifest.symbols}.items()}
    if manifest.section(InsertionRecord) is not None:
        languages["target"] = manifest.section(InsertionRecord).lang
    if side is None:
        if len(languages) != 1:
            raise InputError("both sides have trees: say which with --side source or --side target")
        return next(iter(languages.values()))
    if side not in languages:
        raise MissingTreesError(f"the {side} has no trees, the {' and the '.join(languages)} has")
    return languages[side]


@contextlib.contextmanager
def _output(path: str) -> Iterator[TextIO]:
    """Standard output, or a file that has its name only when it is complete."""
    if path == "-":
        yield sys.stdout
        return
    with atomic_file(path, sync=False) as file:
        yield file


def main(arguments: list[str] | None = None) -> int:
    """The command; exit status 1 if the trees cannot be written."""
    parser = argparse.ArgumentParser(
        prog="python -m tree_fairseq.commands.export",
        description="Writes the trees of a folder back as text, one line each. Words that the dictionary lacks are <unk>.",
    )
    parser.add_argument("folder", help="the folder that fairseq-preprocess wrote")
    parser.add_argument("--split", default="train", help="train, valid, valid1, ... (default: %(default)s)")
    parser.add_argument("--side", choices=("source", "target"), help="needed where both sides have trees")
    parser.add_argument("--output", default="-", metavar="FILE", help="default: standard output")
    parser.add_argument(
        "--words-from", metavar="FILE", help="the tokenised text of the split, to have its words in place of <unk>"
    )
    parser.add_argument(
        "--examples",
        action="store_true",
        help="of a folder for classification: text<TAB>class, or trees whose labels are classes; "
        "without it, the trees as a model reads them",
    )
    args = parser.parse_args(arguments)
    try:
        manifest = Manifest.load(args.folder)
        is_sentences = (
            manifest.section(ClassificationRecord) is not None
            and manifest.section(ClassificationRecord).task == SENTENCE_TASK
        )
        lang = "" if is_sentences else language_of(manifest, args.side)
        if is_sentences:
            lines = export_sentences(args.folder, args.split)
        elif args.examples:
            lines = export_examples(
                args.folder, args.split, export_forests(args.folder, lang, args.split, args.words_from)
            )
        elif lang in manifest.symbols:
            lines = export_symbol_trees(args.folder, lang, args.split)
        elif manifest.section(InsertionRecord) is not None and lang == manifest.section(InsertionRecord).lang:
            lines = export_insertion_trees(args.folder, args.split)
        else:
            lines = map(write_forest, export_forests(args.folder, lang, args.split, args.words_from))
        with _output(args.output) as file:
            for line in lines:
                file.write(line + "\n")
    except TreeFairseqError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough. What is still buffered must not be written when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
