"""Print one SHA-256 over its arguments, files and folders: the key of a recipe's stage.

A file counts with its content, a folder with the names, sizes and times of the files below it, anything else as text.
Arguments that start with "=" are text even where a file of that name exists.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path


def add(digest, argument: str) -> None:
    """Feed one argument to the digest, framed by its kind and length."""
    path = Path(argument)
    if argument.startswith("=") or not path.exists():
        kind, content = "text", argument.encode()
    elif path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        rows = (f"{file.relative_to(path)} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files)
        kind, content = "folder", "\n".join(rows).encode()
    else:
        with open(path, "rb") as stream:
            kind, content = "file", hashlib.file_digest(stream, "sha256").digest()
    digest.update(f"{kind} {len(content)} ".encode() + content)


def main() -> None:
    """Digest of the command line's arguments on standard output."""
    digest = hashlib.sha256()
    for argument in sys.argv[1:]:
        add(digest, argument)
    print(digest.hexdigest())


if __name__ == "__main__":
    main()
