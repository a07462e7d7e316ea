"""A training in a process of its own, with a record of its losses, that can be started again and again."""

from __future__ import annotations

import os
import signal
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

from tests.soak.processes import in_groups

PLUGIN = Path(__file__).resolve().parent / "paced"
ROOT = Path(__file__).resolve().parents[2]


class Training:
    """``fairseq-train`` on a folder, as a command that is always the same.

    ``pace`` is the time of update 0 and seconds between updates. A fork of this process has fairseq loaded.
    """

    def __init__(
        self,
        folder: Path,
        arguments: Sequence[object],
        pace: tuple[float, float],
        checkpoints: Path | None = None,
        is_fork: bool = False,
    ):
        self.folder, self.checkpoints = folder, checkpoints or folder / "checkpoints"
        self.record, self.log = folder / "losses", folder / "log"
        self.temporary = folder / "tmp"
        self.temporary.mkdir(parents=True)
        self.pid = 0
        self.groups: list[int] = []
        self.furthest = 0  # the largest update of all its starts
        self._arguments = [*map(str, arguments), "--save-dir", str(self.checkpoints), "--user-dir", str(PLUGIN)]
        self._environment = {
            "SOAK_BEGIN": repr(pace[0]),
            "SOAK_INTERVAL": repr(pace[1]),
            "SOAK_RECORD": str(self.record),
            "TMPDIR": str(self.temporary),
            "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
            "CUDA_VISIBLE_DEVICES": "",
        }
        self._is_fork = is_fork
        self._read, self._losses, self._stretch = 0, {}, []

    def start(self) -> None:
        """Starts the command as the leader of a process group: its loading processes are found by it, also orphans."""
        self.pid = os.fork()
        if self.pid == 0:
            self._become()
        self.groups.append(self.pid)

    def _become(self) -> None:
        status = 70
        try:
            os.setpgid(0, 0)
            log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            for stream in (1, 2):
                os.dup2(log, stream)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.environ.update(self._environment)
            if self._is_fork:
                status = _call("fairseq-train", self._arguments)
            else:
                command = [sys.executable, "-m", "fairseq_cli.train", *self._arguments]
                os.execv(command[0], command)
        finally:
            os._exit(status)

    def status(self) -> int | None:
        """The exit status, or minus the signal that ended it; None while it runs. May be asked once it has ended."""
        found, status = os.waitpid(self.pid, os.WNOHANG)
        return None if found == 0 else os.waitstatus_to_exitcode(status)

    def kill(self) -> None:
        """Kills the training with -9; its loading processes are not told."""
        os.kill(self.pid, signal.SIGKILL)

    def end(self) -> None:
        for pid in in_groups(self.groups):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            os.waitpid(self.pid, 0)
        except ChildProcessError:
            pass

    def updates(self) -> int:
        """The last update of the present start; 0 before its first."""
        self.losses()
        return self._stretch[-1]["last"] if self._stretch else 0

    @property
    def starts(self) -> int:
        """How often it has begun to train, or was about to."""
        return len(self._stretch)

    def losses(self) -> dict[tuple[str, int, int], list[float]]:
        """All losses so far: of each update, and of each batch of each validation, as often as they were computed.

        Keys are ``train`` or ``valid``, the update, and the number of the batch.
        """
        if self.record.exists():
            with open(self.record, encoding="utf-8") as file:
                file.seek(self._read)
                for line in iter(file.readline, ""):
                    if not line.endswith("\n"):
                        break
                    self._take(line.split())
                    self._read = file.tell()
        return self._losses

    def _take(self, fields: list[str]) -> None:
        if fields[0] == "start":
            self._stretch.append({"last": 0, "batches": {}})
            return
        kind, update = fields[0], int(fields[1])
        stretch = self._stretch[-1]
        stretch["last"] = update
        self.furthest = max(self.furthest, update)
        batch = stretch["batches"][kind, update] = stretch["batches"].get((kind, update), -1) + 1
        self._losses.setdefault((kind, update, batch), []).append(float(fields[2]))

    def torn_checkpoints(self) -> list[str]:
        """The checkpoints that are not complete: one with a final name always is."""
        return [path.name for path in sorted(self.checkpoints.glob("*.pt")) if not _is_whole(path)]

    def reason(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines() if self.log.exists() else []
        return next((line.strip() for line in reversed(lines) if line.strip() and '"epoch"' not in line), "")


def _is_whole(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    except zipfile.BadZipFile:
        return False


def _call(name: str, arguments: list[str]) -> int:
    """Runs a command of fairseq in this process, which is a fork made for it."""
    import atexit
    import logging
    import multiprocessing.util

    from fairseq_cli.train import cli_main

    # What a process of its own would do at its end.
    atexit._clear()
    atexit.register(multiprocessing.util._exit_function)
    sys.stdout, sys.stderr = (open(stream, "w", encoding="utf-8", closefd=False) for stream in (1, 2))
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, force=True)
    sys.argv = [name, *arguments]
    try:
        cli_main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    return 0
