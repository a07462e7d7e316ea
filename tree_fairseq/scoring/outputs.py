"""Reads the output of fairseq-generate and of other systems, and the references."""

from __future__ import annotations

import html
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tree_fairseq.errors import ScoringError, missing
from tree_fairseq.support.python_versions import import_library
from tree_fairseq.tasks import INVALID
from tree_fairseq.trees.text import FaultyLines, read_lines

logger = logging.getLogger(__name__)

Reference = TypeVar("Reference")


@dataclass
class Outputs:
    """The content of a file of fairseq-generate, by number of the sentence in the data set."""

    best: dict[int, str] = field(default_factory=dict)  # texts of first hypotheses
    detokenized: dict[int, str] = field(default_factory=dict)  # the same, with subwords joined and tokens as text
    targets: dict[int, str] = field(default_factory=dict)  # references that were generated with
    steps: dict[int, int] = field(default_factory=dict)  # their numbers of decoding steps
    unfinished: dict[int, set[str]] = field(default_factory=dict)  # their marks (partial, invalid)
    sources: set[int] = field(default_factory=set)  # all translated sentences, with or without a hypothesis
    finished: bool = False  # whether the file has the closing line of a complete run

    def is_invalid(self, index: int) -> bool:
        """Whether generation marked an output: its text can be read as a tree, but the model did not finish one."""
        return INVALID in self.unfinished.get(index, ())


def read_outputs(path: str | Path) -> Outputs:
    """Reads the lines of fairseq-generate, which are in batch order.

    They are ``H-<id><TAB>score<TAB>text`` and ``D-`` likewise, ``S-<id><TAB>text`` and ``T-`` likewise, and
    ``I-<id><TAB>steps``, or ``I-<id><TAB>steps marks``. With ``--nbest`` the first hypothesis of an id is the best.
    Raises ScoringError if a line is malformed.
    """
    outputs = Outputs()
    widths = {"H-": 2, "D-": 2, "I-": 1}
    for number, line in enumerate(read_lines(path), 1):
        outputs.finished |= line.startswith("Generate ")
        kind, (identifier, *values) = line[:2], line[2:].split("\t")
        if kind == "S-" and identifier.isdecimal():
            outputs.sources.add(int(identifier))
        if kind == "T-" and identifier.isdecimal():
            outputs.targets[int(identifier)] = "\t".join(values)
        if kind not in widths:
            continue
        is_count = kind != "I-" or values and values[0].split(" ")[0].isdecimal()
        if not identifier.isdecimal() or len(values) != widths[kind] or not is_count:
            raise ScoringError(f"{path}:{number}: not an {kind} line of fairseq-generate")
        if kind == "H-":
            outputs.best.setdefault(int(identifier), values[1])
        elif kind == "D-":
            outputs.detokenized.setdefault(int(identifier), values[1])
        elif int(identifier) not in outputs.steps:
            steps, *marks = values[0].split(" ")
            outputs.steps[int(identifier)] = int(steps)
            if marks:
                outputs.unfinished[int(identifier)] = set(marks)
    return outputs


def read_complete(path: str | Path, count: int) -> Outputs:
    """Reads the output of a complete run over ``count`` sentences, and warns of sentences without a hypothesis.

    A structural search returns only trees within the length limit, so a sentence may have none. Raises ScoringError if
    a line is malformed, a hypothesis belongs to another sentence, or a sentence was not translated.
    """
    outputs = read_outputs(path)
    if (stray := max(outputs.best, default=-1)) >= count:
        problem = (
            f"{path} has hypotheses up to H-{stray}, of {stray + 1} sentences, but the references have {count} lines"
        )
        raise ScoringError(f"{problem}: give the references of the split that was generated, all of its lines")
    empty = [index for index in range(count) if index not in outputs.best]
    untouched = [index for index in empty if index not in outputs.sources]
    if untouched:
        problem = f"sentence {untouched[0]} was not translated: generation did not finish, or skipped it"
        raise ScoringError(f"{path}: {problem}")
    if empty and not outputs.finished:
        problem = f"sentence {empty[0]} has no hypothesis and the closing line is missing: generation did not finish"
        raise ScoringError(f"{path}: {problem}")
    if empty:
        logger.warning("%s: %d of %d sentences have no output; they count as wrong", path, len(empty), count)
    return outputs


def read_hypotheses(path: str | Path, count: int) -> list[str]:
    """Returns the best hypothesis of each of ``count`` sentences; an empty text for one without a hypothesis.

    Raises the errors of :func:`read_complete`.
    """
    best = read_complete(path, count).best
    return [best.get(index, "") for index in range(count)]


_HYPOTHESIS = re.compile(r"H-\d+\t")


def read_output_texts(path: Path, count: int, references: Sequence[Sequence[str]] | None) -> tuple[list[str], set[int]]:
    """Reads the best output of each of ``count`` sentences: lines of text, or the output of fairseq-generate.

    Of the latter the ``D-`` lines are read, or the ``H-`` lines if it has no ``D-`` lines; a sentence without a
    hypothesis has an empty text. Also returns the numbers of the sentences whose output was marked as invalid. Logs a
    warning if the references that were generated with are not these ``references``. Raises ScoringError for another
    number of sentences, and as :func:`read_complete`.
    """
    if not path.is_file():
        raise missing(path)
    lines = list(read_lines(path))
    if not any(map(_HYPOTHESIS.match, lines)):
        if len(lines) != count:
            raise ScoringError(f"{path} has {len(lines)} lines, the references are {count}: line n belongs to line n")
        return lines, set()
    outputs = read_complete(path, count)
    if references is not None:
        _warn_of_other_references(path, outputs.targets, references)
    texts = [outputs.detokenized.get(index, outputs.best.get(index, "")) for index in range(count)]
    return texts, set(filter(outputs.is_invalid, range(count)))


def _warn_of_other_references(path: Path, targets: Mapping[int, str], references: Sequence[Sequence[str]]) -> None:
    """Logs a warning if the references are not the ``T-`` lines of the same file, blanks, case and entities aside."""

    def plain(text: str) -> str:
        return "".join(html.unescape(text.replace("@-@", "-").replace("@@ ", "")).lower().split())

    known = {number: text for number, text in targets.items() if "<unk>" not in text}
    other = [n for n, text in sorted(known.items()) if plain(text) not in {plain(lines[n]) for lines in references}]
    if 5 * len(other) > len(known):
        first = other[0]
        logger.warning(
            "%d of %d references are not the T- lines of %s, the first is line %d: %r, not %r. Give the references of "
            "the split that was generated, in its order",
            *(len(other), len(known), path, first + 1, references[0][first], known[first]),
        )


def read_text(path: str | Path, count: int) -> list[str]:
    """Reads a file of ``count`` lines. Raises ScoringError if it has another number of lines."""
    lines = list(read_lines(path))
    if len(lines) != count:
        raise ScoringError(f"{path} has {len(lines)} lines, the hypotheses are {count}")
    return lines


def read_references(files: Sequence[Path], read: Callable[[str, Path, int], Reference]) -> list[Reference]:
    """Reads the lines of the first file that exists; ``read`` gets line, path and line number.

    Raises ScoringError if all files are missing or the first is empty, and InputError for all lines that are malformed.
    """
    path = next((path for path in files if path.is_file()), None)
    if path is None:
        raise missing(files[0])
    found, faults = [], FaultyLines()
    for number, line in enumerate(read_lines(path), 1):
        with faults:
            found.append(read(line, path, number))
    faults.raise_all()
    if not found:
        raise ScoringError(f"{path} is empty")
    return found


def read_reference_lines(path: Path) -> list[str]:
    """Reads references as they are written; see :func:`read_references`."""
    return read_references([path], lambda line, *place: line)


def detokenize(lines: Sequence[str], language: str) -> list[str]:
    """Turns Moses tokens into plain text: resolves entities and attaches punctuation."""
    detokenizer = import_library("sacremoses", "subwords", "--detokenize").MosesDetokenizer(lang=language)
    return [detokenizer.detokenize(line.split()) for line in lines]
