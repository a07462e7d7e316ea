"""Processes, their memory and the files that they have open, read from /proc; and small file systems of our own."""

from __future__ import annotations

import ctypes
import os
import statistics
import subprocess
from collections.abc import Sequence
from pathlib import Path

_NEW_MOUNTS, _NEW_USER = 0x00020000, 0x10000000


def in_groups(groups: Sequence[int]) -> list[int]:
    """Process ids of all that run in these process groups, zombies left out."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                state, _, group = (path / "stat").read_text().rpartition(")")[2].split()[:3]
            except OSError:
                continue
            if int(group) in groups and state not in "ZX":
                found.append(int(path.name))
    return sorted(found)


def workers_of(pid: int) -> list[int]:
    """Process ids of the loading processes of a training, which leads its process group."""
    return [each for each in in_groups([pid]) if each != pid]


def memory(pid: int) -> tuple[int, int]:
    """Bytes that a process has resident, and those of them that are not pages of files; zeros if it has ended.

    The system takes pages of files away and gives them back as it likes: a leak is in the others.
    """
    try:
        lines = [line.split() for line in Path(f"/proc/{pid}/status").read_text().splitlines()]
    except OSError:
        return 0, 0
    sizes = {line[0]: 1024 * int(line[1]) for line in lines if line and line[0] in ("VmRSS:", "RssFile:")}
    return sizes.get("VmRSS:", 0), sizes.get("VmRSS:", 0) - sizes.get("RssFile:", 0)


def slope(samples: Sequence[tuple[float, float]]) -> float:
    """The median of the slopes between samples ``(x, y)`` (Theil and Sen): single steps and spikes do not count.

    At most 400 samples are compared, evenly chosen.
    """
    chosen = samples[:: max(1, len(samples) // 400)]
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for n, a in enumerate(chosen) for b in chosen[n + 1 :] if b[0] > a[0]]
    return statistics.median(slopes) if slopes else 0.0


def own_mounts() -> bool:
    """Gives this process file systems of its own, which end with it; returns whether that is permitted.

    For users other than root the process must have a single thread.
    """
    system = ctypes.CDLL(None, use_errno=True)
    if system.unshare(_NEW_MOUNTS) != 0:
        user, group = os.getuid(), os.getgid()
        if system.unshare(_NEW_USER | _NEW_MOUNTS) != 0:
            return False
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
            Path(f"/proc/self/{name}").write_text(text)
    return subprocess.run(["mount", "--make-rprivate", "/"], stderr=subprocess.DEVNULL).returncode == 0


def mount_memory(folder: Path, size: int) -> bool:
    """Mounts a file system of so many bytes onto a folder, after :func:`own_mounts`; returns whether it worked."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "soak", str(folder)]
    return subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0


def fill(file: Path) -> int:
    size = 0
    with open(file, "wb", buffering=0) as stream:
        for block in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    size += stream.write(bytes(block))
            except OSError:
                continue
    return size
