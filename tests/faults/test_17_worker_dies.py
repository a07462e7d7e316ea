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
from tests.parsing.conftest import content, parse_file, small_blocks, toy_lines, write_text  # noqa: F401 (a fixture)
from tests.parsing.fake_parsers import SLEEP_VARIABLE
from tree_fairseq.commands.parse import main
from tree_fairseq.errors import WorkerDiedError
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.support.files import read_json
from tree_fairseq.trees.bracket import read_forest
from tree_fairseq.trees.tree import forest_leaves


def finished_lines(marker):
    return marker.with_suffix(".trees").read_text().count("\n")


def test_a_process_that_dies_by_itself(tmp_path, small_blocks, caplog):
    lines = [f"w{index} x" for index in range(200)]
    lines[190] = "now DIE"
    text = write_text(tmp_path / "text", lines)
    started = time.monotonic()
    flags = ["--tree-parser", "faulty", "--workers", "2", "--tree-batch-size", "5"]
    assert main([str(text), str(tmp_path / "out.brackets"), *flags]) == 1
    assert time.monotonic() - started < 30
    assert "was killed by SIGKILL" in caplog.text and "--tree-batch-size" in caplog.text
    assert not (tmp_path / "out.brackets").exists()
    shards = list((tmp_path / "out.brackets.shards").glob("*.json"))
    assert shards and all(finished_lines(shard) == read_json(shard)["lines"] for shard in shards)
    assert children(program="spawn_main") == []


@pytest.mark.parametrize("when", [0.0, 0.6, 1.2])
def test_a_process_that_is_killed_from_outside(tmp_path, small_blocks, monkeypatch, when):
    lines = [line for line in toy_lines(200, seed=5) if line]
    text = write_text(tmp_path / "text", lines)
    monkeypatch.setenv(SLEEP_VARIABLE, "0.3")
    outcome = []

    def run(workers):
        try:
            options = ParserOptions(name="toy", batch_size=4)
            outcome.append(parse_file(text, tmp_path / "out", options, workers))
        except WorkerDiedError as error:
            outcome.append(error)

    thread = threading.Thread(target=run, args=(2,))
    thread.start()
    while not (alive := children(program="spawn_main")):
        time.sleep(0.01)
    time.sleep(when)
    started = time.monotonic()
    os.kill(min(alive), signal.SIGKILL)
    thread.join(20)
    assert time.monotonic() - started < 10
    assert isinstance(outcome[0], WorkerDiedError) and "SIGKILL" in str(outcome[0])
    monkeypatch.setenv(SLEEP_VARIABLE, "0")
    run(0)
    forests = content(outcome[1].shards).decode().splitlines()
    assert [forest_leaves(read_forest(forest)) for forest in forests] == [line.split() for line in lines]
