"""The command that parses a file, alone and under torchrun."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.parsing.conftest import toy_lines, write_text
from tree_fairseq.commands.parse import main


@pytest.fixture
def text(tmp_path):
    return write_text(tmp_path / "text.en", toy_lines(95))


def test_the_command_line(text, tmp_path, capfd):
    output = tmp_path / "out.brackets"
    assert main([str(text), str(output), "--tree-parser", "balanced", "--shard-lines", "10"]) == 0
    assert len(output.read_text().splitlines()) == 95
    assert len(list((tmp_path / "out.brackets.shards").glob("*.brackets"))) == 10
    assert main([str(tmp_path / "missing"), str(output)]) == 1
    assert main([str(text), str(output), "--tree-parser", "berkeley"]) == 1
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0 and "torchrun" in capfd.readouterr().out


def test_torchrun_shares_a_corpus(text, tmp_path):
    """The command of the documentation, with two real ranks."""
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        "-m",
        "tree_fairseq.commands.parse",
    ]
    output = tmp_path / "out.brackets"
    flags = [str(text), str(output), "--tree-parser", "random", "--shard-lines", "20", "--no-progress-bar"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run([*command, *flags], check=True, env=environment, timeout=400, capture_output=True)
    expected = tmp_path / "alone.brackets"
    assert main([str(text), str(expected), *flags[2:]]) == 0
    assert output.read_bytes() == expected.read_bytes()
