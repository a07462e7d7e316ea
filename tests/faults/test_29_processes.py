"""Fault 29 with processes: those that fairseq or torchrun start find a plugin that is given by a relative path.

A process that fairseq starts is a new Python. It gets fairseq's configuration and has to import the plugin by it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.end_to_end.commands import PLUGIN, run_in_process
from tests.end_to_end.fixtures import TASK
from tests.end_to_end.ranks import SETTINGS, free_port, long_test


def arguments(data: Path, folder: Path) -> list[object]:
    settings = {**SETTINGS, "--max-epoch": 1, "--batch-size": 32, "--user-dir": "links/plugin", "--save-dir": folder}
    flags = [part for setting in settings.items() for part in setting]
    return [data, *TASK, *flags, "--cpu", "--distributed-world-size", 2]


@pytest.mark.parametrize("launcher", ["fairseq", pytest.param("torchrun", marks=long_test)])
def test_started_processes_find_the_plugin(data_bin, tmp_path, launcher):
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "plugin").symlink_to(PLUGIN)
    programs = Path(sys.executable).parent
    command: list[object] = [programs / "fairseq-train", *arguments(data_bin, tmp_path / "checkpoints")]
    if launcher == "torchrun":
        address = ["--master-addr", "127.0.0.1", "--master-port", free_port()]
        command = [programs / "torchrun", "--nproc-per-node", 2, *address, *command, "--distributed-no-spawn"]
    finished = run_in_process(command, cwd=tmp_path)
    assert finished.returncode == 0, finished.stdout
    assert "training on 2 devices" in finished.stdout
    # 160 sentences in 5 batches, two of them an update.
    assert re.search(r"\| train \| epoch 001 .* num_updates 3 ", finished.stdout)
    assert (tmp_path / "checkpoints" / "checkpoint_best.pt").exists()
