"""Turns an explorer document into one HTML page that needs no network and no server.

The page contains everything: the files of the folder ``browser`` and the document. A policy in its head lets the
browser run only this script and this style sheet, and load nothing from elsewhere. The list of sentences is plain JSON;
the views of each sentence are compressed, and the browser unpacks them when a reader chooses the sentence.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import struct
import zlib
from functools import cache
from importlib import resources
from string import Template
from typing import Any

from tree_fairseq.support.files import atomic_file

FORMAT = 1  # the format of documents that the page reads

LIMIT = 2_000_000  # the size of a page, in bytes, above which views of long sentences are left out

_OF_OUTPUT = ("output_tree", "query")  # views that are always shown
# What the list of sentences shows; the rest of a sentence is packed.
_IN_LIST = ("id", "source", "reference", "length", "depth")


def write_page(document: dict, path: str | os.PathLike, limit: int = LIMIT) -> None:
    """Writes the page of a document to a file, which is complete or absent; see `page_html`."""
    page = page_html(document, limit)
    with atomic_file(path) as file:
        file.write(page)


def page_html(document: dict, limit: int = LIMIT) -> str:
    """Returns the page of a document (``explorer/document.py``); raises ValueError for a number that is not finite.

    If the page is larger than ``limit`` bytes, the longest sentences lose their views. The page names them where they
    would be. Other documents, ``more``, are tabs of the same page, and lose no views.
    """
    head = {key: value for key, value in document.items() if key != "sentences"}
    if "more" in head:
        head["more"] = [
            {**other, "sentences": [json.loads(_entry(sentence)) for sentence in other["sentences"]]}
            for other in head["more"]
        ]
    shell = len(_fill(head, []).encode())
    entries = _fit(document["sentences"], limit - shell)
    return _fill(head, entries)


def _fit(sentences: list[dict], room: int) -> list[str]:
    """Packs sentences as JSON; the longest ones lose their views until all of them fit."""
    entries = [_entry(sentence) for sentence in sentences]
    size = sum(len(entry) + 1 for entry in entries)
    for index in sorted(range(len(sentences)), key=lambda index: -len(sentences[index].get("tokens") or ())):
        if size <= room:
            break
        size -= len(entries[index])
        entries[index] = _entry({**sentences[index], "systems": list(map(_without_views, sentences[index]["systems"]))})
        size += len(entries[index])
    return entries


def _without_views(system: dict) -> dict:
    """A system's part of a sentence with its output alone; the others of its views are ``omitted``."""
    views = {name: view for name, view in system["views"].items() if name in _OF_OUTPUT}
    return {**system, "views": views, "omitted": [name for name in system["views"] if name not in views]}


def _entry(sentence: dict) -> str:
    """Writes a sentence as JSON: the fields of the list as they are, and all others under ``packed``.

    ``packed`` is base64 of zlib of a length in four bytes (little-endian), a JSON text of that length, and the bytes of
    all matrices. In the text, a matrix has the ``offset`` of its first byte in the place of its ``data``.
    """
    entry = {key: sentence[key] for key in _IN_LIST if key in sentence}
    scores = ("hypothesis", "score", "metric")
    entry["systems"] = [{key: system.get(key) for key in scores} for system in sentence["systems"]]
    rest = {key: value for key, value in sentence.items() if key not in entry}
    rest["systems"] = [
        {key: value for key, value in system.items() if key not in scores} for system in sentence["systems"]
    ]
    matrices = bytearray()
    text = _json(_move_matrices(rest, matrices)).encode()
    packed = zlib.compress(struct.pack("<I", len(text)) + text + matrices, 9)
    entry["packed"] = base64.b64encode(packed).decode("ascii")
    return _json(entry)


def _move_matrices(value: Any, matrices: bytearray) -> Any:
    """Copies a record, and gives its matrices offsets. Records nest a few levels only: their trees are flat lists."""
    if isinstance(value, list):
        return [_move_matrices(element, matrices) for element in value]
    if not isinstance(value, dict):
        return value
    if "shape" in value and "data" in value:
        moved = {key: part for key, part in value.items() if key != "data"}
        moved["offset"] = len(matrices)
        matrices += base64.b64decode(value["data"])
        return moved
    return {key: _move_matrices(part, matrices) for key, part in value.items()}


def _fill(head: dict, entries: list[str]) -> str:
    """Fills the page with a document whose sentences are JSON texts already."""
    style, script = _file("page.css"), _script()
    connect = "'self'" if head.get("live") else "'none'"
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:; "
        f"connect-src {connect}; base-uri 'none'; form-action 'none'"
    )
    opening = _json(head)[:-1]
    data = f'{opening},"sentences":[{",".join(entries)}]}}'
    return Template(_file("page.html")).substitute(policy=policy, style=style, script=script, data=data)


def _json(value: Any) -> str:
    """Writes JSON in ASCII; escapes stand for what means something to HTML, so that no text can end its element."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _digest(text: str) -> str:
    """Names a script or style sheet as a Content Security Policy does."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


@cache
def _script() -> str:
    """Joins all scripts in one scope. Each declares functions, and the last line calls ``start`` in main.js."""
    folder = resources.files(__package__) / "browser"
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".js"))
    return '"use strict";\n(() => {\n' + "\n".join(_file(name) for name in names) + "\nstart();\n})();\n"


@cache
def _file(name: str) -> str:
    return (resources.files(__package__) / "browser" / name).read_text(encoding="utf-8")
