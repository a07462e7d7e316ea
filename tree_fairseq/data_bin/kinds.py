"""The registry of the kinds of data set in a folder: how each is checked and written back as text.

A kind that adds a section to ``tree.json`` also registers that
(:func:`tree_fairseq.data_bin.manifest.register_section`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Callable, NamedTuple, Optional

from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.errors import TreeFairseqError

_PROBLEMS_SHOWN = 5


class ExportRequest(NamedTuple):
    """The split of a folder that is written back as text; the words of ``words_from``, the text of the split, take the
    place of ``<unk>``.
    """

    folder: Path
    split: str
    words_from: Optional[str] = None


Export = Callable[[ExportRequest], Iterable[str]]


class DataKind(NamedTuple):
    """A kind of data set.

    Attributes:
        problems: yields everything that is wrong with the content of a folder's files of this kind, one sentence each;
            it may raise an error that makes it impossible to go on
        exports: returns functions that write the trees of a folder back as lines of text, by side (``source`` or
            ``target``)
        examples: the same for whole examples as they were read, such as a text with its class
        refuse_trees: raises InputError if constituency trees cannot be added to a folder of this kind
    """

    problems: Callable[[Path, Manifest], Iterator[str]]
    exports: Callable[[Manifest], dict[str, Export]]
    examples: Callable[[Manifest], dict[str, Export]] = lambda manifest: {}
    refuse_trees: Callable[[Path, Manifest], None] = lambda folder, manifest: None


_KINDS: dict[str, DataKind] = {}


def register_kind(name: str, kind: DataKind) -> None:
    """Adds a kind of data set, or replaces the one of the same name."""
    _KINDS[name] = kind


def registered_kinds() -> list[DataKind]:
    """All kinds, in the order in which they were registered."""
    return list(_KINDS.values())


def error_of(check: Callable[[], object]) -> list[str]:
    """Calls a check and returns the error that it raises, if it does, as the only problem."""
    try:
        check()
    except TreeFairseqError as error:
        return [str(error)]
    return []


def with_last_error(problems: Iterable[str]) -> Iterator[str]:
    """Yields problems, and the error that ends their iteration, if there is one, as the last of them."""
    try:
        yield from problems
    except TreeFairseqError as error:
        yield str(error)


def first_problems(path: object, problems: Iterable[tuple[int, str]]) -> Iterator[str]:
    """Yields the first few problems of a file, each with the number of its line, and the number of all others."""
    found = 0
    for line, problem in problems:
        found += 1
        if found <= _PROBLEMS_SHOWN:
            yield f"{path}, line {line}: {problem}"
    if found > _PROBLEMS_SHOWN:
        yield f"{path}: {found - _PROBLEMS_SHOWN} more such problems"


def count_problems(name: object, counted: dict[str, int], record: object) -> Iterator[str]:
    """Yields the numbers of a split that differ from those in its record, which has an attribute for each."""
    for what, number in counted.items():
        if number != getattr(record, what):
            yield f"{name} has {number} {what} where {getattr(record, what)} were written"
