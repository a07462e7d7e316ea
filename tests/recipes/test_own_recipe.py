"""The script that examples/README.md shows for data of one's own, from end to end at a tiny size."""

from __future__ import annotations

import json
import re
import subprocess

from tests.end_to_end.tiny_programs import write_corpus
from tests.recipes.commands import EXAMPLES, LIBRARY, environment


def test_trees_of_ones_own(tmp_path):
    [script] = re.findall(r"^```bash\n(#!.*?)^```", (EXAMPLES / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    folder = tmp_path / "examples" / "mine"
    folder.mkdir(parents=True)
    (folder.parent / "lib").symlink_to(LIBRARY)
    (folder / "run.sh").write_text(script)
    write_corpus(tmp_path / "data", (48, 8, 8))
    command = ["bash", folder / "run.sh", "--toy", "--data", tmp_path / "data", "--out", tmp_path / "out"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    [scores] = (tmp_path / "out" / "toy").rglob("score.json")
    result = json.loads(scores.read_text())
    assert result["metrics"]["validity"] == 1 and result["primary"] == "accuracy"
