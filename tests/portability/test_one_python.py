"""Each method from text to output under the Python of the tests: preprocess, train, generate, resume, interactive."""

from __future__ import annotations

import pytest

from tests.end_to_end.commands import hypotheses, run
from tests.portability.methods import METHODS, make, outputs, write

# The file of the test split whose lines a user would type; classes are predicted for words, which are parsed anew.
TYPED = {"trees": "test.en", "words": "test.en", "programs": "test.nl"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("methods")
    write(folder / "text")
    make(folder / "text", folder / "own")
    return folder, outputs(folder / "own", folder / "scratch")


@pytest.mark.parametrize("name", METHODS)
def test_training_generation_and_resuming(made, name):
    _, found = made
    loaded, loss = found["resumed"][name]
    assert loaded and loss > 0
    assert len(found["hypotheses"][name]) == (13 if name == "classification" else 16)


@pytest.mark.parametrize("name", METHODS)
def test_typed_lines(made, name):
    folder, found = made
    method = METHODS[name]
    if method.text == "classes":
        lines, flags = ["a great film"], ()
    else:
        lines = (folder / "text" / method.text / TYPED[method.text]).read_text(encoding="utf-8").splitlines()
        flags = method.generate
    checkpoint = folder / "own" / name / "run/checkpoint_last.pt"
    command = ("interactive", folder / "own" / name / "data-bin", *method.task, "--path", checkpoint, "--cpu", *flags)
    typed = hypotheses(run(*command, stdin="".join(f"{line}\n" for line in lines[:4])))
    assert sorted(typed) == list(range(len(lines[:4])))
    if method.text != "classes":
        for number, (text, score) in typed.items():
            assert text == found["hypotheses"][name][number][0]
            assert score == pytest.approx(found["hypotheses"][name][number][1], abs=1e-4)
