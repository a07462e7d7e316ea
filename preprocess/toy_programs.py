"""Tiny made-up programs, with their descriptions or in another language, in the files of the published sets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from preprocess.corpora import write_columns, write_lines

_THINGS = ("Block", "FileName", "Index", "Node", "Row")


def _numbered(size: int) -> Iterator[tuple[str, str, int]]:
    """Returns two things and a number for each of so many programs."""
    return ((_THINGS[place % 5], _THINGS[place // 5 % 5], place % 7) for place in range(size))


def text2sql(output: Path, train: int, test: int) -> None:
    """Writes ``geography.json``, an entry for each query with its question."""
    entries = []
    for split, size in (("train", train), ("dev", test), ("test", test)):
        for table, column, _ in _numbered(size):
            sentence = {"text": f"{column} of {table} x0", "variables": {"x0": "7"}, "question-split": split}
            query = [f"SELECT p.{column} FROM {table} AS p WHERE p.SIZE = x0 ;"]
            variables = [{"name": "x0"}]
            entries.append({"sentences": [sentence], "sql": query, "query-split": split, "variables": variables})
    write_lines(output / "geography.json", [json.dumps(entries)])


def java_csharp(output: Path, train: int, test: int) -> None:
    """Writes ``{train,valid,test}.java-cs.txt.{java,cs}``, a method a line."""
    java, csharp = "public int get{}({} x) {{return x.size{};}}", "public int Get{}({} x){{return x.Size{};}}"
    for split, size in (("train", train), ("valid", test), ("test", test)):
        methods = ((java.format(*parts), csharp.format(*parts)) for parts in _numbered(size))
        write_columns(output / f"{split}.java-cs.txt", ("java", "cs"), methods)


def django(output: Path, train: int, test: int) -> None:
    """Writes ``all.{anno,code}``, which have as many lines as the published ones; the reader makes the splits."""
    condition = "if {0} is not {1},", "if {0} is not {1} :"
    call = "{0} is a call of {1} with '{0} {2}'.", "   {0} = {1} ( '{0} {2}' )"
    pairs = ([side.format(*parts) for side in (call if parts[2] else condition)] for parts in _numbered(18805))
    write_columns(output / "all", ("anno", "code"), pairs)


def hearthstone(output: Path, train: int, test: int) -> None:
    """Writes ``{train,dev,test}_hs.{in,out}``, a card and its class a line."""
    card = "{0} {1} NAME_END {2} ATK_END 2 DEF_END Minion TYPE_END NIL"
    program = 'class {0}{1}(MinionCard):§    def __init__(self):§        super().__init__("{0} {1}", {2})§'
    for split, size in (("train", train), ("dev", test), ("test", test)):
        cards = ((card.format(*parts), program.format(*parts)) for parts in _numbered(size))
        write_columns(output / f"{split}_hs", ("in", "out"), cards)


LAYOUTS = {"django": django, "hearthstone": hearthstone, "java_csharp": java_csharp, "text2sql": text2sql}
