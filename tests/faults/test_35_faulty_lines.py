"""A faulty line of new text costs its own hypothesis and nothing else, and the message has its number."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.end_to_end import tiny_classes, tiny_programs
from tests.end_to_end.commands import hypotheses, lines_of, run
from tests.end_to_end.fixtures import TASK
from tests.end_to_end.test_sentence_classification import TASK as SENTENCES
from tests.end_to_end.test_sentence_classification import preprocess as preprocess_sentences
from tests.end_to_end.test_sentence_classification import train as train_sentences
from tests.end_to_end.test_structural_translation import TASK as STRUCTURAL
from tests.end_to_end.test_structural_translation import Modality, texts_for
from tests.end_to_end.test_structural_translation import preprocess as preprocess_programs
from tests.end_to_end.test_structural_translation import train as train_programs
from tests.end_to_end.test_tree_insertion import TASK as INSERTION
from tests.end_to_end.test_tree_insertion import preprocess as preprocess_insertion
from tests.end_to_end.test_tree_insertion import train as train_insertion
from tests.end_to_end.tiny_corpus import leaves, make_pairs
from tree_fairseq.errors import InputError, LineBreakError, LongSentenceError, TextFormatError, UnclosedTreeError

TREES = [pair.tree for pair in make_pairs(6, 5)]
DECODING = ("--cpu", "--beam", 2, "--max-len-b", 8)
NOT_UTF_8 = {"invalid": b"(S (NN \xff\xfe))", "torn": b"(S (NN caf\xc3", "surrogate": b"(S (NN \xed\xa0\x80))"}
# Faulty lines of trees, and the messages about them.
HOSTILE = {
    "U+2028": ("(S (NN a\u2028b))".encode(), LineBreakError, "U+2028 LINE SEPARATOR inside"),
    "U+0085": ("(S (NN a\u0085b))".encode(), LineBreakError, "U+0085 NEXT LINE inside"),
    "carriage return": (b"(S (NN a\rb))", LineBreakError, "U+000D CARRIAGE RETURN inside"),
    **{name: (line, TextFormatError, "is not valid UTF-8") for name, line in NOT_UTF_8.items()},
    "too long": (
        ("(S" + " (NN word)" * 1100 + ")").encode(),
        LongSentenceError,
        "a line of 1101 tokens, the end of the sentence among them, and the model reads at most 1024",
    ),
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


def generate(system: System, lines: list[bytes], folder: Path, *arguments: object) -> str:
    (folder / "raw").write_bytes(b"".join(line + b"\n" for line in lines))
    flags = ("--raw", folder / "raw", *DECODING, "--batch-size", 3, *arguments)
    return run("generate", system.data, *system.task, "--path", system.path, *flags)


def warnings(output: str) -> list[str]:
    return [line for line in output.splitlines() if "The hypothesis of this line is empty" in line]


@pytest.fixture(scope="module")
def translation(trained) -> System:
    return System(TASK, trained.data, trained.best, TREES)


GOOD = [tree.encode() for tree in TREES]


@pytest.fixture(scope="module")
def expected(translation) -> list[tuple[str, float]]:
    """The hypotheses of the good lines alone."""
    return list(hypotheses(interact(translation, GOOD, "--buffer-size", 7, "--batch-size", 7)).values())


@pytest.mark.parametrize("name", HOSTILE)
def test_a_faulty_line_among_good_ones(translation, expected, name):
    line, error, message = HOSTILE[name]
    lines = [*GOOD[:2], line, *GOOD[2:]]
    output = interact(translation, lines, "--buffer-size", 7, "--batch-size", 7)
    found = hypotheses(output)
    assert sorted(found) == list(range(7)) and found.pop(2) == ("", -math.inf)
    assert list(found.values()) == expected and len(expected) == 6
    [warning] = warnings(output)
    assert "input:3:" in warning and message in warning
    with pytest.raises(error, match=message.replace("+", r"\+")) as caught:
        interact(translation, lines, "--on-input-error", "stop")
    assert caught.value.line == 3


def test_faulty_lines_in_every_place(translation, expected, tmp_path):
    bad = [line for line, _, _ in HOSTILE.values()]
    lines = [bad[0], GOOD[0], *bad[1:4], GOOD[1], *bad[4:]]
    flags = ("--nbest-json", tmp_path / "json", "--output", tmp_path / "best")
    texts = ["", expected[0][0], "", "", "", expected[1][0], *[""] * (len(bad) - 4)]
    for name, output in (
        ("input", interact(translation, lines)),
        ("input", interact(translation, lines, "--buffer-size", 4, "--batch-size", 2, *flags)),
        (str(tmp_path / "raw"), generate(translation, lines, tmp_path, "--sorted-output", *flags)),
    ):
        assert [text for text, _ in hypotheses(output).values()] == texts
        assert list(lines_of("H", output)) == list(lines_of("S", output)) == list(range(len(lines)))
        numbers = [int(re.search(rf"{re.escape(name)}:(\d+):", line)[1]) for line in warnings(output)]
        assert sorted(numbers) == [1, 3, 4, 5, *range(7, len(lines) + 1)]
        if name != "input" or "best" in output:
            assert (tmp_path / "best").read_text(encoding="utf-8").split("\n") == [*texts, ""]
            sentences = list(map(json.loads, (tmp_path / "json").read_text(encoding="utf-8").splitlines()))
            assert [sentence["id"] for sentence in sentences] == list(range(len(lines)))
            trees = {1: TREES[0], 5: TREES[1], 8: HOSTILE["too long"][0].decode()}
            assert {sentence["id"]: sentence.get("source_brackets") for sentence in sentences} == {
                number: trees.get(number) for number in range(len(lines))
            }
            assert sentences[0]["hypotheses"] == [{"text": "", "score": None, "positional_scores": []}]
    with pytest.raises(TextFormatError, match=r"raw:3:") as caught:
        generate(translation, [*GOOD[:2], NOT_UTF_8["torn"]], tmp_path, "--on-input-error", "stop")
    assert caught.value.line == 3


def test_nothing_but_faulty_lines(translation, tmp_path):
    lines = [line for line, _, _ in HOSTILE.values()]
    for output in (
        interact(translation, lines, "--buffer-size", 20, "--batch-size", 20),
        generate(translation, lines, tmp_path),
    ):
        found = hypotheses(output)
        assert sorted(found) == list(range(len(lines))) and {text for text, _ in found.values()} == {""}
        assert len(warnings(output)) == len(lines)


def test_a_line_that_no_batch_can_hold(translation):
    long = ("(S" + " (NN man)" * 60 + ")").encode()
    output = interact(translation, [TREES[0].encode(), long], "--max-tokens", 40, "--buffer-size", 2)
    assert hypotheses(output)[1][0] == "" and hypotheses(output)[0][0]
    assert "input:2: a line of 61 tokens" in output and "--max-tokens is 40" in output


def test_lines_that_fairseq_would_skip_do_not_stop(translation):
    lines = [TREES[0].encode(), HOSTILE["too long"][0]]
    output = interact(translation, lines, "--on-input-error", "stop", "--skip-invalid-size-inputs-valid-test")
    assert hypotheses(output)[1][0] == ""


def test_constraints_stay_with_their_lines(stock_trained):
    """Under fairseq's own task, whose lines are plain text."""
    system = System(("--task", "translation"), stock_trained.data, stock_trained.best, [])
    plain = [leaves(tree).encode() for tree in TREES[:3]]
    words = [b"Hund", b"Garten", b"Frau"]
    lines = [text + b"\t" + word for text, word in zip(plain, words)]
    flags = ("--constraints", "--buffer-size", 8, "--batch-size", 8, "-s", "en", "-t", "de")
    output = interact(system, [lines[0], NOT_UTF_8["invalid"], *lines[1:]], *flags)
    found = lines_of("C", output)
    assert found == {0: "Hund", 2: "Garten", 3: "Frau"} and hypotheses(output)[1] == ("", -math.inf)


@pytest.fixture(scope="module")
def systems(tmp_path_factory) -> dict[str, System]:
    """A system for every other task."""
    folder = tmp_path_factory.mktemp("systems")
    programs = tiny_programs.write_corpus(folder / "programs", (16, 4, 4))
    pairs = tiny_programs.make_pairs(3, 9)
    requests, trees = [pair.request for pair in pairs], [pair.program for pair in pairs]
    found = {}
    for name, modality, lines in (
        ("sequence to symbols", Modality("sequence", "tree", ""), requests),
        ("symbols to symbols", Modality("tree", "tree", ""), trees),
        ("constituents to symbols", Modality("constituency", "tree", ""), requests),
    ):
        data = preprocess_programs(texts_for(programs, folder / name, modality), folder / f"{name} bin", modality)
        train_programs(data, folder / f"{name} run", "--max-update", 1)
        found[name] = System(STRUCTURAL, data, folder / f"{name} run" / "checkpoint_last.pt", lines)
    data = preprocess_insertion(programs, folder / "insertion")
    train_insertion(data, folder / "insertion run", "--max-update", 1)
    found["insertion"] = System(INSERTION, data, folder / "insertion run" / "checkpoint_last.pt", requests)
    for kind, lines in (
        ("trees", ["(1 (1 good) (0 film))", "a dull plot", "great"]),
        ("tsv", ["a good film", "a dull plot", "great"]),
    ):
        data = tiny_classes.preprocess(
            tiny_classes.write_examples(folder / f"{kind} text", kind), kind, folder / f"{kind} bin"
        )
        tiny_classes.train(data, folder / f"{kind} run", "--max-update", 1)
        found[kind] = System(tiny_classes.TASK, data, folder / f"{kind} run" / "checkpoint_last.pt", lines)
    for kind, lines in (
        ("sentence", ["a good film", "it is dull", "great"]),
        ("pair", ["a good film\tit is great", "dull\tbad", "a good\tbad film"]),
    ):
        data, path = preprocess_sentences(folder / f"{kind} text", kind), folder / f"{kind} run" / "checkpoint_last.pt"
        train_sentences(data, path.parent, kind, "--max-update", 1)
        found[kind] = System(SENTENCES, data, path, lines)
    return found


NAMES = (
    "sequence to symbols",
    "symbols to symbols",
    "constituents to symbols",
    "insertion",
    "trees",
    "tsv",
    "sentence",
    "pair",
)
CLASSES = ("trees", "tsv", "sentence", "pair")


@pytest.mark.parametrize("name", NAMES)
def test_every_task_goes_on(systems, tmp_path, name):
    system = systems[name]
    good = [line.encode() for line in system.lines]
    long = b" ".join([b"word"] * 5000)
    faulty = [NOT_UTF_8["invalid"], b"( count ( all " + b"lakes " * 5000 + b") )" if "symbols to" in name else long]
    if not name.startswith(("sequence", "insertion", "sentence")):  # plain words, which it separates
        faulty.append("a\u2028b".encode())
    if name == "pair":
        faulty += [b"no second sentence", b"one\ttwo\tthree"]
    lines = [good[0], *faulty, *good[1:]]
    places = [0, *range(len(lines) - 2, len(lines))]
    for flags in (("--buffer-size", len(lines), "--batch-size", len(lines)),):
        output, other = interact(system, lines, *flags), interact(system, good, *flags)
        found, expected = hypotheses(output), hypotheses(other)
        assert sorted(found) == list(range(len(lines)))
        assert [found[place] for place in places] == list(expected.values())
        assert {found[place] for place in set(found) - set(places)} == {("", -math.inf)}
        numbers = sorted(int(re.search(r"input:(\d+):", line)[1]) for line in warnings(output))
        assert numbers == list(range(2, 2 + len(faulty)))
        for kind in "BC":
            ours, theirs = lines_of(kind, output), lines_of(kind, other)
            assert [ours[place] for place in places if place in ours] == list(theirs.values())
            assert set(ours) <= set(places)
        assert len(lines_of("C", output)) == (3 if name in CLASSES else 0)
    output = generate(system, lines, tmp_path, "--sorted-output", "--batch-size", 8)
    texts = [text for text, _ in hypotheses(output).values()]
    assert list(lines_of("H", output)) == list(range(len(lines))) and texts[1:-2] == [""] * len(faulty)
    assert [texts[place] for place in places] == [text for text, _ in expected.values()]
    with pytest.raises(InputError) as caught:
        interact(system, [*good, NOT_UTF_8["torn"]], "--on-input-error", "stop")
    assert caught.value.line == 4
