"""Fault 13: preprocessing is killed at any moment, and the same command finishes it with the same bytes."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Callable

import pytest

from tests.data_bin.corpora import folder_bytes, in_child, prefixes, run_preprocess, write_corpus
from tree_fairseq.commands import annotate
from tree_fairseq.commands.check import check_folder

ALL = os.environ.get("TREE_FAIRSEQ_ALL_KILLS", "0") != "0"
# Whatever names, makes, moves or removes a file or folder; each is a moment to be killed at.
_EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.symlink", "shutil.rmtree"}


def kill_at(moment: int, folder: Path) -> None:
    """Kills this process just before it touches the file system below ``folder`` for the given time."""
    touched = 0

    def hook(event: str, arguments: tuple) -> None:
        nonlocal touched
        if event in _EVENTS and any(str(folder) in str(argument) for argument in arguments[:2]):
            touched += 1
            if touched > moment:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def survives_every_kill(action: Callable[[], None], destination: Path, reset: Callable[[], None], moments: int) -> int:
    """Kills an action at many moments and repeats it; every time the result has to be that of an unbroken run.

    ``reset`` brings back the state before the action. ``TREE_FAIRSEQ_ALL_KILLS=1`` tries all moments, whose number is
    returned.
    """
    reset()
    assert in_child(action) == 0
    unbroken = folder_bytes(destination)
    total = 0
    while True:
        reset()
        if in_child(action, lambda: kill_at(total, destination.parent)) == 0:
            break
        total += 97
    # `total` bounds their number from above; those beyond it do nothing.
    for moment in range(total) if ALL else sorted(random.Random(0).sample(range(total), min(moments, total))):
        reset()
        outcome = in_child(action, lambda: kill_at(moment, destination.parent))
        assert outcome in ("killed", 0)
        outcome = in_child(action) if outcome == "killed" else 0
        # Killed when nothing was left to do but to forget about it, the folder is finished and refused as such.
        assert outcome == 0 or "exists: this destination was preprocessed before" in str(outcome), (moment, outcome)
        assert folder_bytes(destination) == unbroken, moment
        assert check_folder(destination) == [], moment
        assert not destination.with_name(destination.name + ".building").exists(), moment
    return total


def resetting(destination: Path, start: Path | None = None) -> Callable[[], None]:
    """Empties the parent of the destination; the destination becomes a copy of ``start``, if there is one."""

    def reset() -> None:
        shutil.rmtree(destination.parent, ignore_errors=True)
        destination.parent.mkdir()
        if start is not None:
            shutil.copytree(start, destination)

    return reset


def test_preprocessing_at_any_moment(tmp_path):
    corpus = write_corpus(tmp_path / "corpus", train=20, valid=4)
    destination = tmp_path / "work" / "bin"

    def action():
        run_preprocess(
            *prefixes(corpus / "mixed", "train", "valid"), "--destdir", destination, "--tree-parser", "brackets"
        )

    assert survives_every_kill(action, destination, resetting(destination), 24) > 40


def test_adding_a_split_at_any_moment(tmp_path):
    corpus = write_corpus(tmp_path / "corpus", train=20, test=4)
    start, destination = tmp_path / "start", tmp_path / "work" / "bin"
    run_preprocess(*prefixes(corpus / "mixed", "train"), "--destdir", start, "--tree-parser", "brackets")

    def action():
        given = ["--srcdict", destination / "dict.en.txt", "--tgtdict", destination / "dict.de.txt"]
        run_preprocess(
            *prefixes(corpus / "mixed", "test"), *given, "--destdir", destination, "--tree-parser", "brackets"
        )

    survives_every_kill(action, destination, resetting(destination, start), 16)


def test_annotating_at_any_moment(tmp_path):
    corpus = write_corpus(tmp_path / "corpus", train=20, test=4)
    start, destination = tmp_path / "start", tmp_path / "work" / "bin"
    run_preprocess(*prefixes(corpus / "leaves", "train", "test"), "--destdir", start)

    def action():
        # Refused when the earlier attempt had come to its end but for clearing away.
        status = annotate.main([str(destination), "--tree-parser", "balanced"])
        if status and not (destination / "tree.json").exists():
            raise RuntimeError("not annotated")

    survives_every_kill(action, destination, resetting(destination, start), 16)
    assert not (tmp_path / "work" / "bin.building").exists()


def lead_a_group(arguments: list, destination: Path) -> None:
    """Preprocesses in a process group of its own, as a shell starts a command."""
    os.setsid()
    run_preprocess(*arguments, "--destdir", destination)


@pytest.mark.parametrize("seconds", [0.0, 0.4])
def test_the_command_with_its_workers(tmp_path, seconds):
    """The process group is killed while several processes are at work."""
    corpus = write_corpus(tmp_path / "corpus", train=3000)
    arguments = ["--trainpref", corpus / "mixed/train", "--workers", 3, "--tree-parser", "brackets"]
    process = multiprocessing.get_context("fork").Process(target=lead_a_group, args=(arguments, tmp_path / "bin"))
    process.start()
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("bin.building/output-*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGKILL)
    process.join()
    if not (tmp_path / "bin").exists() or (tmp_path / "bin.building").exists():
        run_preprocess(*arguments, "--destdir", tmp_path / "bin")
    run_preprocess(*arguments, "--destdir", tmp_path / "unbroken")
    assert folder_bytes(tmp_path / "bin") == folder_bytes(tmp_path / "unbroken")
    assert not (tmp_path / "bin.building").exists()
