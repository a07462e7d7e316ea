"""Processes of ``fairseq-train`` that train together on the CPU, each a command of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.end_to_end.commands import PLUGIN, ROOT, script
from tests.end_to_end.fixtures import TASK

IS_LONG = os.environ.get("TREE_FAIRSEQ_LONG_TESTS", "0") != "0"
SETTINGS = {
    "--arch": "tree_transformer_tiny", "--optimizer": "adam", "--lr": "5e-3", "--lr-scheduler": "inverse_sqrt",
    "--warmup-updates": 8, "--seed": 7, "--criterion": "label_smoothed_cross_entropy", "--label-smoothing": 0.1,
    # Each process draws its own dropout.
    "--max-tokens": 320, "--dropout": 0, "--num-workers": 0, "--log-format": "simple", "--log-interval": 1,
    # With a CPU, fairseq joins processes by this alone.
    "--user-dir": PLUGIN, "--ddp-backend": "legacy_ddp", "--distributed-backend": "gloo",
}  # fmt: skip


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


class Rank:
    """One process; its output is in a file."""

    def __init__(self, command: list[object], log: Path, own: bool = False):
        self._log, self._own = log, own
        program = Path(sys.executable).with_name("fairseq-train") if own else script("fairseq-train")
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [str(program), *map(str, command)], cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT
            )

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8")

    @property
    def pid(self) -> int:
        """The process that trains, which the started one stands for if it is no command of its own."""
        if self._own:
            return self._process.pid
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                is_ours = (folder / "fd" / "1").samefile(self._log)
            except OSError:
                continue
            if is_ours and int(folder.name) != self._process.pid:
                return int(folder.name)
        return self._process.pid

    def await_line(self, text: str, seconds: float = 120) -> None:
        end = time.monotonic() + seconds
        while text not in self.log:
            assert self._process.poll() is None and time.monotonic() < end, self.log
            time.sleep(0.02)

    def wait(self, seconds: float = 120) -> int:
        """The exit status, which is 137 after ``kill -9``."""
        status = self._process.wait(seconds)
        return status if status >= 0 else 128 - status

    def kill(self) -> None:
        if self._process.poll() is None:
            os.kill(self.pid, 9)
            self._process.kill()
            self._process.wait()


@contextmanager
def training(data: Path, folder: Path, *arguments: object, ranks: int = 2, own: bool = False) -> Iterator[list[Rank]]:
    """Starts processes that train together; ends those that are left.

    Arguments replace SETTINGS. With ``own``, each process imports torch and fairseq itself, and is no fork.
    """
    folder.mkdir(exist_ok=True)
    options = [text for name, value in SETTINGS.items() if name not in arguments for text in (name, value)]
    command = [data, *TASK, "--cpu", "--save-dir", folder, *options, *arguments]
    if ranks > 1:
        address = f"tcp://127.0.0.1:{free_port()}"
        command += ["--distributed-no-spawn", "--distributed-init-method", address, "--distributed-world-size", ranks]
    started = []
    try:
        for rank in range(ranks):
            own_flags = ["--distributed-rank", rank] if ranks > 1 else []
            log = folder.with_name(f"{folder.name}.{len(list(folder.parent.glob('*.log')))}.log")
            started.append(Rank([*command, *own_flags], log, own))
        yield started
    finally:
        for rank in started:
            rank.kill()


def train_together(data: Path, folder: Path, *arguments: object, ranks: int = 2) -> str:
    """Trains to the end; returns the output of the first process."""
    with training(data, folder, *arguments, ranks=ranks) as started:
        for rank in started:
            assert rank.wait() == 0, rank.log
        return started[0].log
