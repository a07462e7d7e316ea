"""The kinds of data set in a folder: how each is written back as text.

Other kinds register themselves. The two that belong to a side are here: constituency trees and symbol trees. A kind
that adds a section to ``tree.json`` also registers that (:func:`tree_fairseq.data_bin.manifest.register_section`).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.token_files import load_dictionary, require_equal_lengths, token_words
from tree_fairseq.data_bin.tree_store import TreeStore, load_label_dictionary
from tree_fairseq.trees.bracket import write_forest
from tree_fairseq.trees.tree import Forest

Export = Callable[[Path, str], Iterable[str]]  # writes a split of a folder back as lines of text


class DataKind(NamedTuple):
    """A kind of data set."""

    # returns functions that write the lines of a folder back as text, by side (``source`` or ``target``); those of a
    # kind that is registered later come first
    exports: Callable[[Manifest], dict[str, Export]]
    # raises InputError if constituency trees cannot be added to a folder of this kind
    refuse_trees: Callable[[Path, Manifest], None] = lambda folder, manifest: None


_KINDS: dict[str, DataKind] = {}


def register_kind(name: str, kind: DataKind) -> None:
    """Adds a kind of data set, or replaces the one of the same name."""
    _KINDS[name] = kind


def registered_kinds() -> list[DataKind]:
    """All kinds, in the order in which they were registered."""
    return list(_KINDS.values())


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


def _export_symbols(lang: str, folder: Path, split: str) -> Iterator[str]:
    """Writes the symbol trees of a split in their notation; symbols that the dictionary lacks are ``<unk>``."""
    manifest = Manifest.load(folder)
    manifest.verify_quickly(folder, lang, [split])
    side = manifest.symbols[lang]
    notation = side.notation_in(folder)
    prefix = folder / manifest.split(lang, split).prefix
    for symbols in token_words(prefix, load_dictionary(folder, lang)):
        yield notation.write(side.encoding.decode(symbols))


def _kind_by_side(sides: Callable[[Manifest], dict], export: Callable) -> DataKind:
    return DataKind(
        lambda manifest: {side.side: functools.partial(export, lang) for lang, side in sides(manifest).items()}
    )


register_kind("constituency", _kind_by_side(lambda manifest: manifest.sides, _export_brackets))
register_kind("symbols", _kind_by_side(lambda manifest: manifest.symbols, _export_symbols))
