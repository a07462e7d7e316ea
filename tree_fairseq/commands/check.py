"""Verifies a folder with trees and names what is wrong: ``python -m tree_fairseq.commands.check data-bin``."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Callable

import numpy as np
from fairseq.data import Dictionary

from tree_fairseq.classification.folder_check import class_problems
from tree_fairseq.data_bin.inputs import file_sha256
from tree_fairseq.data_bin.label_dictionary import load_label_dictionary
from tree_fairseq.data_bin.manifest import Manifest, SplitRecord
from tree_fairseq.data_bin.side_files import require_equal_lengths
from tree_fairseq.data_bin.staging import staging_path
from tree_fairseq.data_bin.structure import malformed_lines
from tree_fairseq.data_bin.symbol_sides import SymbolSideRecord
from tree_fairseq.data_bin.token_files import load_dictionary, token_ids, token_words
from tree_fairseq.data_bin.tree_store import TreeStore
from tree_fairseq.errors import CorruptFileError, DataFolderError, SymbolTreeError, TreeFairseqError
from tree_fairseq.tree_insertion.folder_check import insertion_problems

_LINES_AT_A_TIME = 20_000
_PROBLEMS_SHOWN = 5


def verify_folder(folder: str | os.PathLike, lang: str, splits: Iterable[str], quick: bool = True) -> Manifest:
    """Verifies the trees of a language before they are used.

    Args:
        folder: the preprocessed folder
        lang: language of the trees
        splits: names of the splits that will be read
        quick: compare the dictionaries' hashes and the files' sizes only; otherwise everything that :func:`check_folder` does

    Returns:
        the folder's manifest

    Raises:
        MissingTreesError: the folder, the language or a split has no trees.
        DictionaryMismatchError: a dictionary is not the one that the files were made with.
        CorruptFileError: a file is missing or damaged.
    """
    manifest = Manifest.load(folder)
    splits = list(splits)
    manifest.verify_quickly(folder, lang, splits)
    if not quick:
        problems = list(_side_problems(Path(folder), manifest, lang, splits))
        if problems:
            raise CorruptFileError("; ".join(problems))
    return manifest


def check_folder(folder: str | os.PathLike, quick: bool = False) -> list[str]:
    """Everything that is wrong with a folder, one sentence each; empty if all is well.

    Args:
        folder: a folder with trees
        quick: only what can be seen without reading token files and tree files

    Raises:
        DataFolderError: there are no trees or the manifest cannot be read.
    """
    folder = Path(folder)
    manifest = Manifest.load(folder)
    problems = []
    if staging_path(folder).exists() and any(staging_path(folder).iterdir()):
        problems.append(
            f"{staging_path(folder)} is there: a command that builds this folder is running or was stopped; give it again"
        )
    for name, record in manifest.files.items():
        verify = record.verify_content if name.startswith("dict.") else record.verify_size
        problems += _problems_of(lambda: verify(folder / name))
        path = folder / name
        if not quick and path.exists() and path.stat().st_size == record.size and file_sha256(path) != record.sha256:
            if not name.startswith("dict."):
                problems.append(
                    f"{path} has the right size but another content than was written: it was damaged or replaced"
                )
    if not quick:
        for lang, side in manifest.sides.items():
            problems += _side_problems(folder, manifest, lang, side.splits)
        for lang in manifest.symbols:
            problems += _symbol_problems(folder, manifest, lang)
        problems += class_problems(folder, manifest)
        problems += insertion_problems(folder, manifest)
    return problems


def _problems_of(check: Callable[[], object]) -> list[str]:
    try:
        check()
    except TreeFairseqError as error:
        return [str(error)]
    return []


def _side_problems(folder: Path, manifest: Manifest, lang: str, splits: Iterable[str]) -> Iterator[str]:
    """What is wrong with the content of the files of one language."""
    try:
        labels = load_label_dictionary(folder / manifest.side(lang).labels)
        dictionary = load_dictionary(folder, lang)
    except DataFolderError as error:
        yield str(error)
        return
    for name in splits:
        record = manifest.split(lang, name)
        tokens = folder / record.prefix
        yield from _problems_of(lambda: _require_known_tokens(tokens, dictionary))
        try:
            trees = TreeStore(f"{tokens}.tree")
        except DataFolderError as error:
            yield str(error)
            continue
        yield from _problems_of(lambda: require_equal_lengths(trees, tokens))
        yield from _count_problems(trees, record)
        yield from _tree_problems(trees, labels)


def _symbol_problems(folder: Path, manifest: Manifest, lang: str) -> Iterator[str]:
    """What is wrong with the content of the token files of a side with symbol trees."""
    side = manifest.symbols[lang]
    try:
        dictionary = load_dictionary(folder, lang)
    except DataFolderError as error:
        yield str(error)
        return
    for name, record in side.splits.items():
        lines = symbols = 0
        try:
            for words in token_words(folder / record.prefix, dictionary):
                lines += 1
                symbols += len(words)
                yield from _problems_of(lambda: _require_tree(words, side, folder / record.prefix, lines))
        except DataFolderError as error:
            yield str(error)
            continue
        for what, number in {"lines": lines, "symbols": symbols}.items():
            if number != getattr(record, what):
                yield f"{name} of {lang} has {number} {what} where {getattr(record, what)} were written"


def _require_tree(words: list[str], side: SymbolSideRecord, path: Path, line: int) -> None:
    try:
        side.encoding.decode(words)
    except SymbolTreeError as error:
        raise error.at(path, line) from None


def _require_known_tokens(prefix: Path, dictionary: Dictionary) -> None:
    for number, ids in enumerate(token_ids(prefix, dictionary), start=1):
        if len(ids) and not 0 <= ids.min() <= ids.max() < len(dictionary):
            raise CorruptFileError(
                f"{prefix}, line {number}: a token id is outside the dictionary of {len(dictionary)} symbols"
            )


def _count_problems(trees: TreeStore, record: SplitRecord) -> Iterator[str]:
    counted = {
        "lines": len(trees),
        "leaves": int(trees.leaf_counts.sum(dtype=np.int64)),
        "nodes": int(trees.node_counts.sum(dtype=np.int64)),
    }
    for what, number in counted.items():
        if number != getattr(record, what):
            yield f"{trees.prefix} has {number} {what} where {getattr(record, what)} were written"


def _tree_problems(trees: TreeStore, labels: Dictionary) -> Iterator[str]:
    """The first few lines whose arrays are no tree, or whose labels do not exist."""
    found = 0
    for first in range(0, len(trees), _LINES_AT_A_TIME):
        block = trees.block(first, first + _LINES_AT_A_TIME)
        ids = block.rows[:, 0]
        wrong = (ids >= len(labels)) | ((ids < labels.nspecial) & (ids != labels.unk()))
        mislabelled = np.zeros(len(block.leaf_counts), bool)
        mislabelled[np.repeat(np.arange(len(block.node_counts)), block.node_counts)[wrong]] = True
        for lines, what in (
            (malformed_lines(block), "its spans are no tree"),
            (mislabelled, f"a label id is outside the label dictionary of {len(labels)} symbols"),
        ):
            for line in np.flatnonzero(lines).tolist():
                found += 1
                if found <= _PROBLEMS_SHOWN:
                    yield f"{trees.prefix}, line {first + line + 1}: {what}"
    if found > _PROBLEMS_SHOWN:
        yield f"{trees.prefix}: {found - _PROBLEMS_SHOWN} more such problems"


def main(arguments: list[str] | None = None) -> int:
    """The command; exit status 1 if anything is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m tree_fairseq.commands.check",
        description="Verifies a folder with trees and names what is wrong.",
    )
    parser.add_argument("folder", help="the folder that fairseq-preprocess wrote")
    parser.add_argument(
        "--quick", action="store_true", help="only sizes of files and hashes of dictionaries, as at every start"
    )
    args = parser.parse_args(arguments)
    logging.basicConfig(format="%(levelname)s | %(message)s", level=logging.INFO)
    try:
        problems = check_folder(args.folder, quick=args.quick)
    except TreeFairseqError as error:
        problems = [str(error)]
    for problem in problems:
        sys.stdout.write(f"{problem}\n")
    if not problems:
        sys.stdout.write(f"{args.folder}: all is well\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
