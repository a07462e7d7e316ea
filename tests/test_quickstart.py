"""The quickstart, at toy size, on its own corpus and on a user's folder."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree
from itertools import islice
from pathlib import Path

import pytest

from preprocess.english_german.__main__ import pairs
from tests.fork_server import programs

ROOT = Path(__file__).resolve().parents[1]
BUNDLED = ROOT / "examples/quickstart/stanza-en"


def quickstart(*arguments: str, succeeds: bool = True) -> subprocess.CompletedProcess:
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(programs()), str(Path(sys.executable).parent), os.environ["PATH"]]),
        "CUDA_VISIBLE_DEVICES": "",
    }
    done = subprocess.run(
        [ROOT / "examples/quickstart/run.sh", *arguments], env=environment, capture_output=True, text=True, timeout=900
    )
    assert (done.returncode == 0) == succeeds, done.stdout[-3000:] + done.stderr[-3000:]
    assert "DEBUG" not in done.stdout + done.stderr and ".building/" not in done.stdout
    return done


def check(out: Path, printed: str, train_pairs: int) -> None:
    result = json.loads((out / "result.json").read_text(encoding="utf-8"))
    assert result["metric"] == "sacrebleu" and result["score"] == result["sacrebleu"]
    assert 0 <= result["sacrebleu_transformer"] <= 100
    assert result["pairs"]["train"] == train_pairs
    assert result["signature"] in printed and "tok:13a" in printed
    assert printed.count("  reference ") == 3
    assert str(out / "parse.svg") in printed
    assert re.search(r"\| fairseq-interactive .* --beam 5\n +\S.*\n.*done; type sentences of your own", printed)
    assert "@@" not in printed and (out / "data-bin/subwords.codes").is_file()
    picture = xml.etree.ElementTree.parse(out / "parse.svg").getroot()
    assert picture.tag.endswith("svg") and "NP" in [text.strip() for text in picture.itertext()]


def test_it_runs_on_its_own_corpus(tmp_path):
    out = tmp_path / "out"
    printed = quickstart("--toy", "--out", str(out)).stdout
    check(out, printed, 200)
    assert "--arch tree_transformer_tiny --distance-bias both" in printed
    assert "--arch transformer_distance_bias --distance-bias linear" in printed
    # The log shows that Stanza parsed with the bundled model.
    log = (out / "logs/preprocess.log").read_text(encoding="utf-8")
    assert "200 parsed" in log and "0 lines with a flat tree" in log
    assert json.loads((out / "data-bin/tree.json").read_text(encoding="utf-8"))


def test_it_runs_on_a_users_folder(tmp_path):
    folder, out = tmp_path / "mine", tmp_path / "out"
    folder.mkdir()
    drawn = [(" ".join(tree.leaves()), sentence) for tree, sentence in islice(pairs(seed=6, max_length=14), 130)]
    for language, side in (("en", 0), ("de", 1)):
        (folder / f"train.{language}").write_text(
            "".join(pair[side].capitalize() + "\n" for pair in drawn), encoding="utf-8"
        )
    printed = quickstart(
        "--toy",
        "--data",
        str(folder),
        "--out",
        str(out),
        "--parser-dir",
        str(BUNDLED),
        "--subset",
        "120",
        "--distance-bias",
        "none",
    ).stdout
    check(out, printed, 108)
    assert "--arch transformer," in printed and "--distance-bias" not in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--nonsense",), "unknown option --nonsense"),
        (("--updates",), "--updates needs a value"),
        (("--distance-bias", "near"), "give none, linear, tree or both"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    done = quickstart(*arguments, succeeds=False)
    assert message in done.stderr and "usage:" in done.stderr


def test_a_folder_without_text_is_refused_at_once(tmp_path):
    done = quickstart("--data", str(tmp_path), "--out", str(tmp_path / "out"), succeeds=False)
    assert "it needs train.SOURCE and train.TARGET" in done.stderr
    assert not (tmp_path / "out/data-bin").exists()


def quickstart_module():
    spec = importlib.util.spec_from_file_location("quickstart", ROOT / "examples/quickstart/quickstart.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_training_shows_how_far_it_is_and_the_time_that_is_left(tmp_path, capsys, monkeypatch):
    module = quickstart_module()
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", 0)
    run = module.Quickstart({"out": str(tmp_path)})
    run.logs.mkdir()
    line = module.Line()
    for name, updates in (("tree_transformer", ()), ("transformer", (10,)), ("tree_transformer", (10, 20))):
        lines = [f"2026 | INFO | train_inner | epoch 001: loss=5.5, ppl=45, num_updates={n}, lr=0.1\n" for n in updates]
        (run.logs / f"{name}.log").write_text("".join(lines))
        (run.logs / "transformer.log").touch()
        line.show(lambda: run.progress(["tree_transformer", "transformer"], 100, 30.0))
    line.end()
    assert capsys.readouterr().out.splitlines() == [
        "the trainings start",
        "transformer 10 of 100 updates, loss 5.5",
        "tree_transformer 20 of 100 updates, loss 5.5; transformer 10 of 100 updates, loss 5.5, about 4:30 left",
    ]
