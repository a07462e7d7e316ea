"""The files of a parser's model: where they are, and the digest by which parses of other models are told apart."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import warnings
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from tree_fairseq.errors import ParserUnavailableError
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.support.files import file_sha256

Models = dict[str, Path]
"""The files of one parser, by a name that says what each is for."""


def models_digest(models: Mapping[str, Path]) -> str:
    """Returns the sha256 over the contents of all files."""
    total = hashlib.sha256()
    for name, path in sorted(models.items()):
        status = path.stat()
        total.update(f"{name} {_file_digest(path, status.st_size, status.st_mtime_ns)}\n".encode())
    return total.hexdigest()


@lru_cache(maxsize=64)
def _file_digest(path: Path, size: int, modified: int) -> str:
    """Returns the sha256 of a file. A changed file has another size or time and is read again."""
    return file_sha256(path)


def path_digest(path: Path) -> str:
    """Returns the sha256 over a model that is one file, or a folder of files."""
    files = [path] if path.is_file() else [file for file in sorted(path.rglob("*")) if file.is_file()]
    return models_digest({str(file.relative_to(path.parent)): file for file in files})


def given_path(options: ParserOptions) -> Path | None:
    """Returns the path that ``--parser-dir`` names; raises ParserUnavailableError if nothing is there."""
    if options.parser_dir is None:
        return None
    if not (path := Path(options.parser_dir)).exists():
        raise ParserUnavailableError(f"--parser-dir {path}: there is no such file or folder")
    return path


def default_model(options: ParserOptions, models: Mapping[str, str], parser: str) -> str:
    """Returns the model that ``--parser-package`` names, or the one for the language.

    Raises ParserUnavailableError, with the languages that ``parser`` has models for, if there is none.
    """
    if options.package is not None:
        return options.package
    lang = options.lang.strip().lower().split("-")[0]
    if lang not in models:
        raise ParserUnavailableError(
            f"{parser} has no model for {options.lang!r} that we know; it has some for {', '.join(sorted(models))}. "
            "--parser-package names another one, and --parser-dir a model of your own"
        )
    return models[lang]


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Silences the warnings of older libraries about a newer torch: nobody who parses can act on them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def library_version(distribution: str) -> str:
    """Returns the version of an installed distribution, or ``unknown``."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
