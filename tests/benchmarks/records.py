"""Records of benchmarks that have run: a file of JSON, the table of all figures, and the table on the page."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from pathlib import Path

import torch

from tests.benchmarks.figures import Figure, figure_rows, markdown
from tests.benchmarks.reporting import Report

ROOT = Path(__file__).resolve().parents[2]
PAGE, PAGE_RECORDS = ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "benchmarks.json"
BEGIN, END = "<!-- table of docs/benchmarks.json -->\n", "<!-- end of the table -->\n"

Records = dict[str, dict]


def machine() -> dict:
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "load": round(os.getloadavg()[0], 1),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def add(path: Path, report: Report, quick: bool) -> None:
    """Adds a report to a file of records, in place of an earlier one of the same benchmark."""
    records = load(path) if path.exists() else {}
    records[report.benchmark] = {**report.record(), "quick": quick, "machine": machine()}
    save(path, records)


def load(path: Path) -> Records:
    return json.loads(path.read_text(encoding="utf-8"))


def save(path: Path, records: Mapping[str, dict]) -> None:
    """Writes a file of records, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    temporary.replace(path)


def table(records: Mapping[str, dict]) -> list[tuple[str, ...]]:
    figures = [(name, Figure.of_record(figure)) for name, record in records.items() for figure in record["figures"]]
    return figure_rows(figures)


def with_table(page: str, records: Mapping[str, dict]) -> str:
    """Returns the text of the page with the table of these records between its two marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE} has no place for the table: {BEGIN.strip()} and {END.strip()}")
    return f"{before}{begin}\n{markdown(table(records))}\n{machines(records)}\n\n{end}{after}"


def machines(records: Mapping[str, dict]) -> str:
    found: dict[str, list[str]] = {}
    loads: dict[str, list[float]] = {}
    for name, record in records.items():
        own = record["machine"]
        where = f"{own['processor']} ({own['threads']} of {own['cores']} cores, torch {own['torch']})"
        found.setdefault(where, []).append(f"`{name}`")
        loads.setdefault(where, []).append(own["load"])
    parts = []
    for where, names in found.items():
        least, most = min(loads[where]), max(loads[where])
        load = f"load {least:g}" if least == most else f"load {least:g} to {most:g}"
        parts.append(f"{', '.join(names)}: {where}, {load}")
    return f"A load above 1 is other work beside the benchmark. {'; '.join(parts)}."


def publish(path: Path, names: Mapping[str, str]) -> None:
    """Takes the records of a file over into those of the page, and writes the page's table again.

    Raises ValueError if a record is that of a quick run.
    """
    found = load(path)
    quick = [name for name, record in found.items() if record["quick"]]
    if quick:
        raise ValueError(f"{path}: quick runs are not for the page: {', '.join(quick)}")
    known = {**(load(PAGE_RECORDS) if PAGE_RECORDS.exists() else {}), **found}
    known = {name: known[name] for name in names if name in known}
    save(PAGE_RECORDS, known)
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), known), encoding="utf-8")
