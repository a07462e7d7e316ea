"""``tree.json``: what binds token files, tree files and dictionaries of a folder, and how its text was parsed."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, ClassVar, Protocol, TypeVar

from tree_fairseq import __version__
from tree_fairseq.data_bin.inputs import file_sha256
from tree_fairseq.data_bin.symbol_sides import SymbolSideRecord, SymbolSplitRecord
from tree_fairseq.errors import CorruptFileError, DataFolderError, DictionaryMismatchError, MissingTreesError
from tree_fairseq.files import read_json, write_json
from tree_fairseq.parsing.parsers import ParserOptions

# FROM data/file_record: What ``tree.json`` tells of a file, and whether it is still that file.

MANIFEST_NAME = "tree.json"


@dataclass(frozen=True)
class FileRecord:
    """Size in bytes and SHA-256 of a file."""

    size: int
    sha256: str

    @classmethod
    def of(cls, path: str | os.PathLike) -> FileRecord:
        """The record of an existing file."""
        return cls(os.stat(path).st_size, file_sha256(path))

    def verify_content(self, path: Path) -> None:
        """Makes sure that a dictionary is the recorded one.

        Raises:
            CorruptFileError: it is missing.
            DictionaryMismatchError: it has another content.
        """
        if not path.exists():
            raise CorruptFileError(f"{path} is missing. Preprocess again")
        if FileRecord.of(path) != self:
            raise DictionaryMismatchError(
                f"{path} is not the dictionary that the files beside it were made with (its hash differs from the one in "
                f"{MANIFEST_NAME}): ids would mean other words. Put the original back, or preprocess again with it"
            )

    def verify_size(self, path: Path) -> None:
        """Makes sure that a file exists and has the recorded size.

        Raises:
            CorruptFileError: otherwise.
        """
        if not path.exists():
            raise CorruptFileError(f"{path} is missing. Preprocess again")
        if (size := path.stat().st_size) != self.size:
            raise CorruptFileError(
                f"{path} has {size} bytes where {self.size} were written: it was cut off or replaced. Preprocess again"
            )


# FROM data/side_record: What ``tree.json`` tells of the constituency trees of a language.


@dataclass
class SplitRecord:
    """The trees of one side of one split.

    Attributes:
        prefix: name of the token files without extension, such as ``train.en-de.en``
        lines: lines
        leaves: leaves of all lines, without EOS
        nodes: nodes of all lines' full forests
        failed: numbers of the lines, from 1, in which a sentence could not be parsed and was given a flat tree
        unknown_labels: nodes whose label is not in the label dictionary
        files: names of the token files and tree files
    """

    prefix: str
    lines: int
    leaves: int
    nodes: int
    failed: list[int]
    unknown_labels: int
    files: list[str]


@dataclass
class SideRecord:
    """The trees of one language.

    Attributes:
        side: ``source`` or ``target``
        parser: the parser's options, for parsing new text the same way (:meth:`options`)
        identity: name, version and model of the parser that ran
        labels: name of the label dictionary
        splits: by name (``train``, ``valid``, ``valid1``, ...)
    """

    side: str
    parser: dict[str, Any]
    identity: dict[str, Any]
    labels: str
    splits: dict[str, SplitRecord] = field(default_factory=dict)

    @property
    def options(self) -> ParserOptions:
        """How the text of this side was parsed."""
        return ParserOptions.from_json(self.parser)


FORMAT_VERSION = 1


class Section(Protocol):
    """The part of ``tree.json`` that one kind of folder adds, such as one for classification.

    Attributes:
        contents: plural noun for the content of a split, as error messages name it
        missing: what a user does who needs the section and does not have it; the end of a sentence
        splits: by name; each has the ``prefix`` of its token files and the names of all its ``files``
    """

    contents: ClassVar[str]
    missing: ClassVar[str]
    splits: dict[str, Any]

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Section:
        """Restores the record from the result of ``dataclasses.asdict``."""

    def dictionaries(self, source_lang: str) -> list[str]:
        """File names of the dictionaries that the section depends on."""


S = TypeVar("S", bound=Section)
_SECTIONS: dict[str, type[Section]] = {}


def register_section(name: str) -> Callable[[type[S]], type[S]]:
    """Class decorator: registers the dataclass of a section under its key in ``tree.json``."""

    def register(section: type[S]) -> type[S]:
        _SECTIONS[name] = section
        return section

    return register


def _name_of(section: type[Section]) -> str:
    return next(name for name, other in _SECTIONS.items() if other is section)


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
        sections: what registered kinds of folder have added, by name
        unread: the sections of kinds that are not registered, as they were read
    """

    source_lang: str
    target_lang: str | None
    sides: dict[str, SideRecord] = field(default_factory=dict)
    files: dict[str, FileRecord] = field(default_factory=dict)
    format_version: int = FORMAT_VERSION
    package_version: str = __version__
    symbols: dict[str, SymbolSideRecord] = field(default_factory=dict)
    sections: dict[str, Any] = field(default_factory=dict)
    unread: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: str | os.PathLike) -> Manifest:
        """Reads the manifest of a folder.

        Raises:
            MissingTreesError: the folder has none.
            CorruptFileError: it cannot be read.
            DataFolderError: it was written by a later version of this package.
        """
        path = Path(folder) / MANIFEST_NAME
        values = read_json(path)
        if values is None:
            raise MissingTreesError(
                f"{folder} has no trees: there is no {MANIFEST_NAME}. Preprocess with --tree-parser, or --source-modality tree "
                "or --target-modality tree, or add trees with `python -m tree_fairseq.commands.annotate`"
            )
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
        sections = {**values.pop("unread"), **values.pop("sections")}
        write_json(Path(folder) / MANIFEST_NAME, {**values, **sections})

    def section(self, kind: type[S]) -> S | None:
        """The section of a registered kind of folder, or None if this folder has none."""
        return self.sections.get(_name_of(kind))

    def set_section(self, record: Section) -> None:
        """Adds or replaces the section of a kind of folder."""
        self.sections[_name_of(type(record))] = record

    def side(self, lang: str) -> SideRecord:
        """The trees of a language.

        Raises:
            MissingTreesError: it has none.
        """
        try:
            return self.sides[lang]
        except KeyError:
            raise MissingTreesError(
                f"there are trees for {', '.join(self.sides) or 'no language'}, but not for {lang}"
            ) from None

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
                "Add them with `python -m tree_fairseq.commands.annotate`"
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
        for sides in (self.sides, self.symbols, self._sections_by_language):
            record = sides[lang].splits.pop(split, None) if lang in sides else None
            for name in record.files if record else ():
                self.files.pop(name, None)

    @property
    def languages(self) -> dict[str, Any]:
        """Everything that belongs to one language, by language: sides, symbol sides, and sections that name one."""
        return {**self.sides, **self.symbols, **self._sections_by_language}

    @property
    def _sections_by_language(self) -> dict[str, Any]:
        return {record.lang: record for record in self.sections.values() if getattr(record, "lang", None)}

    def verify_section(self, kind: type[S], folder: str | os.PathLike, splits: Iterable[str]) -> S:
        """As :meth:`verify_quickly`, for the section of a kind of folder and its dictionaries.

        Returns:
            the section

        Raises:
            MissingTreesError: the folder has no such section, or the section does not have a split.
            DictionaryMismatchError, CorruptFileError: as :meth:`verify_quickly`.
        """
        folder, record = Path(folder), self.section(kind)
        if record is None:
            raise MissingTreesError(
                f"{folder} has no {kind.contents} ({MANIFEST_NAME} does not mention them): {kind.missing}"
            )
        for name in record.dictionaries(self.source_lang):
            if name in self.files:
                self.files[name].verify_content(folder / name)
        self._verify_splits(folder, kind.contents, record.splits, splits)
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
    symbols = {
        lang: _side_from_json(side, SymbolSideRecord, SymbolSplitRecord)
        for lang, side in values.get("symbols", {}).items()
    }
    files = {name: FileRecord(**record) for name, record in values["files"].items()}
    names = {entry.name for entry in dataclasses.fields(Manifest)} - {"sections", "unread"}
    sections = {name: value for name, value in values.items() if name not in names and value is not None}
    records = {name: _SECTIONS[name].from_json(value) for name, value in sections.items() if name in _SECTIONS}
    unread = {name: dict(value) for name, value in sections.items() if name not in _SECTIONS}
    everything = [*sides.values(), *symbols.values(), *records.values()]
    prefixes = [split.prefix for side in everything for split in side.splits.values()]
    if outside := [
        name for name in (*files, *prefixes) if os.path.basename(name) != name or name in (os.curdir, os.pardir)
    ]:
        raise CorruptFileError(f"{MANIFEST_NAME} names files outside its folder: {', '.join(outside)}")
    known = {name: value for name, value in values.items() if name in names}
    manifest = Manifest(
        **{**known, "sides": sides, "symbols": symbols, "files": files, "sections": records, "unread": unread}
    )
    named = [f"dict.{lang}.txt" for lang in (*sides, *symbols)]
    named += [name for record in records.values() for name in record.dictionaries(values["source_lang"])]
    named += [name for side in everything for split in side.splits.values() for name in split.files]
    named += [side.labels for side in sides.values()]
    named += [side.grammar for side in symbols.values() if side.grammar is not None]
    if missing := [name for name in named if name not in files]:
        raise KeyError(f"no record of {', '.join(missing)}")
    return manifest


def _side_from_json(values: dict[str, Any], side: type, split: type) -> Any:
    return side(**{**values, "splits": {name: split(**record) for name, record in values["splits"].items()}})
