"""A faulty line of new text costs its own hypothesis and nothing else, and the message has its number."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.end_to_end import insertion, sentences, structural, tiny_classes, tiny_programs
from tests.end_to_end.commands import hypotheses, lines_of, run
from tests.end_to_end.fixtures import TASK
from tests.end_to_end.tiny_corpus import leaves, make_pairs
from tree_fairseq import hub
from tree_fairseq.errors import InputError, LineBreakError, TextFormatError, UnclosedTreeError

TREES = [pair.tree for pair in make_pairs(6, 5)]
DECODING = ("--cpu", "--beam", 2, "--max-len-b", 8)
NOT_UTF_8 = {"invalid": b"(S (NN \xff\xfe))", "torn": b"(S (NN caf\xc3", "surrogate": b"(S (NN \xed\xa0\x80))"}
# Faulty lines of trees, and the messages about them.
HOSTILE = {
    "U+2028": ("(S (NN a\u2028b))".encode(), LineBreakError, "U+2028 LINE SEPARATOR inside"),
    "U+0085": ("(S (NN a\u0085b))".encode(), LineBreakError, "U+0085 NEXT LINE inside"),
    "carriage return": (b"(S (NN a\rb))", LineBreakError, "U+000D CARRIAGE RETURN inside"),
    **{name: (line, TextFormatError, "is not valid UTF-8") for name, line in NOT_UTF_8.items()},
    "too long": (("(S" + " (NN word)" * 1100 + ")").encode(), InputError, "the line is longer than the model reads"),
    "unclosed": (b"(S (NN a)", UnclosedTreeError, "never closed"),
}


class System(NamedTuple):
    """A model that has learned next to nothing: its task, folder, checkpoint and three lines that it can read."""

    task: tuple[str, ...]
    data: Path
    path: Path
    lines: list[str]


def interact(system: System, lines: list[bytes], *arguments: object) -> str:
    text = b"".join(line + b"\n" for line in lines)
    return run("interactive", system.data, *system.task, "--path", system.path, *DECODING, *arguments, stdin=text)


def translate(system: System, lines: list[bytes], folder: Path, *arguments: object) -> str:
    (folder / "lines").write_bytes(b"".join(line + b"\n" for line in lines))
    flags = ("--input", folder / "lines", "--sorted", "--batch-size", 3, *DECODING, *arguments)
    return run("translate", system.data, *system.task, "--path", system.path, *flags)


def warnings(output: str) -> list[str]:
    return [line for line in output.splitlines() if "The hypothesis of this line is empty" in line]


@pytest.fixture(scope="module")
def translation(trained) -> System:
    return System(TASK, trained.data, trained.best, TREES)


GOOD = [tree.encode() for tree in TREES]


@pytest.fixture(scope="module")
def expected(translation) -> list[tuple[str, float]]:
    return list(hypotheses(interact(translation, GOOD, "--buffer-size", 7, "--batch-size", 7)).values())


@pytest.mark.parametrize("name", HOSTILE)
def test_a_faulty_line_among_good_ones(translation, expected, name, tmp_path):
    line, error, message = HOSTILE[name]
    lines = [*GOOD[:2], line, *GOOD[2:]]
    output = interact(translation, lines, "--buffer-size", 7, "--batch-size", 7)
    found = hypotheses(output)
    assert sorted(found) == list(range(7)) and found.pop(2) == ("", -math.inf)
    assert list(found.values()) == expected and len(expected) == 6
    [warning] = warnings(output)
    assert "input:3:" in warning and message in warning
    with pytest.raises(error, match=message.replace("+", r"\+")) as caught:
        translate(translation, lines, tmp_path, "--on-input-error", "stop")
    assert caught.value.line == 3


def test_faulty_lines_in_every_place(translation, expected, tmp_path):
    bad = [line for line, _, _ in HOSTILE.values()]
    lines = [bad[0], GOOD[0], *bad[1:4], GOOD[1], *bad[4:]]
    texts = ["", expected[0][0], "", "", "", expected[1][0], *[""] * (len(bad) - 4)]
    for name, output in (
        ("input", interact(translation, lines)),
        ("input", interact(translation, lines, "--buffer-size", 4, "--batch-size", 2)),
        (str(tmp_path / "lines"), translate(translation, lines, tmp_path, "--nbest-json", tmp_path / "json")),
    ):
        assert [text for text, _ in hypotheses(output).values()] == texts
        assert list(lines_of("H", output)) == list(lines_of("S", output)) == list(range(len(lines)))
        numbers = [int(re.search(rf"{re.escape(name)}:(\d+):", line)[1]) for line in warnings(output)]
        assert sorted(numbers) == [1, 3, 4, 5, *range(7, len(lines) + 1)]
    sentences = list(map(json.loads, (tmp_path / "json").read_text(encoding="utf-8").splitlines()))
    assert [sentence["id"] for sentence in sentences] == list(range(len(lines)))
    assert {sentence["id"]: sentence["source_brackets"] for sentence in sentences if sentence["source"]} == {
        1: TREES[0],
        5: TREES[1],
    }
    assert sentences[0]["hypotheses"] == [{"text": "", "score": None, "positional_scores": []}]


def test_nothing_but_faulty_lines(translation, tmp_path):
    lines = [line for line, _, _ in HOSTILE.values()]
    for output in (
        interact(translation, lines, "--buffer-size", 20, "--batch-size", 20),
        translate(translation, lines, tmp_path),
    ):
        found = hypotheses(output)
        assert sorted(found) == list(range(len(lines))) and {text for text, _ in found.values()} == {""}
        assert len(warnings(output)) == len(lines)


def test_a_line_that_no_batch_can_hold(translation):
    long = ("(S" + " (NN man)" * 60 + ")").encode()
    output = interact(translation, [TREES[0].encode(), long], "--max-tokens", 40, "--buffer-size", 2)
    assert hypotheses(output)[1][0] == "" and hypotheses(output)[0][0]
    assert "input:2: the line is longer than the model reads, or --max-tokens allows" in output


def test_a_task_of_fairseq_ends_at_a_faulty_line_and_names_it(stock_trained, tmp_path):
    system = System(("--task", "translation"), stock_trained.data, stock_trained.best, [])
    lines = [leaves(TREES[0]).encode(), NOT_UTF_8["invalid"]]
    with pytest.raises(TextFormatError, match="^input:2:.* is not valid UTF-8"):
        interact(system, lines, "-s", "en", "-t", "de")


@pytest.fixture
def systems(shared) -> Callable[[str], System]:
    pairs = tiny_programs.make_pairs(3, 9)
    requests, programs = [pair.request for pair in pairs], [pair.program for pair in pairs]

    def of_trees(folder: Path) -> None:
        examples = tiny_classes.write_examples(folder / "text", "trees")
        tiny_classes.train(tiny_classes.preprocess(examples, "trees", folder / "data"), folder / "run")

    def of_pairs(folder: Path) -> None:
        data = sentences.preprocess(sentences.write_rows(folder, "pair"), "pair", folder / "data")
        sentences.train(data, folder / "run", "pair", "--max-update", 1)

    def classifier(name: str, make: Callable[[Path], None], task: tuple[str, ...], lines: list[str]) -> System:
        folder, _ = shared(f"classified {name}", make)
        return System(task, folder / "data", folder / "run" / "checkpoint_best.pt", lines)

    def system(name: str) -> System:
        if name in structural.MODALITIES:
            made = structural.system_of(shared, name)
            return System(structural.TASK, made.data, made.best, programs if name == "tree-to-tree" else requests)
        if name == "insertion":
            made = insertion.system_of(shared, "numbered")
            return System(insertion.TASK, made.data, made.best, requests)
        if name == "trees":
            return classifier(name, of_trees, tiny_classes.TASK, ["(1 (1 good) (0 film))", "a dull plot", "great"])
        return classifier(name, of_pairs, sentences.TASK, ["a good film\tgreat", "dull\tbad", "good\tfilm"])

    return system


@pytest.mark.parametrize("name", ["tree-to-tree", "constituency-to-tree", "insertion", "trees", "pair"])
def test_every_task_goes_on(systems, tmp_path, name):
    system = systems(name)
    good = [line.encode() for line in system.lines]
    long = b" ".join([b"word"] * 5000)
    faulty = [NOT_UTF_8["invalid"], b"( count ( all " + b"lakes " * 5000 + b") )" if name == "tree-to-tree" else long]
    if name != "insertion":  # it reads plain words, which the character separates
        faulty.append("a\u2028b".encode())
    if name == "pair":
        faulty += [b"no second sentence", b"one\ttwo\tthree"]
    lines = [good[0], *faulty, b"", b" \t", *good[1:]]  # the last two have an empty output, which nobody is told
    places = [0, *range(len(lines) - 2, len(lines))]
    flags = ("--buffer-size", len(lines), "--batch-size", len(lines))
    expected = hypotheses(interact(system, good, *flags))
    scores = [score for _, score in expected.values()]
    for output in (interact(system, lines, *flags), translate(system, lines, tmp_path)):
        found = hypotheses(output)
        assert sorted(found) == list(range(len(lines)))
        assert [found[place][0] for place in places] == [text for text, _ in expected.values()]
        assert [found[place][1] for place in places] == pytest.approx(scores, abs=1e-3)
        assert {found[place] for place in set(found) - set(places)} == {("", -math.inf)}
        numbers = sorted(int(re.search(r"(?:input|lines):(\d+):", line)[1]) for line in warnings(output))
        assert numbers == list(range(2, 2 + len(faulty)))
    for kind in "BC":  # of translate, the last of the two
        assert set(lines_of(kind, output)) in (set(), set(places))
    with pytest.raises(InputError) as caught:
        translate(system, [*good, NOT_UTF_8["torn"]], tmp_path, "--on-input-error", "stop")
    assert caught.value.line == 4
    model = hub.from_pretrained(system.path.parent, system.path.name, system.data)
    answer = model.classify if name in ("trees", "pair") else model.translate
    assert answer(["", system.lines[0], " "])[::2] == [answer("")] * 2 and answer("") in ("", ("", {}, None))
