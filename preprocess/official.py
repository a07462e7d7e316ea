"""Finds and reads the files that shared tasks publish: archives, ``train.tags`` files, XML and SGM test sets."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

from preprocess.corpora import CorpusError, clean_line, read_lines
from preprocess.fetch import extract

_SEGMENT = re.compile(r"<seg[^>]*>(.*?)</seg>", re.IGNORECASE | re.DOTALL)
# lines of a train.tags file that contain no text; titles and descriptions are text and stay
_META = re.compile(r"^\s*<(/?doc|url|talkid|keywords|speaker|reviewer|translator)\b", re.IGNORECASE)
_TAG = re.compile(r"</?(title|description)>", re.IGNORECASE)


def unpack(data: Path, work: Path) -> list[Path]:
    """Returns the folders to search: ``data``, and an extracted folder under ``work`` for each archive in ``data``.

    An archive is extracted once, into ``NAME.part``, which is renamed when it is complete.
    """
    folders = [data]
    for archive in sorted([*data.glob("*.tgz"), *data.glob("*.tar.gz"), *data.glob("*.tar")]):
        folder = work / archive.name.split(".t")[0]
        if not folder.exists():
            partial = folder.with_name(folder.name + ".part")
            extract(archive, partial)
            partial.rename(folder)
        folders.append(folder)
    return folders


def find(folders: list[Path], pattern: str) -> Path:
    """Returns the first file, by sorted path, whose name matches the glob ``pattern`` under one of ``folders``."""
    for folder in folders:
        found = sorted(path for path in folder.rglob(pattern) if path.is_file() and not path.name.startswith("."))
        if found:
            return found[0]
    places = ", ".join(str(folder) for folder in folders)
    raise CorpusError(f"no file named {pattern} under {places}")


def segments(path: Path) -> Iterator[str]:
    """Yields the text of each ``<seg>`` of an XML or SGM test set, with entities resolved.

    The file is read as text, because these files are not well-formed XML (bare ampersands).
    """
    text = path.read_text(encoding="utf-8")
    for match in _SEGMENT.finditer(text):
        # fairseq's preparation of the same sets replaces typographic apostrophes, too
        yield clean_line(html.unescape(match.group(1))).replace("\u2019", "'")


def tagged_lines(path: Path) -> Iterator[str]:
    """Yields the text lines of a ``train.tags`` file, without metadata and without title and description tags."""
    for line in read_lines(path):
        if not _META.match(line):
            yield clean_line(_TAG.sub("", line))
