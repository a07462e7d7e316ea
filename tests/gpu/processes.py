"""Runs commands in processes of their own that end within a limit of time, with everything that they started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUT_OF_TIME = 124
_GRACE = 5


def ended_in_time(
    command: Sequence[str], seconds: float, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess:
    """Runs a command and returns it finished, with output and errors as one text.

    If it takes longer than ``seconds``, it is ended together with all processes that it started, and its status is 124.
    """
    process = subprocess.Popen(
        list(command),
        cwd=ROOT,
        env=None if environment is None else dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        # A group of its own, so that a signal reaches its loading processes and not this one. A session of its own
        # would also be scheduled on its own, which changes what is measured on a busy machine.
        preexec_fn=os.setpgrp,
    )
    try:
        output, _ = process.communicate(timeout=max(seconds, 0.1))
        return subprocess.CompletedProcess(command, process.returncode, output)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, OUT_OF_TIME, _end(process))
    except BaseException:
        # Interrupted: nothing that was started stays.
        _end(process)
        raise


def fairseq_command(python: str, name: str) -> list[str]:
    """Returns the start of a command of fairseq: its console script beside the interpreter, or its module."""
    script = Path(python).with_name(f"fairseq-{name}")
    return [str(script)] if script.exists() else [python, "-m", f"fairseq_cli.{name}"]


def _end(process: subprocess.Popen) -> str:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=_GRACE)[0]
    return ""
