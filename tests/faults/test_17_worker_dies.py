"""Fault 17: a parsing process is killed: the run fails within seconds and says so, and nothing half-written has a final
name.
"""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from tests.parsing.children import children
from tests.parsing.conftest import toy_lines, write_text
from tests.parsing.fake_parsers import SLEEP_VARIABLE
from tree_fairseq.commands.parse import main
from tree_fairseq.errors import WorkerDiedError
from tree_fairseq.parsing.corpus import parse_corpus
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.trees.bracket import read_forest
from tree_fairseq.trees.tree import forest_leaves


def test_a_process_that_dies_by_itself(tmp_path, caplog):
    lines = [f"w{index} x" for index in range(60)]
    lines[33] = "now DIE"
    text = write_text(tmp_path / "text", lines)
    started = time.monotonic()
    flags = [
        "--tree-parser",
        "faulty",
        "--workers",
        "2",
        "--shard-lines",
        "10",
        "--tree-batch-size",
        "5",
        "--no-progress-bar",
    ]
    assert main([str(text), str(tmp_path / "out.brackets"), *flags]) == 1
    assert time.monotonic() - started < 30
    assert "was killed by SIGKILL" in caplog.text and "--tree-batch-size" in caplog.text
    assert not (tmp_path / "out.brackets").exists()
    names = os.listdir(tmp_path / "out.brackets.shards")
    assert not [name for name in names if name.endswith(".tmp")]
    for name in names:
        if name.endswith(".brackets"):
            assert (tmp_path / "out.brackets.shards" / name).read_text().count("\n") == 10
    assert children(program="parsing import processes") == []


@pytest.mark.parametrize("when", [0.0, 0.6, 1.2])
def test_a_process_that_is_killed_from_outside(tmp_path, monkeypatch, when):
    lines = [line for line in toy_lines(200, seed=5) if line]
    text = write_text(tmp_path / "text", lines)
    monkeypatch.setenv(SLEEP_VARIABLE, "0.3")
    outcome = []

    def run(**arguments):
        try:
            options = ParserOptions(name="toy", batch_size=4)
            outcome.append(parse_corpus(text, tmp_path / "out", options, shard_lines=20, progress=False, **arguments))
        except WorkerDiedError as error:
            outcome.append(error)

    thread = threading.Thread(target=run, kwargs={"workers": 2})
    thread.start()
    while not (alive := children(program="parsing import processes")):
        time.sleep(0.01)
    time.sleep(when)
    started = time.monotonic()
    os.kill(min(alive), signal.SIGKILL)
    thread.join(20)
    assert time.monotonic() - started < 10
    assert isinstance(outcome[0], WorkerDiedError) and "SIGKILL" in str(outcome[0])
    monkeypatch.setenv(SLEEP_VARIABLE, "0")
    run(workers=0)
    forests = "".join(path.read_text() for path in outcome[1].shards).splitlines()
    assert [forest_leaves(read_forest(forest)) for forest in forests] == [line.split() for line in lines]
