"""The commands that read a data folder and a checkpoint, with as little work as possible."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tests.end_to_end.commands import run
from tests.end_to_end.fixtures import TASK
from tests.end_to_end.tiny_corpus import make_pairs
from tree_fairseq import hub
from tree_fairseq.commands import explore, induce, release, translate

ALL = os.environ.get("TREE_FAIRSEQ_ALL_ATTACKS", "0") != "0"  # whether every command meets every attack

LINE = make_pairs(1, 2)[0].tree
TRAIN_ONCE = ("--max-update", 1, "--no-save", "--disable-validation")
Command = Callable[[Path, Path, Path], object]  # takes the data folder, the checkpoint and a folder for the output


def _of_fairseq(command: str) -> Command:
    flags = ("--cpu", "--batch-size", 1, "--num-workers", 0)
    flags += ("--valid-subset", "test") if command == "validate" else ("--beam", 1, "--max-len-b", 2)
    flags += ("--max-valid-steps", 1) if command == "validate" else ()
    return lambda data, path, _: run(command, data, *TASK, "--path", path, *flags, stdin=LINE + "\n")


def _hub(data: Path, path: Path, _: Path) -> object:
    return str(hub.from_pretrained(path.parent, path.name, data).translate([LINE], beam=1))


def _translate(data: Path, path: Path, output: Path) -> object:
    text = output / "text"
    text.write_text(LINE + "\n")
    files = ["--input", str(text), "--output", str(output / "hypotheses")]
    return translate.main([str(data), *TASK, "--path", str(path), "--cpu", "--beam", "1", *files])


def _release(data: Path, path: Path, output: Path) -> object:
    return release.main([str(data), str(path), "--output", str(output / "out")])


def _induce(data: Path, path: Path, _: Path) -> object:
    return induce.main([str(data), *TASK, "--path", str(path), "--cpu"])


def _explore(data: Path, path: Path, output: Path) -> object:
    page = ["--output", str(output / "page.html")]
    return explore.main([str(data), "--path", str(path), "--cpu", "--sentences", "1", "--beam", "1", *page])


MODEL_COMMANDS: dict[str, Command] = {
    "generate": _of_fairseq("generate"),
    "interactive": _of_fairseq("interactive"),
    "validate": _of_fairseq("validate"),
    "hub": _hub,
    "translate": _translate,
    "release": _release,
    "induce": _induce,
    "explore": _explore,
}
