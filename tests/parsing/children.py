"""Finds the child processes of a process in /proc, and ends processes."""

from __future__ import annotations

import os
import time
from pathlib import Path


def children(parent: int | None = None, program: str = "") -> list[int]:
    """Process ids of the children of a process (this one, if none is named) whose command line has ``program`` in
    it.
    """
    parent = os.getpid() if parent is None else parent
    return [
        pid
        for pid in (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
        if _parent(pid) == parent and program in _command(pid)
    ]


def is_running(pid: int) -> bool:
    """Whether a process has not ended; one that nobody has waited for yet has."""
    return _parent(pid) is not None


def await_end(pids: list[int], seconds: float = 20) -> None:
    """Wait until none of them runs."""
    deadline = time.monotonic() + seconds
    while any(map(is_running, pids)):
        if time.monotonic() > deadline:
            raise TimeoutError(f"still running: {[pid for pid in pids if is_running(pid)]}")
        time.sleep(0.02)


def _parent(pid: int) -> int | None:
    try:
        state, parent = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[:2]
    except OSError:
        return None
    return None if state == "Z" else int(parent)


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""
