"""The roads from a sentence to its translation: generate, interactive, translate and the hub, which have to agree."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.end_to_end.commands import hypotheses, lines_of, readable, run
from tree_fairseq import hub


class Roads(NamedTuple):
    """What the commands printed, and what ``translate`` wrote as JSON about typed lines."""

    generated: str
    typed: str
    translated: str
    sentences: list[dict[str, Any]]

    @property
    def best(self) -> list[dict[str, Any]]:
        return [sentence["hypotheses"][0] for sentence in self.sentences]


def assert_equal(found: dict[int, tuple[str, float]], expected: dict[int, tuple[str, float]]) -> None:
    assert {number: text for number, (text, _) in found.items()} == {
        number: text for number, (text, _) in expected.items()
    }
    scores = [score for _, score in expected.values()]
    assert [found[number][1] for number in expected] == pytest.approx(scores, abs=1e-3)


def take_all(
    data: Path, path: Path, task: Sequence[str], lines: Sequence[str], folder: Path, *more: object, **options: Any
) -> Roads:
    """Translates the test set of a folder, and its lines, on all roads; makes sure that the outputs are the same.

    The hub is left out if there are more flags of the commands.
    """
    text = "".join(f"{line}\n" for line in lines)
    (folder / "typed").write_text(text, encoding="utf-8")
    flags = (*more, *(word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)))
    common = (data, *task, "--path", path, "--cpu", *flags)
    generated = run("generate", *common, "--batch-size", 7, "--required-batch-size-multiple", 1)
    typed = run("interactive", *common, "--buffer-size", 9, "--batch-size", 4, stdin=text)
    files = [("--sorted", "--nbest-json", folder / f"{name}.jsonl") for name in ("typed", "split")]
    translated = run("translate", *common, "--input", folder / "typed", *files[0])
    split = run("translate", *common, "--gen-subset", "test", "--batch-size", 5, *files[1])
    expected = hypotheses(generated)
    assert sorted(expected) == list(range(len(lines)))
    for output in (typed, translated, split):
        assert_equal(hypotheses(output), expected)
        assert readable(output) == readable(generated)
    for output in (translated, split):
        assert list(hypotheses(output)) == list(range(len(lines))), "in the order of the input"
    assert lines_of("T", split) == lines_of("T", generated)
    of_lines, of_split = (
        list(map(json.loads, (folder / f"{name}.jsonl").open(encoding="utf-8"))) for name in ("typed", "split")
    )
    for number, (ours, theirs) in enumerate(zip(of_lines, of_split)):
        assert ours["id"] == theirs["id"] == number and ours["source"] == theirs["source"]
        # Of a text that is cut, a folder's tree ends where the model reads to.
        assert (ours.get("source_brackets") or "").startswith(theirs.get("source_brackets") or "")
    roads = Roads(generated, typed, translated, of_lines)
    if not more:
        model = hub.from_pretrained(path.parent, path.name, data)
        assert model.translate(list(lines), **options) == [best["text"] for best in roads.best]
    return roads
