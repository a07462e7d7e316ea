"""Runs a command and watches its processes: the memory that each has had at most, and the disk that they take."""

from __future__ import annotations

import os
import subprocess
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_SECONDS = 0.1


@dataclass(frozen=True)
class Watched:
    seconds: float  # by the clock
    parent: int  # the most memory that the command itself had resident, in bytes
    worker: int  # the same of the largest of its other processes; 0 without any
    disk: int  # the most bytes that the watched folders held at once


def watch(command: Sequence[str], log: Path, folders: Sequence[Path]) -> Watched:
    """Runs a command, whose output goes to a file, and watches it and the files in some folders, ten times a second.

    Raises RuntimeError if the command fails.
    """
    peaks: dict[int, int] = defaultdict(int)
    disk, started = 0, time.perf_counter()
    with open(log, "wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    while True:
        disk = max(disk, sum(map(bytes_in, folders)))
        for pid in _with_descendants(process.pid):
            peaks[pid] = max(peaks[pid], _peak_memory(pid))
        if process.poll() is not None:
            break
        time.sleep(_SECONDS)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}:\n{log.read_text()[-2000:]}")
    parent = peaks.pop(process.pid)
    return Watched(time.perf_counter() - started, parent, max(peaks.values(), default=0), disk)


def bytes_in(folder: Path) -> int:
    """Returns the size of all files in a folder, 0 if there is no such folder; links count as nothing."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                status = os.lstat(os.path.join(path, name))
            except FileNotFoundError:
                continue
            total += 0 if os.path.islink(os.path.join(path, name)) else status.st_size
    return total


def _with_descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                # The name of the command, in brackets, may hold blanks.
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children[parent].append(int(entry.name))
    found = [pid]
    for each in found:
        found += children[each]
    return found


def _peak_memory(pid: int) -> int:
    """Returns the most memory that a process has had resident, in bytes; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)
