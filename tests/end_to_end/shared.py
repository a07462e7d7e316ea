"""Folders and models that many tests read and none changes: made once, also where several processes run the tests."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


class Shared:
    def __init__(self, root: Path):
        self._root = root
        root.mkdir(exist_ok=True)

    def __call__(self, name: str, make: Callable[[Path], Any]) -> tuple[Path, str]:
        """Returns a folder, which ``make`` fills at the first call, and the log that it returned, if that is a text."""
        folder, log = self._root / name, self._root / f"{name}.log"
        with open(self._root / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # until the file is closed
            if not log.exists():
                folder.mkdir()
                made = make(folder)
                log.write_text(made if isinstance(made, str) else "", encoding="utf-8")
        return folder, log.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def shared(tmp_path_factory) -> Shared:
    """What all processes of this test run share."""
    root = tmp_path_factory.getbasetemp()
    return Shared((root.parent if "PYTEST_XDIST_WORKER" in os.environ else root) / "shared")
