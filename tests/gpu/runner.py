"""Runs the parts one after the other, each in its own process with a limit, and writes the results after each."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.benchmarks.figures import Figure, figure_rows, markdown
from tests.gpu.processes import OUT_OF_TIME, ended_in_time

Command = Callable[[str, Path, float], list[str]]
"""Makes the command of a part from its name, the file for its result, and the seconds that it has."""


class Runner:
    """Runs parts and keeps their results.

    ``output`` gets ``gpu.json``, ``gpu.md`` and a log of each part; ``seconds`` is a limit of all parts together.
    """

    def __init__(self, output: Path, command: Command, seconds: float):
        self.output, self.command = output, command
        self.deadline = time.monotonic() + seconds
        self.record: dict = {"device": {}, "quick": False, "parts": {}}
        output.mkdir(parents=True, exist_ok=True)

    def run(self, limits: Mapping[str, float], said: Callable[[str], object] = print) -> bool:
        """Runs all parts, whatever becomes of them; returns whether all of them ended well."""
        for name, limit in limits.items():
            part = self._run_part(name, min(limit, self.deadline - time.monotonic()))
            self.record["parts"][name] = part
            self.record["device"] = self.record["device"] or part["device"]
            self.save()
            reason = f": {part['error'].splitlines()[-1]}" if part["error"] else ""
            said(f"{name}: {part['status']} after {part['seconds']:.0f} s{reason}")
        return all(part["status"] == "done" for part in self.record["parts"].values())

    def _run_part(self, name: str, limit: float) -> dict:
        path = self.output / f"{name}.json"
        path.unlink(missing_ok=True)
        empty = {"figures": [], "notes": [], "details": {}, "device": {}}
        if limit < 1:
            return {"status": "not run", "seconds": 0.0, "error": "no time was left", **empty}
        start = time.monotonic()
        done = ended_in_time(self.command(name, path, limit), limit)
        seconds = time.monotonic() - start
        (self.output / f"{name}.log").write_text(done.stdout, encoding="utf-8")
        if done.returncode == OUT_OF_TIME:
            status, error = "out of time", f"it took longer than {limit:.0f} s"
        elif done.returncode:
            status, error = "failed", done.stdout.strip()[-1500:] or f"status {done.returncode}"
        else:
            status, error = "done", ""
        # A part that failed may have written what it had.
        found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else empty
        path.unlink(missing_ok=True)
        return {"status": status, "seconds": round(seconds, 1), "error": error, **found}

    def save(self) -> None:
        for name, text in (("gpu.json", json.dumps(self.record, indent=1) + "\n"), ("gpu.md", page(self.record))):
            path = self.output / name
            temporary = path.with_name(f"{name}.{os.getpid()}")
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(path)


def rows_of(record: Mapping) -> list[tuple[str, ...]]:
    figures = [(name, Figure.of_record(figure)) for name, part in record["parts"].items() for figure in part["figures"]]
    return figure_rows(figures)


def page(record: Mapping) -> str:
    """Writes the results in Markdown: the device, the table, and what is to be said of it."""
    device = ", ".join(f"{name} {value}" for name, value in record["device"].items() if name != "name")
    lines = [f"{record['device'].get('name', 'unknown device')} ({device})", "", markdown(rows_of(record)).rstrip(), ""]
    for name, part in record["parts"].items():
        if part["status"] != "done":
            lines.append(f"- **{name}: {part['status']}**: {(part['error'].splitlines() or [''])[-1]}")
        lines += [f"- {note}" for note in part["notes"]]
    return "\n".join(lines) + "\n"
