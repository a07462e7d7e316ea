"""``tree.json``: what binds token files, tree files and dictionaries of a folder, and how its text was parsed."""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterable

from tree_fairseq.data.classification_record import CLASS, ClassificationRecord
from tree_fairseq.data.file_record import MANIFEST_NAME, FileRecord
from tree_fairseq.data.insertion_record import InsertionRecord
from tree_fairseq.data.side_record import SideRecord, SplitRecord
from tree_fairseq.data.staging import write_json
from tree_fairseq.data.symbol_sides import SymbolSideRecord, SymbolSplitRecord
from tree_fairseq.errors import CorruptFileError, DataFolderError, MissingTreesError
from tree_fairseq.version import __version__

FORMAT_VERSION = 1


@dataclass
class Manifest:
    """All trees of a folder.

    Attributes:
        source_lang: language of the source
        target_lang: language of the target; None in a folder without
        sides: those with constituency trees, by language
        files: dictionaries, token files of both languages and tree files, by name
        format_version: of the files
        package_version: of the program that wrote them
        symbols: those that are symbol trees, by language
        classification: what the examples are, in a folder for classification
        insertion: how the targets are written, in a folder for insertion-based decoding
    """

    source_lang: str
    target_lang: str | None
    sides: dict[str, SideRecord] = field(default_factory=dict)
    files: dict[str, FileRecord] = field(default_factory=dict)
    format_version: int = FORMAT_VERSION
    package_version: str = __version__
    symbols: dict[str, SymbolSideRecord] = field(default_factory=dict)
    classification: ClassificationRecord | None = None
    insertion: InsertionRecord | None = None

    @classmethod
    def load(cls, folder: str | os.PathLike) -> Manifest:
        """Reads the manifest of a folder.

        Raises:
            MissingTreesError: the folder has none.
            CorruptFileError: it cannot be read.
            DataFolderError: it was written by a later version of this package.
        """
        path = Path(folder) / MANIFEST_NAME
        try:
            values = json.loads(path.read_bytes())
        except FileNotFoundError:
            raise MissingTreesError(
                f"{folder} has no trees: there is no {MANIFEST_NAME}. Preprocess with --tree-parser, or --source-modality tree "
                "or --target-modality tree, or add trees with `python -m tree_fairseq.data.annotate`"
            ) from None
        except ValueError as error:
            raise CorruptFileError(f"{path} is no JSON: {error}") from None
        try:
            if values["format_version"] > FORMAT_VERSION:
                raise DataFolderError(
                    f"{path} has format {values['format_version']}, written by tree_fairseq {values['package_version']}; "
                    f"this is {__version__}, which reads formats up to {FORMAT_VERSION}. Use that version or a later one"
                )
            return _from_json(values)
        except (KeyError, TypeError, AttributeError) as error:
            raise CorruptFileError(f"{path} is no manifest of trees: {error!r}") from None

    def save(self, folder: str | os.PathLike) -> None:
        """Writes the manifest into a folder, under its name only when it is complete."""
        values = dataclasses.asdict(self)
        for name in ("classification", "insertion"):
            if values[name] is None:
                # Other folders stay readable by versions that know nothing of it.
                del values[name]
        write_json(Path(folder) / MANIFEST_NAME, values)

    def side(self, lang: str) -> SideRecord:
        """The trees of a language.

        Raises:
            MissingTreesError: it has none.
        """
        try:
            return self.sides[lang]
        except KeyError:
            raise MissingTreesError(f"there are trees for {', '.join(self.sides) or 'no language'}, but not for {lang}") from None

    def split(self, lang: str, split: str) -> SplitRecord:
        """The trees of a language in a split.

        Raises:
            MissingTreesError: there are none.
        """
        splits = self.side(lang).splits
        try:
            return splits[split]
        except KeyError:
            raise MissingTreesError(
                f"there are trees of {lang} for {', '.join(splits) or 'no split'}, but not for {split}. "
                "Add them with `python -m tree_fairseq.data.annotate`"
            ) from None

    def symbol_split(self, lang: str, split: str) -> SymbolSplitRecord:
        """The symbol trees of a language in a split.

        Raises:
            MissingTreesError: there are none.
        """
        splits = self.symbols[lang].splits if lang in self.symbols else {}
        try:
            return splits[split]
        except KeyError:
            raise MissingTreesError(
                f"there are symbol trees of {lang} for {', '.join(splits) or 'no split'}, but not for {split}: preprocess it with "
                "the dictionaries of this folder (--srcdict, --tgtdict)"
            ) from None

    def forget_split(self, lang: str, split: str) -> None:
        """Removes the trees of a split from the manifest."""
        insertion = {self.insertion.lang: self.insertion} if self.insertion else {}
        for sides in (self.sides, self.symbols, insertion):
            record = sides[lang].splits.pop(split, None) if lang in sides else None
            for name in record.files if record else ():
                self.files.pop(name, None)

    def verify_classes_quickly(self, folder: str | os.PathLike, splits: Iterable[str]) -> ClassificationRecord:
        """As :meth:`verify_quickly`, of the classes of a folder for classification.

        Returns:
            what the examples are

        Raises:
            MissingTreesError: the folder is none, or a split has no classes.
            DictionaryMismatchError, CorruptFileError: as :meth:`verify_quickly`.
        """
        folder, record = Path(folder), self.classification
        if record is None:
            raise MissingTreesError(
                f"{folder} is no folder for classification: {MANIFEST_NAME} says nothing of classes. Preprocess with --task tree_classification"
            )
        if (name := f"dict.{CLASS}.txt") in self.files:
            self.files[name].verify_content(folder / name)
        self._verify_splits(folder, "classes", record.splits, splits)
        return record

    def verify_insertion_quickly(self, folder: str | os.PathLike, splits: Iterable[str]) -> InsertionRecord:
        """As :meth:`verify_quickly`, of a folder for insertion-based decoding and both its dictionaries.

        Returns:
            how the targets are written

        Raises:
            MissingTreesError: the folder is none, or a split has no trajectories.
            DictionaryMismatchError, CorruptFileError: as :meth:`verify_quickly`.
        """
        folder, record = Path(folder), self.insertion
        if record is None:
            raise MissingTreesError(
                f"{folder} is no folder for insertion-based decoding: {MANIFEST_NAME} says nothing of trajectories. Preprocess with "
                "--task tree_insertion"
            )
        for lang in (self.source_lang, record.lang):
            self.files[f"dict.{lang}.txt"].verify_content(folder / f"dict.{lang}.txt")
        self._verify_splits(folder, "trajectories", record.splits, splits)
        return record

    def _verify_splits(self, folder: Path, what: str, records: dict, splits: Iterable[str]) -> None:
        """Compares the sizes of the files of splits, whose records are given."""
        for split in splits:
            if split not in records:
                raise MissingTreesError(
                    f"{folder} has {what} for {', '.join(records) or 'no split'}, but not for {split}: preprocess it with the "
                    "dictionaries of this folder (--srcdict, --tgtdict)"
                )
            for name in records[split].files:
                self.files[name].verify_size(folder / name)

    def verify_quickly(self, folder: str | os.PathLike, lang: str, splits: Iterable[str]) -> None:
        """Compares the dictionaries' hashes and the sizes of the files: what can be done at every start.

        Args:
            folder: the folder that this manifest came from
            lang: language of the trees to be read
            splits: splits to be read

        Raises:
            MissingTreesError: a language or split has no trees.
            DictionaryMismatchError: a dictionary is not the one that the files were made with.
            CorruptFileError: a file is missing or has another size.
        """
        folder = Path(folder)
        is_symbols = lang in self.symbols
        labels = [] if is_symbols else [self.side(lang).labels]
        for name in (f"dict.{lang}.txt", *labels):
            self.files[name].verify_content(folder / name)
        for split in splits:
            for name in (self.symbol_split if is_symbols else self.split)(lang, split).files:
                self.files[name].verify_size(folder / name)


def _from_json(values: dict[str, Any]) -> Manifest:
    sides = {lang: _side_from_json(side, SideRecord, SplitRecord) for lang, side in values["sides"].items()}
    symbols = {lang: _side_from_json(side, SymbolSideRecord, SymbolSplitRecord) for lang, side in values.get("symbols", {}).items()}
    files = {name: FileRecord(**record) for name, record in values["files"].items()}
    classification = values.get("classification")
    if classification is not None:
        classification = ClassificationRecord.from_json(classification)
    insertion = values.get("insertion")
    if insertion is not None:
        insertion = InsertionRecord.from_json(insertion)
    everything = [*sides.values(), *symbols.values(), *(record for record in (classification, insertion) if record is not None)]
    prefixes = [split.prefix for side in everything for split in side.splits.values()]
    if outside := [name for name in (*files, *prefixes) if os.path.basename(name) != name or name in (os.curdir, os.pardir)]:
        raise CorruptFileError(f"{MANIFEST_NAME} names files outside its folder: {', '.join(outside)}")
    manifest = Manifest(**{**values, "sides": sides, "symbols": symbols, "files": files, "classification": classification, "insertion": insertion})
    named = [f"dict.{lang}.txt" for lang in (*sides, *symbols)]
    named += [f"dict.{CLASS}.txt"] if classification is not None and classification.splits else []
    named += [f"dict.{lang}.txt" for lang in (values["source_lang"], insertion.lang)] if insertion is not None else []
    named += [name for side in everything for split in side.splits.values() for name in split.files]
    named += [side.labels for side in sides.values()]
    named += [side.grammar for side in symbols.values() if side.grammar is not None]
    if missing := [name for name in named if name not in files]:
        raise KeyError(f"no record of {', '.join(missing)}")
    return manifest


def _side_from_json(values: dict[str, Any], side: type, split: type) -> Any:
    return side(**{**values, "splits": {name: split(**record) for name, record in values["splits"].items()}})
