"""``C-`` lines: what is in them, and where fairseq's commands print them."""

from __future__ import annotations

import io
import math
import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch
from fairseq.data import Dictionary

from tree_fairseq.classification.prediction import ClassLines, class_line
from tree_fairseq.repairs.compat import print_after


@pytest.fixture
def dictionary():
    dictionary = Dictionary()
    for name in ("neg", "pos"):
        dictionary.add_symbol(name)
    return dictionary


def ranked(*probabilities: tuple[int, float]) -> list[dict]:
    return [
        {"tokens": torch.tensor([4 + index, 2]), "score": math.log(probability)} for index, probability in probabilities
    ]


@pytest.fixture
def command(monkeypatch):
    """A module that passes for the generate command, with a function that prints from within."""
    module = ModuleType("fairseq_cli.generate")
    exec(
        "def say(*values, **options):\n    print(*values, **options)", module.__dict__
    )  # As the command does: by the name in its module.
    monkeypatch.setitem(sys.modules, "fairseq_cli.generate", module)
    monkeypatch.delitem(sys.modules, "fairseq_cli.interactive", raising=False)
    return module


def test_the_line(dictionary):
    assert class_line(17, ranked((1, 0.75), (0, 0.25)), dictionary) == "C-17\tpos 0.7500\tneg 0.2500"


def test_it_follows_the_scores_of_its_example_once_and_goes_to_the_same_file(dictionary, command):
    lines = ClassLines(dictionary)
    lines.expect([3, 30], [ranked((1, 0.75), (0, 0.25)), ranked((0, 0.5), (1, 0.5))])
    file = io.StringIO()
    for line in (
        "S-30\tnot so good",
        "H-30\t-1.0\tneg",
        "P-30\t-1.0 0.0",
        "P-30\t-1.0 0.0",
        "P-3\t-0.4 0.0",
        "P-4\t-0.4 0.0",
        "Generate test",
    ):
        command.say(line, file=file)
    printed = file.getvalue().splitlines()
    assert printed[2:6] == ["P-30\t-1.0 0.0", "C-30\tneg 0.5000\tpos 0.5000", "P-30\t-1.0 0.0", "P-3\t-0.4 0.0"]
    assert printed[6:] == ["C-3\tpos 0.7500\tneg 0.2500", "P-4\t-0.4 0.0", "Generate test"]


def test_a_command_prints_what_the_last_task_has_to_say(dictionary, command):
    earlier, later = ClassLines(dictionary), ClassLines(dictionary)
    earlier.expect([0], [ranked((1, 0.75), (0, 0.25))])
    later.expect([0], [ranked((0, 0.9), (1, 0.1))])
    file = io.StringIO()
    command.say("P-0\t0.1", file=file)
    assert file.getvalue() == "P-0\t0.1\nC-0\tneg 0.9000\tpos 0.1000\n"


def test_other_things_that_are_printed_stay_as_they_are(dictionary, command):
    ClassLines(dictionary).expect([0], [ranked((1, 0.75), (0, 0.25))])
    file = io.StringIO()
    command.say("P-0", 5, sep="\t", file=file, end="|")
    command.say(7, file=file)
    assert file.getvalue() == "P-0\t5|7\n"


def test_a_command_that_runs_as_main_is_known(monkeypatch):
    main = ModuleType("__main__")
    main.__spec__ = SimpleNamespace(name="fairseq_cli.generate")
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.delitem(sys.modules, "fairseq_cli.generate", raising=False)
    assert print_after(["fairseq_cli.generate"], lambda line: None) and hasattr(main, "print")


def test_without_a_command_nothing_is_kept(dictionary, monkeypatch):
    for name in ("fairseq_cli.generate", "fairseq_cli.interactive"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    lines = ClassLines(dictionary)
    lines.expect([0], [ranked((1, 0.75), (0, 0.25))])
    assert lines.line_after("P-0\t0.1") is None
