"""The recipes that examples/README.md shows for data of one's own, from end to end at a tiny size."""

from __future__ import annotations

import json
import re
import subprocess
from itertools import islice

import pytest

from preprocess.english_german.__main__ import pairs
from tests.end_to_end.tiny_programs import write_corpus
from tests.recipes.commands import EXAMPLES, environment

FILES = re.compile(r"^```ini\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture
def examples(tmp_path):
    """A folder of examples with the library and nothing else."""
    folder = tmp_path / "examples"
    (folder / "mine").mkdir(parents=True)
    (folder / "lib").symlink_to(EXAMPLES / "lib")
    (folder / "mine" / "run.sh").write_bytes((EXAMPLES / "geo" / "run.sh").read_bytes())
    return folder


def result_of(examples, which, data, *arguments):
    text = FILES.findall((EXAMPLES / "README.md").read_text(encoding="utf-8"))[which]
    assert len(text.splitlines()) < 30
    (examples / "mine" / "recipe.ini").write_text(text, encoding="utf-8")
    out = examples.parent / "out"
    command = ["sh", examples / "mine" / "run.sh", "--toy", "--data", data, "--out", out, "--workers", "1", *arguments]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    result = json.loads((out / "result.json").read_text())
    assert result["description"]["recipe"] == "mine"
    return result


def test_parallel_text_of_ones_own(tmp_path, examples):
    data = tmp_path / "data"
    data.mkdir()
    drawn = [(" ".join(tree.leaves()), sentence) for tree, sentence in islice(pairs(seed=6, max_length=14), 120)]
    for language, side in (("en", 0), ("de", 1)):
        (data / f"train.{language}").write_text("".join(f"{pair[side]}\n" for pair in drawn), encoding="utf-8")
    result = result_of(examples, 0, data)
    assert result["metric"] == "sacrebleu" and result["score"] == result["sacrebleu"]
    assert result["description"]["parser"] == "right-branching"


def test_trees_of_ones_own(tmp_path, examples):
    write_corpus(tmp_path / "data", (48, 8, 8))
    result = result_of(examples, 1, tmp_path / "data")
    assert result["metric"] == "accuracy" and result["validity"] == 1 and result["sentences"] == {"test": 8}
