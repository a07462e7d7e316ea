"""The kinds of trees in a folder, constituency trees and symbol trees, written back as text.

A kind of data set that adds a section to ``tree.json`` may write a side in its own way
(:meth:`tree_fairseq.data_bin.manifest.Section.exports`).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from tree_fairseq.data_bin.manifest import Export, Manifest
from tree_fairseq.data_bin.token_files import load_dictionary, require_equal_lengths, token_words
from tree_fairseq.data_bin.tree_store import TreeStore, load_label_dictionary
from tree_fairseq.trees.bracket import write_forest
from tree_fairseq.trees.tree import Forest, Tree


def exports_of(manifest: Manifest) -> dict[str, Export]:
    """Returns what writes the lines of a split back as text, by side; sections come before the trees of a side."""
    exports: dict[str, Export] = {}
    for sides, export in ((manifest.sides, _export_brackets), (manifest.symbols, _export_symbols)):
        exports |= {side.side: functools.partial(export, lang) for lang, side in sides.items()}
    for section in manifest.sections.values():
        exports |= section.exports()
    return exports


def export_forests(folder: str | os.PathLike, lang: str, split: str) -> Iterator[Forest]:
    """Reads the constituency trees of a split; words and labels that the dictionaries lack are ``<unk>``.

    Raises DataFolderError if there are no trees or a file is damaged.
    """
    folder = Path(folder)
    manifest = Manifest.load(folder)
    manifest.verify_quickly(folder, lang, [split])
    prefix = folder / manifest.split(lang, split).prefix
    labels = load_label_dictionary(folder / manifest.side(lang).labels)
    dictionary = load_dictionary(folder, lang)
    trees = TreeStore(f"{prefix}.tree")
    require_equal_lengths(trees, prefix)
    return (trees[index].forest(labels, leaves) for index, leaves in enumerate(token_words(prefix, dictionary)))


def _export_brackets(lang: str, folder: Path, split: str) -> Iterable[str]:
    return map(write_forest, export_forests(folder, lang, split))


def symbol_trees(folder: Path, lang: str, split: str) -> Iterator[Tree]:
    """Yields the symbol trees of a split; symbols that the dictionary lacks are ``<unk>``.

    Raises DataFolderError if there are no trees or a file is damaged.
    """
    manifest = Manifest.load(folder)
    manifest.verify_quickly(folder, lang, [split])
    prefix = folder / manifest.split(lang, split).prefix
    return map(manifest.symbols[lang].encoding.decode, token_words(prefix, load_dictionary(folder, lang)))


def _export_symbols(lang: str, folder: Path, split: str) -> Iterator[str]:
    notation = Manifest.load(folder).symbols[lang].notation_in(folder)
    return map(notation.write, symbol_trees(folder, lang, split))
