"""Reads the output of fairseq-generate, reference texts, and the result files ``score.json`` and ``result.json``."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tree_fairseq.errors import CorruptFileError, ScoringError
from tree_fairseq.files import read_json
from tree_fairseq.tree_insertion import UNFINISHED
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.notations.notation import Notation
from tree_fairseq.trees.text import read_lines
from tree_fairseq.trees.tree import Tree


@dataclass
class Outputs:
    """The content of a file of fairseq-generate.

    Attributes:
        best: the first hypothesis of each sentence that has one, by the sentence's number in the data set
        sources: numbers of all translated sentences, with or without a hypothesis
        finished: whether the file has the closing line of a complete run
        steps: number of decoding steps of first hypotheses, from ``I-`` lines
        unfinished: the marks of first hypotheses that are partial or invalid, from ``U-`` lines
    """

    best: dict[int, str] = field(default_factory=dict)
    sources: set[int] = field(default_factory=set)
    finished: bool = False
    steps: dict[int, int] = field(default_factory=dict)
    unfinished: dict[int, set[str]] = field(default_factory=dict)


def read_outputs(path: str | Path) -> Outputs:
    """Reads ``H-<id><TAB>score<TAB>text``, ``S-<id><TAB>text``, ``I-<id><TAB>steps`` and ``U-`` lines, which are in
    batch order.

    With ``--nbest`` the first hypothesis of an id is the best. Raises ScoringError if a line is malformed.
    """
    outputs = Outputs()
    for number, line in enumerate(read_lines(path), 1):
        if line.startswith("S-"):
            identifier = line[2:].split("\t")[0]
            if identifier.isdecimal():
                outputs.sources.add(int(identifier))
        outputs.finished |= line.startswith("Generate ")
        fields = line.split("\t")
        identifier = fields[0][2:]
        if line.startswith(("I-", UNFINISHED)):
            _read_about(outputs, line[:2], identifier, fields[1:], f"{path}:{number}")
        if not line.startswith("H-"):
            continue
        if len(fields) != 3 or not identifier.isdecimal():
            raise ScoringError(f"{path}:{number}: not an H- line of fairseq-generate")
        outputs.best.setdefault(int(identifier), fields[2])
    return outputs


def _read_about(outputs: Outputs, kind: str, identifier: str, values: list[str], place: str) -> None:
    if not identifier.isdecimal() or len(values) != 1 or kind == "I-" and not values[0].isdecimal():
        raise ScoringError(f"{place}: not an {kind} line of fairseq-generate")
    if kind == "I-":
        outputs.steps.setdefault(int(identifier), int(values[0]))
    else:
        outputs.unfinished.setdefault(int(identifier), set(values[0].split()))


def read_hypotheses(path: str | Path) -> list[str]:
    """Returns the best hypothesis of each sentence, in the order of the data set.

    Raises ScoringError if a line is malformed or an id is missing (an interrupted or filtered run).
    """
    best = read_outputs(path).best
    if not best:
        raise ScoringError(f"{path} holds no H- line: generation did not finish")
    missing = next((index for index in range(len(best)) if index not in best), None)
    if missing is not None:
        raise ScoringError(f"{path}: sentence {missing} has no hypothesis: generation did not finish, or skipped it")
    return [best[index] for index in range(len(best))]


def read_complete(path: str | Path, count: int) -> Outputs:
    """Reads the output of a complete run over ``count`` sentences.

    A sentence may have no hypothesis: a structural search returns only trees within the length limit.

    Raises:
        ScoringError: a line is malformed, a hypothesis belongs to another sentence, or a sentence was not translated
    """
    outputs = read_outputs(path)
    stray = max(outputs.best, default=-1)
    if stray >= count:
        raise ScoringError(f"{path} has a hypothesis of sentence {stray}, the references are {count}")
    empty = [index for index in range(count) if index not in outputs.best]
    untouched = [index for index in empty if index not in outputs.sources]
    if untouched:
        raise ScoringError(
            f"{path}: sentence {untouched[0]} was not translated: generation did not finish, or skipped it"
        )
    if empty and not outputs.finished:
        raise ScoringError(
            f"{path}: sentence {empty[0]} has no hypothesis and the closing line is missing: generation did not finish"
        )
    return outputs


def read_text(path: str | Path, count: int) -> list[str]:
    """Reads a file of ``count`` lines. Raises ScoringError if it has another number of lines."""
    lines = list(read_lines(path))
    if len(lines) != count:
        raise ScoringError(f"{path} has {len(lines)} lines, the hypotheses are {count}")
    return lines


def detokenize(lines: list[str], language: str) -> list[str]:
    """Turns Moses tokens into plain text: resolves entities and attaches punctuation."""
    from sacremoses import MosesDetokenizer

    detokenizer = MosesDetokenizer(lang=language)
    return [detokenizer.detokenize(line.split()) for line in lines]


LINES = "lines"
"""Stands in the place of a notation where whole lines are compared."""


class Lines(Notation):
    """Reads a line of text as a tree: its tokens below an unnamed root. For programs without a notation of trees."""

    def write(self, tree: Tree) -> str:
        return " ".join(token.label for token in tree.children)

    def _read(self, line: str) -> Tree:
        return Tree("", [Tree(token) for token in line.split()])


def reader_named(name: str) -> Notation:
    """Returns the notation of a name, or the reader of plain lines."""
    return Lines() if name == LINES else notation_named(name)


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


def read_runs(folder: Path) -> list[dict]:
    """Reads every ``score.json`` below a folder, sorted by path. Raises ScoringError if one is not JSON."""
    return [read_scores(path) for path in sorted(folder.rglob(SCORE_FILE))]


def build_result(current: dict, runs: list[dict]) -> dict:
    """Returns the content of ``result.json``.

    It has the metrics of the current run by name, its primary metric under ``score``, the name of that under
    ``metric``, and a short entry for every run under ``runs``.
    """
    metrics = current["metrics"]
    metric = current["primary"]
    if metric not in metrics:
        raise ScoringError(f"the primary metric {metric} was not measured; there are {', '.join(metrics)}")
    details = {name: value for name, value in current.items() if name not in ("metrics", "primary")}
    summary = [{**run["description"], "metrics": run["metrics"], "differences": run["differences"]} for run in runs]
    return {"metric": metric, "score": metrics[metric], **metrics, **details, "runs": summary}
