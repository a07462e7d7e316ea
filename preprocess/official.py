"""Finding and reading what shared tasks publish: archives, ``train.tags`` files, XML and SGM test sets."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

from preprocess.corpora import CorpusError, clean_line, read_lines
from preprocess.fetch import extract

_SEGMENT = re.compile(r"<seg[^>]*>(.*?)</seg>", re.IGNORECASE | re.DOTALL)
# lines of a train.tags file that hold no text; titles and descriptions are text and keep their place
_META = re.compile(r"^\s*<(/?doc|url|talkid|keywords|speaker|reviewer|translator)\b", re.IGNORECASE)
_TAG = re.compile(r"</?(title|description)>", re.IGNORECASE)


def unpack(data: Path, work: Path) -> list[Path]:
    """Folders to search: ``data`` and one extracted folder under ``work`` for each archive found in it.

    An archive is extracted once: into ``NAME.part``, renamed when complete.
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
    """The file whose name matches the glob ``pattern`` somewhere under ``folders``; the first by sorted path.

    Raises CorpusError, naming the pattern and the folders, where there is none.
    """
    for folder in folders:
        found = sorted(path for path in folder.rglob(pattern) if path.is_file() and not path.name.startswith("."))
        if found:
            return found[0]
    places = ", ".join(str(folder) for folder in folders)
    raise CorpusError(f"no file named {pattern} under {places}")


def segments(path: Path) -> Iterator[str]:
    """Yield the text of each ``<seg>`` of an XML or SGM test set, entities resolved.

    Read as text: these files are not well-formed XML (bare ampersands).
    """
    text = path.read_text(encoding="utf-8")
    for match in _SEGMENT.finditer(text):
        # the typographic apostrophe as the plain one, as in fairseq's preparation of the same sets
        yield clean_line(html.unescape(match.group(1))).replace("\u2019", "'")


def tagged_lines(path: Path) -> Iterator[str]:
    """Yield the lines of text of a ``train.tags`` file: metadata dropped, title and description tags removed."""
    for line in read_lines(path):
        if not _META.match(line):
            yield clean_line(_TAG.sub("", line))
