"""Writes runs for the tests: references, and the output of fairseq-generate in the order of its batches."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from tree_fairseq.scoring.__main__ import main


def write_lines(path: Path, lines) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def write_outputs(run: Path, hypotheses, subset: str = "test", closing: bool = True) -> None:
    """None stands for a sentence without a hypothesis."""
    rows = []
    for number, text in reversed(list(enumerate(hypotheses))):
        rows += [f"S-{number}\tx", f"T-{number}\t1"]
        rows += [] if text is None else [f"H-{number}\t-1.0\t{text}", f"H-{number}\t-2.0\tworse", f"P-{number}\t-1.0"]
    write_lines(run / f"generate-{subset}.txt", [*rows, *(["Generate test with beam=5: x"] if closing else [])])


def common(items: Iterable, others: Iterable) -> int:
    """How many of the items are among the others, which are taken away one by one."""
    left, count = list(others), 0
    for item in items:
        if item in left:
            left.remove(item)
            count += 1
    return count


def score(name: str, folder: Path, *flags, run: str = "tree") -> int:
    """Runs ``tree-fairseq score NAME`` on a run of the folder; returns the exit status."""
    return main([name, "--run", str(folder / "runs" / run), *map(str, flags)])


def scores(folder: Path, run: str = "tree") -> dict:
    return json.loads((folder / "runs" / run / "score.json").read_text(encoding="utf-8"))


def outcomes(folder: Path, run: str = "tree") -> dict:
    return json.loads((folder / "runs" / run / "outcomes.json").read_text(encoding="utf-8"))
