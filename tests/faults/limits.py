"""What a command may do with files from strangers: nothing but to refuse them, in little time and memory."""

from __future__ import annotations

import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tree_fairseq.errors import TreeFairseqError
from tree_fairseq.support.logs import message_of

GROWTH = 1536 << 20
"""Bytes that a command may need; Python with torch and fairseq needs some 400 MB before, and both are under 2 GB."""

SECONDS = 60
_BACKSTOP = 4 << 30


class Broken(AssertionError):
    """A command did what files from strangers must not make it do."""


def outcome(action: Callable[[], object]) -> str:
    """``refused`` or ``done``; any other way to end, more memory, or more time is Broken."""
    with _limited():
        try:
            status = action()
        except TreeFairseqError as error:
            if not str(error) or len(str(error)) > 3000:
                raise Broken(f"a message of {len(str(error))} characters") from error
            return "refused"
        except SystemExit as error:
            status = error.code
        except Broken:
            raise
        except BaseException as error:
            if message_of(error) is not None:
                return "refused"  # fairseq's own message
            raise Broken(f"{type(error).__name__}: {str(error)[:500]}") from error
    return "done" if status in (None, 0) or not isinstance(status, int) else "refused"


@contextmanager
def _limited() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise Broken(f"not done after {SECONDS} seconds")

    before = resource.getrlimit(resource.RLIMIT_AS)
    handler = signal.signal(signal.SIGALRM, stop)
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    used, size = _kilobytes("VmRSS"), _kilobytes("VmSize")
    resource.setrlimit(resource.RLIMIT_AS, (1024 * size + _BACKSTOP, before[1]))
    signal.alarm(SECONDS)
    try:
        yield
        grown = 1024 * (_kilobytes("VmHWM") - used)
        if grown > GROWTH:
            raise Broken(f"{grown >> 20} MB of memory")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


def _kilobytes(field: str) -> int:
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(f"{field}:"))
