"""Processes that load data leave nothing behind, and where one is killed the error says so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader, Dataset
from torch.utils.data._utils import signal_handling

from tree_fairseq.errors import WorkerDiedError


class Tensors(Dataset):
    def __len__(self) -> int:
        return 1000

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((3,), index)


@pytest.fixture(autouse=True)
def silent_handler(monkeypatch):
    """torch's handler of signals would raise an error of its own, wherever the main thread is."""
    monkeypatch.setattr(signal_handling, "_error_if_any_worker_fails", lambda: None)


def kill_worker(iterator):
    """Kills the one process of an iterator, and returns it."""
    [worker] = iterator._workers
    os.kill(worker.pid, signal.SIGKILL)
    return worker


def test_a_killed_process_is_named():
    iterator = iter(DataLoader(Tensors(), batch_size=2, num_workers=1))
    assert next(iterator).tolist() == [[0] * 3, [1] * 3]
    worker = kill_worker(iterator)
    with pytest.raises(
        WorkerDiedError, match=rf"\(pid {worker.pid}\) was killed by SIGKILL; .* the same command again"
    ):
        for _ in range(500):
            next(iterator)


def test_a_process_that_is_killed_between_two_epochs_is_named():
    """As those of the validation, which wait during the training."""
    loader = DataLoader(Tensors(), batch_size=100, num_workers=1, persistent_workers=True)
    assert len(list(loader)) == 10
    worker = kill_worker(loader._iterator)
    worker.join()
    with pytest.raises(WorkerDiedError, match=rf"\(pid {worker.pid}\) was killed by SIGKILL"):
        list(loader)


def test_an_error_of_the_data_stays_what_it_is():
    class Faulty(Tensors):
        def __getitem__(self, index: int) -> torch.Tensor:
            raise RuntimeError("torn")

    with pytest.raises(RuntimeError, match="torn"):
        next(iter(DataLoader(Faulty(), num_workers=1)))


def test_no_folder_is_left_at_the_end_of_the_program(tmp_path):
    """An iterator that is in the middle of its data when the program ends, as fairseq's are."""
    program = """
        import torch
        from torch.utils.data import DataLoader
        from tree_fairseq.repairs import loading_processes
        loading_processes.install()
        loading_processes.install()
        iterator = iter(DataLoader(torch.ones(50, 3), num_workers=2))
        next(iterator), next(iterator)
    """
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env=environment, check=True, timeout=300)
    assert not list(tmp_path.glob("pymp-*"))
