"""What ``tree.json`` tells of a file, and whether it is still that file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tree_fairseq.data.inputs import file_sha256
from tree_fairseq.errors import CorruptFileError, DictionaryMismatchError

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
            raise CorruptFileError(f"{path} has {size} bytes where {self.size} were written: it was cut off or replaced. Preprocess again")
