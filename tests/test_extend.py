"""The examples of the page on extending run as they are written there."""

from __future__ import annotations

import json
import re
import subprocess
from itertools import islice
from pathlib import Path

import pytest

from preprocess.english_german.__main__ import pairs
from tests.fork_server import environment
from tree_fairseq.commands.check import check_folder
from tree_fairseq.data_bin.manifest import Manifest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs/extending.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^```python\n# (\S+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
COMMANDS = re.findall(r"^```bash\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("extend")
    for name, text in FILES.items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(text, encoding="utf-8")
    (place / "text").mkdir()
    rows = [(" ".join(tree.leaves()), german) for tree, german in islice(pairs(seed=3, max_length=12), 40)]
    for split in ("train", "valid", "test"):
        for language, side in (("en", 0), ("de", 1)):
            (place / f"text/{split}.{language}").write_text("".join(f"{row[side]}\n" for row in rows), encoding="utf-8")
    return place


def run(folder, script):
    command = ["bash", "-euc", script.replace("$(tree-fairseq path)", str(ROOT / "tree_fairseq"))]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


def test_examples_are_short():
    assert set(FILES) == {"my_parsers.py", "my_plugin/__init__.py", "my_data.py"} and len(COMMANDS) == 3
    assert all(text.count("\n") < 30 for text in FILES.values())


def test_a_parser_and_an_encoder(folder):
    run(folder, COMMANDS[0])
    manifest = Manifest.load(folder / "data-bin")
    assert "comb" in json.dumps(manifest.side("en").identity) and check_folder(folder / "data-bin") == []
    log = run(folder, COMMANDS[1])
    assert "BackwardEncoder" in log and "done training" in log


def test_a_data_set(folder, tmp_path):
    rows = [{"question": f"how many rivers  of s{n}", "form": f"( count ( river s{n} ) )"} for n in range(5)]
    (tmp_path / "train.json").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "my_data.py").symlink_to(folder / "my_data.py")
    run(tmp_path, COMMANDS[2])
    assert Manifest.load(tmp_path / "data-bin").split("lf", "train").lines == 5
