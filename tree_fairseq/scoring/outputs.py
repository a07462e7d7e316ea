"""Reading what fairseq-generate writes, and the texts it is compared with."""

from __future__ import annotations

from pathlib import Path

from tree_fairseq.errors import ScoringError
from tree_fairseq.trees.text import read_lines


def read_hypotheses(path: str | Path) -> list[str]:
    """The best hypothesis of each sentence, in the order of the data set.

    ``H-<id><TAB>score<TAB>text`` lines stand in batch order; with ``--nbest`` the first of an id is the best. Raises
    ScoringError where a line is malformed or an id is missing (an interrupted or filtered run).
    """
    best: dict[int, str] = {}
    for number, line in enumerate(read_lines(path), 1):
        if not line.startswith("H-"):
            continue
        fields = line.split("\t")
        identifier = fields[0][2:]
        if len(fields) != 3 or not identifier.isdecimal():
            raise ScoringError(f"{path}:{number}: not an H- line of fairseq-generate")
        best.setdefault(int(identifier), fields[2])
    if not best:
        raise ScoringError(f"{path} holds no H- line: generation did not finish")
    missing = next((index for index in range(len(best)) if index not in best), None)
    if missing is not None:
        raise ScoringError(f"{path}: sentence {missing} has no hypothesis: generation did not finish, or skipped it")
    return [best[index] for index in range(len(best))]


def read_text(path: str | Path, count: int) -> list[str]:
    """The lines of a file that must have ``count`` of them. Raises ScoringError where it has not."""
    lines = list(read_lines(path))
    if len(lines) != count:
        raise ScoringError(f"{path} has {len(lines)} lines, the hypotheses are {count}")
    return lines


def detokenize(lines: list[str], language: str) -> list[str]:
    """Moses tokens as plain text: entities resolved, punctuation attached."""
    from sacremoses import MosesDetokenizer

    detokenizer = MosesDetokenizer(lang=language)
    return [detokenizer.detokenize(line.split()) for line in lines]
