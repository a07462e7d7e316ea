"""``tree.json``: the record of a folder's token files, tree files and dictionaries, and of how its text was parsed."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, ClassVar, TypeVar

from tree_fairseq import __version__, errors
from tree_fairseq.data_bin.index_files import MANIFEST_NAME
from tree_fairseq.data_bin.records import Record, SideRecord, SymbolSideRecord
from tree_fairseq.data_bin.token_files import token_file_names, token_prefix
from tree_fairseq.errors import CorruptFileError, DataFolderError, DictionaryMismatchError, MissingTreesError, missing
from tree_fairseq.support.files import file_sha256, read_json, require_plain_file, write_json

FORMAT_VERSION = 1

Export = Callable[[Path, str], Iterable[str]]  # writes a split of a folder back as lines of text


@dataclass(frozen=True)
class FileRecord:
    """Size in bytes and SHA-256 of a file."""

    size: int
    sha256: str

    @classmethod
    def of(cls, path: str | os.PathLike) -> FileRecord:
        """Returns the record of an existing file; raises CorruptFileError for a pipe or a device."""
        require_plain_file(path)
        return cls(os.stat(path).st_size, file_sha256(path))

    def verify_content(self, path: Path) -> None:
        """Compares a dictionary or a subword model, whose content decides what ids mean.

        Raises CorruptFileError if it is missing, and DictionaryMismatchError if it is another one.
        """
        if _present(path).stat().st_size != self.size or FileRecord.of(path) != self:
            raise DictionaryMismatchError(
                f"{path} is not the dictionary or subword model that the files beside it were made with (its hash "
                f"differs from the one in {MANIFEST_NAME}): ids would mean other words. Put the original back, or "
                "preprocess again with it"
            )

    def verify_size(self, path: Path) -> None:
        """Raises CorruptFileError if a file is missing or has not the recorded size."""
        if (size := _present(path).stat().st_size) != self.size:
            raise CorruptFileError(
                f"{path} has {size} bytes where {self.size} were written: it was cut off or replaced. Preprocess again"
            )


def _present(path: Path) -> Path:
    """Returns the path of a plain file; raises CorruptFileError if it is missing, or something else."""
    require_plain_file(path)
    if not path.exists():
        raise CorruptFileError(f"{path} is missing. Copy it from where the folder was made, or preprocess again")
    return path


class Section(Record):
    """The part of ``tree.json`` that one kind of data set adds, such as one for classification."""

    key: ClassVar[str]  # in ``tree.json``
    contents: ClassVar[str]  # plural noun for the content of a split, for error messages
    missing: ClassVar[str]  # advice for a user whose folder lacks the section, the end of a sentence

    def dictionaries(self, source_lang: str) -> list[str]:
        """Returns the file names of the dictionaries that the section depends on."""
        raise NotImplementedError

    def exports(self) -> dict[str, Export]:
        """Returns what writes a side (``source`` or ``target``) back as text, where that is not done as for others."""
        return {}

    def refuse_trees(self, folder: Path) -> None:
        """Raises InputError if constituency trees cannot be added to a folder with this section."""


S = TypeVar("S", bound=Section)
_SECTIONS: dict[str, type[Section]] = {}


def register_section(name: str) -> Callable[[type[S]], type[S]]:
    """Class decorator: registers the dataclass of a section under its key in ``tree.json``."""

    def register(section: type[S]) -> type[S]:
        section.key, _SECTIONS[name] = name, section
        return section

    return register


@dataclass
class Manifest:
    """The record of a folder."""

    source_lang: str
    target_lang: str | None  # None in a folder that has only a source
    sides: dict[str, SideRecord] = field(default_factory=dict)  # sides with constituency trees, by language
    # dictionaries, token files of both languages and tree files, by name
    files: dict[str, FileRecord] = field(default_factory=dict)
    format_version: int = FORMAT_VERSION
    package_version: str = __version__
    symbols: dict[str, SymbolSideRecord] = field(default_factory=dict)  # sides that are symbol trees, by language
    # those that registered kinds of data set have added, by name
    sections: dict[str, Any] = field(default_factory=dict)
    checksums: dict[str, str] = field(default_factory=dict)  # that of the manifest itself, by name

    @classmethod
    def load(cls, folder: str | os.PathLike) -> Manifest:
        """Reads the manifest of a folder; raises MissingTreesError without one.

        Raises DataFolderError if it cannot be read or a later version of this package wrote it.
        """
        path = Path(folder) / MANIFEST_NAME
        values = read_json(path)
        if values is None and not Path(folder).is_dir():
            raise MissingTreesError(str(missing(folder, "folder")))
        if values is None:
            raise MissingTreesError(
                f"{folder} has no trees: there is no {MANIFEST_NAME}. Preprocess with --tree-parser, or "
                "--source-modality tree or --target-modality tree, or add trees with `tree-fairseq annotate`"
            )
        try:
            if values["format_version"] > FORMAT_VERSION:
                raise DataFolderError(
                    f"{path} has format {values['format_version']}, written by tree_fairseq "
                    f"{values['package_version']}; this is {__version__}, which reads formats up to {FORMAT_VERSION}. "
                    "Use that version or a later one"
                )
            return _from_json(values)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise CorruptFileError(f"{path} is not a manifest of trees: {error!r}") from None

    @classmethod
    def to_extend(cls, folder: str | os.PathLike, source_lang: str, target_lang: str | None) -> Manifest:
        """Returns the manifest of a folder, or a new one; raises DataFolderError if the languages are others."""
        if not (Path(folder) / MANIFEST_NAME).exists():
            return cls(source_lang, target_lang)
        manifest = cls.load(folder)
        if (manifest.source_lang, manifest.target_lang) != (source_lang, target_lang):
            own = f"the folder holds trees of {manifest.source_lang}-{manifest.target_lang}"
            is_reversed = (manifest.target_lang, manifest.source_lang) == (source_lang, target_lang)
            way_out = f"give -s {target_lang} -t {source_lang}, or choose" if is_reversed else "choose"
            raise DataFolderError(f"{own}, not of {source_lang}-{target_lang}: {way_out} another destination")
        manifest.package_version = __version__
        return manifest

    def save(self, folder: str | os.PathLike) -> None:
        """Writes the manifest into a folder; the file gets its name when it is complete."""
        values = dataclasses.asdict(self)
        values |= values.pop("sections")
        # A command that was killed and is given again enters them in another order.
        values["files"] = dict(sorted(values["files"].items()))
        self.checksums = values["checksums"] = {MANIFEST_NAME: _own_checksum(values)}
        write_json(Path(folder) / MANIFEST_NAME, values)

    @staticmethod
    def problems(folder: str | os.PathLike) -> list[str]:
        """Returns a sentence if the manifest of a folder does not have its checksum."""
        path = Path(folder) / MANIFEST_NAME
        values = read_json(path)
        is_whole = values["checksums"].get(MANIFEST_NAME) == _own_checksum(values)
        return [] if is_whole else [f"{path} is not as it was written: it was damaged or edited"]

    def section(self, kind: type[S]) -> S | None:
        """Returns the section of a registered kind of data set, or None if this folder has no such section."""
        return self.sections.get(kind.key)

    def side(self, lang: str) -> SideRecord:
        """Returns the record of a language with constituency trees; raises MissingTreesError for other languages."""
        if lang not in self.sides:
            raise MissingTreesError(f"there are trees for {', '.join(self.sides) or 'no language'}, but not for {lang}")
        return self.sides[lang]

    def split(self, lang: str, split: str) -> Any:
        """Returns the record of a language's trees in a split; raises MissingTreesError if there are none."""
        if lang in self.symbols:
            return _record_of(split, self.symbols[lang].splits, f"there are symbol trees of {lang}", _PREPROCESS)
        return _record_of(split, self.side(lang).splits, f"there are trees of {lang}", _ANNOTATE)

    @property
    def languages(self) -> dict[str, Any]:
        """The records of sides, symbol sides and sections that belong to one language, by language."""
        named = {record.lang: record for record in self.sections.values() if getattr(record, "lang", None)}
        return {**self.sides, **self.symbols, **named}

    def differences(self, other: Manifest) -> list[str]:
        """Returns the differences from another folder that change what ids mean, or how trees were made.

        These are the names of dictionaries and subword models, and what the records of sides and sections name.
        """
        names = sorted(name for name in {*self.files, *other.files} if name.startswith(("dict.", "subwords.")))
        found = [name for name in names if self.files.get(name) != other.files.get(name)]
        pairs = (self.sides, other.sides), (self.symbols, other.symbols), (self.sections, other.sections)
        for ours, theirs in pairs:
            for name in {**ours, **theirs}:
                if name not in ours or name not in theirs:
                    found.append(f"the records of {name}")
                    continue
                differing = ours[name].differences(theirs[name])
                found += [f"the parser of {name}" if each.startswith("identity: ") else each for each in differing]
        return found

    def forget_splits(self, record: Any, splits: Iterable[str]) -> None:
        """Removes splits from the record of a side or a section, and their files."""
        for split in record.splits.keys() & set(splits):
            for name in record.splits.pop(split).files:
                self.files.pop(name, None)

    def keep_splits(self, old: Any, new: Any, rewritten: Iterable[str], contents: str) -> None:
        """Moves the splits that are not ``rewritten`` from the old record (or None) to the new one.

        Raises DataFolderError if they were made differently; ``contents`` is a plural noun for its message.
        """
        if old is None:
            return
        self.forget_splits(old, rewritten)
        if old.splits and (differences := old.differences(new)):
            raise DataFolderError(
                f"the {contents} for {', '.join(old.splits)} in this folder were made differently from what is asked "
                f"for now ({'; '.join(differences)}): ask for the same, or choose another destination"
            )
        new.splits = old.splits

    def verify_quickly(self, folder: str | os.PathLike, lang: str, splits: Iterable[str]) -> None:
        """Compares the dictionaries in ``folder``, and the sizes of the files of some splits, with this record.

        Raises MissingTreesError if a language or split has no trees, DictionaryMismatchError if a dictionary is not
        the one that the files were made with, and CorruptFileError if a file is missing or has another size.
        """
        names = [f"dict.{lang}.txt"] if lang in self.symbols else [f"dict.{lang}.txt", self.side(lang).labels]
        self._verify(Path(folder), names, [self.split(lang, split) for split in splits])

    def verify_section(self, kind: type[S], folder: str | os.PathLike, splits: Iterable[str]) -> S:
        """Checks the section of a kind of data set like `verify_quickly`, and returns the section."""
        section = self.section(kind)
        if section is None:
            raise MissingTreesError(
                f"{folder} has no {kind.contents} ({MANIFEST_NAME} does not mention them): {kind.missing}"
            )
        names = [name for name in section.dictionaries(self.source_lang) if name in self.files]
        found = f"{folder} has {kind.contents}"
        self._verify(Path(folder), names, [_record_of(split, section.splits, found, _PREPROCESS) for split in splits])
        return section

    def verify_texts(self, folder: str | os.PathLike, splits: Iterable[str] = ()) -> None:
        """Checks the recorded dictionaries of both languages and token files of some splits like `verify_quickly`."""
        folder, names = Path(folder), []
        for lang in filter(None, (self.source_lang, self.target_lang)):
            if record := self.files.get(f"dict.{lang}.txt"):
                record.verify_content(folder / f"dict.{lang}.txt")
            prefixes = (token_prefix(split, self.source_lang, self.target_lang, lang) for split in splits)
            names += [f"{prefix}{suffix}" for prefix in prefixes for suffix in ("", ".bin", ".idx")]
        for name in filter(self.files.__contains__, names):
            self.files[name].verify_size(folder / name)

    def _verify(self, folder: Path, dictionaries: Iterable[str], records: Iterable[Any]) -> None:
        for name in dictionaries:
            self.files[name].verify_content(folder / name)
        for record in records:
            for name in record.files:
                self.files[name].verify_size(folder / name)

    def enter_files(self, paths: Iterable[Path]) -> None:
        """Enters the sizes and hashes of files."""
        for path in paths:
            self.files[path.name] = FileRecord.of(path)

    def enter_dictionary(self, path: Path, in_use: bool) -> None:
        """Enters a dictionary; raises DictionaryMismatchError if files that stay (``in_use``) need another one."""
        if in_use and path.name in self.files:
            self.files[path.name].verify_content(path)
        self.enter_files([path])

    def enter_tokens(self, folder: Path, languages: Sequence[str], splits: Iterable[str]) -> None:
        """Enters the dictionaries of languages and their token files of some splits."""
        in_use = any(record.splits for record in (*self.languages.values(), *self.sections.values()))
        for lang in languages:
            self.enter_dictionary(folder / f"dict.{lang}.txt", in_use)
        for split in splits:
            for lang in languages:
                prefix = folder / token_prefix(split, self.source_lang, self.target_lang, lang)
                self.enter_files(folder / name for name in token_file_names(prefix))


def _own_checksum(values: dict[str, Any]) -> str:
    content = json.dumps({**values, "checksums": {}}, sort_keys=True, default=str)
    return f"{zlib.crc32(content.encode()):08x}"


_ANNOTATE = "add them with `tree-fairseq annotate`"
_PREPROCESS = "preprocess it with the dictionaries of this folder (--srcdict, --tgtdict)"


def _record_of(split: str, records: dict[str, Any], found: str, way_out: str) -> Any:
    if split not in records:
        there = ", ".join(records) or "no split"
        near = errors.did_you_mean(split, records)
        raise MissingTreesError(f"{found} for {there}, but not for {split}: {way_out}. {near}".rstrip())
    return records[split]


def _from_json(values: dict[str, Any]) -> Manifest:
    sides = {lang: SideRecord.from_json(side) for lang, side in values["sides"].items()}
    symbols = {lang: SymbolSideRecord.from_json(side) for lang, side in values["symbols"].items()}
    files = {name: FileRecord(**record) for name, record in values["files"].items()}
    names = {entry.name for entry in dataclasses.fields(Manifest)} - {"sections"}
    # A process that reads trees alone has not registered all kinds of data set.
    records = {name: _SECTIONS[name].from_json(value) for name, value in values.items() if name in _SECTIONS}
    if not all(isinstance(text, str) for text in values["checksums"].values()):
        raise TypeError("checksums are not text")
    everything: list[Any] = [*sides.values(), *symbols.values(), *records.values()]
    for record, name in itertools.product(everything, ("options", "text_options")):
        getattr(record, name, None)  # raises InputError for parser options that this version does not know
    prefixes = [split.prefix for side in everything for split in side.splits.values()]
    languages = [values["source_lang"], values["target_lang"] or ""]
    if outside := [
        name
        for name in (*files, *prefixes, *languages)
        if os.path.basename(name) != name or name in (os.curdir, os.pardir)
    ]:
        raise CorruptFileError(f"{MANIFEST_NAME} names files outside its folder: {', '.join(outside)}")
    known = {name: value for name, value in values.items() if name in names}
    manifest = Manifest(**{**known, "sides": sides, "symbols": symbols, "files": files, "sections": records})
    named = [f"dict.{lang}.txt" for lang in (*sides, *symbols)]
    named += [name for record in records.values() for name in record.dictionaries(values["source_lang"])]
    named += [name for side in everything for split in side.splits.values() for name in split.files]
    named += [side.labels for side in sides.values()]
    named += [name for side in symbols.values() for name in (side.grammar, side.spelling, side.types) if name]
    if missing := [name for name in named if name not in files]:
        raise KeyError(f"no record of {', '.join(missing)}")
    return manifest
