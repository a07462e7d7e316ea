"""How the text of a folder was tokenised and split into subwords: a section of ``tree.json``, and models beside it.

:mod:`tree_fairseq.tasks.folder_text` prepares new text in the same way, and joins the subwords of outputs.
"""

from __future__ import annotations

import dataclasses
from argparse import Namespace
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Optional

from fairseq.data import encoders

from tree_fairseq.data_bin.manifest import Manifest, Section, register_section
from tree_fairseq.errors import MissingLibraryError, MissingTreesError
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.support.files import file_sha256
from tree_fairseq.support.python_versions import import_library

BPE, SENTENCEPIECE = "bpe", "sentencepiece"
SUFFIXES = {BPE: "codes", SENTENCEPIECE: "model"}  # the end of the name of a model's file, by its kind


_LIBRARIES = {"moses": "sacremoses", "nltk": "nltk", "subword_nmt": "subword_nmt", "sentencepiece": "sentencepiece"}


def require_encoder_library(option: str, name: Any) -> None:
    """Raises MissingLibraryError if the library of fairseq's ``--tokenizer`` or ``--bpe`` is not there, or its data."""
    if name in _LIBRARIES:
        library = import_library(_LIBRARIES[name], "nltk" if name == "nltk" else "subwords", f"--{option} {name}")
    if name == "nltk":
        try:
            library.word_tokenize("a")
        except LookupError as error:
            message = f"--{option} nltk needs data of NLTK: python -m nltk.downloader punkt punkt_tab"
            raise MissingLibraryError(message) from error


@dataclass(frozen=True)
class SideText:
    """The text of one language."""

    kind: Optional[str] = None  # how words are split: ``bpe`` (subword-nmt), ``sentencepiece``, or None for whole words
    model: Optional[str] = None  # name of the file in the folder that has the subword model
    sha256: Optional[str] = None  # the hash of that file; None until the model has been learned
    # the number that ``--learn-subwords`` asked for, if the model was learned with the folder
    learned: Optional[int] = None
    # the options of fairseq's tokeniser, with its name under ``tokenizer``, or None
    tokenizer: Optional[dict[str, Any]] = None

    def build_tokenizer(self) -> Any:
        """Returns fairseq's tokeniser, or None; raises MissingLibraryError without its library."""
        if self.tokenizer is None:
            return None
        require_encoder_library("tokenizer", self.tokenizer["tokenizer"])
        return encoders.build_tokenizer(Namespace(**self.tokenizer))


@dataclass
class TextSplitRecord:
    """A split of the text; other records name its files."""

    prefix: str
    files: list[str] = field(default_factory=list)


@register_section("text")
@dataclass
class TextRecord(Section):
    """The text of a folder; ``sides`` by language."""

    contents: ClassVar[str] = "tokens and subwords"
    missing: ClassVar[str] = "preprocess with --bpe-codes, --sentencepiece-model or --learn-subwords"
    split_record = TextSplitRecord

    sides: dict[str, SideText] = field(default_factory=dict)
    splits: dict[str, TextSplitRecord] = field(default_factory=dict)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> TextRecord:
        """Restores the record from the result of ``dataclasses.asdict``."""
        sides = {lang: SideText(**side) for lang, side in values["sides"].items()}
        return super().from_json({**values, "sides": sides})

    def differences(self, other: TextRecord) -> list[str]:
        """Returns the differences through which the two turn the same text into different tokens."""
        found = []
        for lang in sorted({*self.sides, *other.sides}):
            ours, theirs = self.sides.get(lang, SideText()), other.sides.get(lang, SideText())
            for name in ("kind", "tokenizer", "sha256"):
                one, another = getattr(ours, name), getattr(theirs, name)
                if name == "sha256" and None in (one, another) and ours.learned == theirs.learned:
                    continue
                if one != another:
                    what = "subword model" if name == "sha256" else name
                    found.append(f"{what} of {lang}: {one} and {another}")
        return found

    def dictionaries(self, source_lang: str) -> list[str]:
        """Returns the names of the files of subword models."""
        return sorted({side.model for side in self.sides.values() if side.model is not None})


def load_text_record(folder: Path) -> Optional[TextRecord]:
    """Returns the record of a folder, or None if it has none.

    Raises CorruptFileError if a subword model is missing, and DictionaryMismatchError if it is another model.
    """
    try:
        manifest = Manifest.load(folder)
    except MissingTreesError:
        return None
    return None if manifest.section(TextRecord) is None else manifest.verify_section(TextRecord, folder, [])


def with_folder_model(options: ParserOptions, folder: Path, lang: str) -> ParserOptions:
    """Returns the options of a language's parser, with the subword model in the folder if there is one.

    Raises the errors of :func:`load_text_record`.
    """
    record = load_text_record(folder)
    side = SideText() if record is None else record.sides.get(lang, SideText())
    return options if side.model is None else options.replace(subword_model=str(folder / side.model))


def complete(record: TextRecord, folder: Path) -> None:
    """Enters the hashes of the models in ``folder`` that were learned with it."""
    for lang, side in record.sides.items():
        if side.model is not None and side.sha256 is None:
            record.sides[lang] = dataclasses.replace(side, sha256=file_sha256(folder / side.model))
