"""What a folder for classification keeps: its trees' symbols, and how the splits that it has were made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Collection

from tree_fairseq.data.class_trees import word_options
from tree_fairseq.data.classification_record import NODE_SYMBOL, ClassificationRecord
from tree_fairseq.data.folder_trees import TreeSide, same_parses
from tree_fairseq.data.manifest import Manifest
from tree_fairseq.data.side_record import SideRecord
from tree_fairseq.errors import DataFolderError
from tree_fairseq.parsing.base import ParserOptions
from tree_fairseq.trees.subwords import SUBWORD_SUFFIX


@dataclass(frozen=True)
class ClassTreeSide(TreeSide):
    """Trees that were given with classes at their nodes and are read with symbols in their place.

    Attributes:
        symbols: options of the parser whose labels they have; None where all have the same symbol
    """

    symbols: ParserOptions | None = None

    def known_labels(self, cache: Path) -> tuple[list[str], list[str]]:
        """All symbols that a tree can have."""
        labels, tags = ([], [])
        if self.symbols is not None:
            labels, tags = TreeSide(self.side, self.lang, word_options(self.symbols)).known_labels(cache)
        tags = sorted({*tags, NODE_SYMBOL})
        pieces = [tag + SUBWORD_SUFFIX for tag in tags] if self.options.subword_model else []
        return sorted({*labels, *tags, *pieces}), tags


def forget_classes(manifest: Manifest, record: ClassificationRecord, splits: Collection[str]) -> None:
    """Removes the classes of splits that are written again."""
    for name in record.splits.keys() & set(splits):
        for file in record.splits.pop(name).files:
            manifest.files.pop(file, None)


def require_same_classes(old: ClassificationRecord, new: ClassificationRecord) -> None:
    """Makes sure that splits can be added to a folder.

    Raises:
        DataFolderError: they would be read in another way than those that are there.
    """
    for name in ("input_format", "node_symbols", "regression"):
        if getattr(old, name) != getattr(new, name):
            flag = "--" + name.replace("_", "-")
            raise DataFolderError(
                f"{', '.join(old.splits)} of the folder were made with {flag} {getattr(old, name)}, this is {flag} {getattr(new, name)}: "
                "ask for the same, or choose another destination"
            )
    if None not in (old.text_parser, new.text_parser) and not same_parses(*(_as_side(record) for record in (old, new))):
        raise DataFolderError(
            f"new text for this folder is parsed by {old.text_identity}, with {old.text_parser}, which is not what was asked for now "
            f"({new.text_identity}, {new.text_parser}): ask for the same, or choose another destination"
        )


def _as_side(record: ClassificationRecord) -> SideRecord:
    return SideRecord("source", record.text_parser, record.text_identity, labels="")
