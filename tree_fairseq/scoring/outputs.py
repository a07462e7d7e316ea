"""Reads the output of fairseq-generate, reference texts, and the result files ``score.json`` and ``result.json``."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tree_fairseq.errors import CorruptFileError, ScoringError
from tree_fairseq.support.files import read_json
from tree_fairseq.tree_insertion import INVALID, UNFINISHED
from tree_fairseq.trees.text import read_lines

logger = logging.getLogger(__name__)

Reference = TypeVar("Reference")


@dataclass
class Outputs:
    """The content of a file of fairseq-generate, by number of the sentence in the data set."""

    best: dict[int, str] = field(default_factory=dict)  # texts of first hypotheses
    detokenized: dict[int, str] = field(default_factory=dict)  # the same, with subwords joined and tokens as text
    steps: dict[int, int] = field(default_factory=dict)  # their numbers of decoding steps
    unfinished: dict[int, set[str]] = field(default_factory=dict)  # their marks (partial, invalid)
    sources: set[int] = field(default_factory=set)  # all translated sentences, with or without a hypothesis
    finished: bool = False  # whether the file has the closing line of a complete run


def read_outputs(path: str | Path) -> Outputs:
    """Reads the lines of fairseq-generate, which are in batch order.

    They are ``H-<id><TAB>score<TAB>text`` and ``D-`` likewise, ``S-<id><TAB>text``, ``I-<id><TAB>steps`` and
    ``U-<id><TAB>marks``.
    With ``--nbest`` the first hypothesis of an id is the best. Raises ScoringError if a line is malformed.
    """
    outputs = Outputs()
    widths = {"H-": 2, "D-": 2, "I-": 1, UNFINISHED: 1}
    for number, line in enumerate(read_lines(path), 1):
        outputs.finished |= line.startswith("Generate ")
        kind, (identifier, *values) = line[:2], line[2:].split("\t")
        if kind == "S-" and identifier.isdecimal():
            outputs.sources.add(int(identifier))
        if kind not in widths:
            continue
        is_count = kind != "I-" or values[:1] and values[0].isdecimal()
        if not identifier.isdecimal() or len(values) != widths[kind] or not is_count:
            raise ScoringError(f"{path}:{number}: not an {kind} line of fairseq-generate")
        if kind == "H-":
            outputs.best.setdefault(int(identifier), values[1])
        elif kind == "D-":
            outputs.detokenized.setdefault(int(identifier), values[1])
        elif kind == "I-":
            outputs.steps.setdefault(int(identifier), int(values[0]))
        else:
            outputs.unfinished.setdefault(int(identifier), set(values[0].split()))
    return outputs


def read_hypotheses(path: str | Path) -> list[str]:
    """Returns the best hypothesis of each sentence, in the order of the data set.

    Raises ScoringError if a line is malformed or an id is missing (an interrupted or filtered run).
    """
    best = read_outputs(path).best
    if not best:
        raise ScoringError(f"{path} holds no H- line: generation did not finish")
    if (missing := next((index for index in range(len(best)) if index not in best), None)) is not None:
        raise ScoringError(f"{path}: sentence {missing} has no hypothesis: generation did not finish, or skipped it")
    return [best[index] for index in range(len(best))]


def read_complete(path: str | Path, count: int) -> Outputs:
    """Reads the output of a complete run over ``count`` sentences.

    A sentence may have no hypothesis: a structural search returns only trees within the length limit. Raises
    ScoringError if a line is malformed, a hypothesis belongs to another sentence, or a sentence was not translated.
    """
    outputs = read_outputs(path)
    if (stray := max(outputs.best, default=-1)) >= count:
        raise ScoringError(f"{path} has a hypothesis of sentence {stray}, the references are {count}")
    empty = [index for index in range(count) if index not in outputs.best]
    if untouched := [index for index in empty if index not in outputs.sources]:
        problem = f"sentence {untouched[0]} was not translated: generation did not finish, or skipped it"
        raise ScoringError(f"{path}: {problem}")
    if empty and not outputs.finished:
        problem = f"sentence {empty[0]} has no hypothesis and the closing line is missing: generation did not finish"
        raise ScoringError(f"{path}: {problem}")
    return outputs


_HYPOTHESIS = re.compile(r"H-\d+\t")


def read_output_texts(path: str | Path, count: int) -> tuple[list[str], set[int]]:
    """Reads the best output of each of ``count`` sentences: lines of text, or the output of fairseq-generate.

    Of the latter the ``D-`` lines are read, or the ``H-`` lines if it has none; a sentence without a hypothesis has an
    empty text, and a warning says how many these are. Also returns the numbers of the sentences whose output was marked
    as invalid: their text can be read as a tree, but the model did not finish one. Raises ScoringError for another
    number of sentences, and as :func:`read_complete`.
    """
    lines = list(read_lines(path))
    if not any(map(_HYPOTHESIS.match, lines)):
        if len(lines) != count:
            raise ScoringError(f"{path} has {len(lines)} lines, the references are {count}: line n belongs to line n")
        return lines, set()
    outputs = read_complete(path, count)
    if lacking := count - len(outputs.best):
        logger.warning("%s: %d of %d sentences have no output; they count as empty", path, lacking, count)
    texts = [outputs.detokenized.get(index, outputs.best.get(index, "")) for index in range(count)]
    return texts, {index for index, marks in outputs.unfinished.items() if INVALID in marks}


def read_text(path: str | Path, count: int) -> list[str]:
    """Reads a file of ``count`` lines. Raises ScoringError if it has another number of lines."""
    lines = list(read_lines(path))
    if len(lines) != count:
        raise ScoringError(f"{path} has {len(lines)} lines, the hypotheses are {count}")
    return lines


def read_references(files: Sequence[Path], read: Callable[[str, Path, int], Reference]) -> list[Reference]:
    """Reads the lines of the first file that exists; ``read`` gets line, path and line number.

    Raises ScoringError if all files are missing or the first is empty.
    """
    path = next((path for path in files if path.is_file()), None)
    if path is None:
        others = "".join(f" (or {other.suffix})" for other in files[1:])
        raise ScoringError(
            f"{files[0]}{others} is missing: --references takes the folder with the lines that were preprocessed"
        )
    found = [read(line, path, number) for number, line in enumerate(read_lines(path), 1)]
    if not found:
        raise ScoringError(f"{path} is empty")
    return found


def detokenize(lines: Sequence[str], language: str) -> list[str]:
    """Turns Moses tokens into plain text: resolves entities and attaches punctuation."""
    from sacremoses import MosesDetokenizer

    detokenizer = MosesDetokenizer(lang=language)
    return [detokenizer.detokenize(line.split()) for line in lines]


SCORE_FILE = "score.json"


def read_scores(path: Path) -> dict:
    """Reads ``score.json``. Raises ScoringError if it is missing or not JSON."""
    try:
        scores = read_json(path)
    except CorruptFileError as error:
        raise ScoringError(f"{error}; delete it and score that run again") from error
    if scores is None:
        raise ScoringError(f"{path} is missing: score that run first")
    return scores


def build_result(current: dict, folder: Path) -> dict:
    """Returns the content of ``result.json``.

    It has the metrics of the current run by name, its primary metric under ``score``, the name of that under
    ``metric``, and under ``runs`` a short entry for every ``score.json`` below the folder, sorted by path. Raises
    ScoringError if the primary metric is missing or a file is not JSON.
    """
    metrics = current["metrics"]
    metric = current["primary"]
    if metric not in metrics:
        raise ScoringError(f"the primary metric {metric} was not measured; there are {', '.join(metrics)}")
    details = {name: value for name, value in current.items() if name not in ("metrics", "primary")}
    runs = [read_scores(path) for path in sorted(folder.rglob(SCORE_FILE))]
    summary = [{**run["description"], "metrics": run["metrics"], "differences": run["differences"]} for run in runs]
    return {"metric": metric, "score": metrics[metric], **metrics, **details, "runs": summary}
