"""The quickstart, at toy size, on its own corpus and on a user's folder."""

from __future__ import annotations

import json
import re
import subprocess
import xml.etree.ElementTree
from itertools import islice
from pathlib import Path

import pytest

from preprocess.english_german.__main__ import pairs
from tests.fork_server import environment

ROOT = Path(__file__).resolve().parents[1]
BUNDLED = ROOT / "examples/quickstart/stanza-en"


def quickstart(*arguments: str, succeeds: bool = True) -> str:
    command = [ROOT / "examples/quickstart/run.sh", *arguments]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=900)
    assert (done.returncode == 0) == succeeds, done.stdout[-3000:] + done.stderr[-3000:]
    assert "DEBUG" not in done.stdout + done.stderr and ".building/" not in done.stdout
    return done.stdout + done.stderr


def check(out: Path, printed: str, train_pairs: int) -> None:
    result = json.loads((out / "result.json").read_text(encoding="utf-8"))
    assert result["metric"] == "sacrebleu" and result["score"] == result["sacrebleu"]
    assert 0 <= result["sacrebleu_transformer"] <= 100
    assert result["pairs"]["train"] == train_pairs
    assert result["signature"] in printed and "tok:13a" in printed
    assert printed.count("  reference ") == 3
    assert str(out / "parse.svg") in printed
    assert re.search(r"^    \S", printed.partition("learning_curves.png")[2], re.MULTILINE)  # the typed sentence
    assert "@@" not in printed and (out / "data-bin/subwords.codes").is_file()
    picture = xml.etree.ElementTree.parse(out / "parse.svg").getroot()
    assert picture.tag.endswith("svg") and "NP" in [text.strip() for text in picture.itertext()]


def test_it_removes_nothing_that_it_has_not_made(tmp_path):
    (tmp_path / "data-bin").mkdir()
    assert "data-bin is of no earlier run" in quickstart("--out", str(tmp_path), succeeds=False)
    assert (tmp_path / "data-bin").exists()


def test_it_runs_on_its_own_corpus(tmp_path):
    out = tmp_path / "toy"
    printed = quickstart("--toy", "--out", str(tmp_path))
    check(out, printed, 200)
    assert "--arch tree_transformer_tiny --distance-bias both" in printed
    assert "--arch transformer_distance_bias --distance-bias linear" in printed
    # The log shows that Stanza parsed with the bundled model.
    log = (out / "logs/preprocess.log").read_text(encoding="utf-8")
    assert "200 parsed" in log and "0 lines with a flat tree" in log
    assert json.loads((out / "data-bin/tree.json").read_text(encoding="utf-8"))


def test_it_runs_on_a_users_folder(tmp_path):
    folder, out = tmp_path / "mine", tmp_path / "out/toy"
    folder.mkdir()
    drawn = [(" ".join(tree.leaves()), sentence) for tree, sentence in islice(pairs(seed=6, max_length=14), 130)]
    for language, side in (("en", 0), ("de", 1)):
        (folder / f"train.{language}").write_text(
            "".join(pair[side].capitalize() + "\n" for pair in drawn), encoding="utf-8"
        )
    printed = quickstart(
        "--toy", "--data", str(folder), "--out", str(tmp_path / "out"), "--parser-dir", str(BUNDLED), "--subset",
        "120", "--distance-bias", "none",
    )  # fmt: skip
    check(out, printed, 108)
    assert "--arch transformer " in printed and "--distance-bias" not in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--nonsense",), "unknown option --nonsense"),
        (("--updates",), "--updates needs a value"),
        (("--distance-bias", "near"), "give none, linear, tree or both"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    assert message in quickstart(*arguments, succeeds=False)


def test_a_folder_without_text_is_refused_at_once(tmp_path):
    printed = quickstart("--data", str(tmp_path), "--out", f"{tmp_path}-out", succeeds=False)
    assert "it needs train.SOURCE and train.TARGET" in printed
    assert not Path(f"{tmp_path}-out/data-bin").exists()
