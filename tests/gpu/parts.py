"""The parts of the check: their names, their limits of time, and their results."""

from __future__ import annotations

import importlib
import json
import math
from dataclasses import dataclass, field
from pathlib import Path

import tree_fairseq
from tests.benchmarks.figures import Figure
from tests.gpu.device import Device

PARTS = {
    "correctness": 110,
    "synchronisations": 60,
    "step_ratios": 80,
    "generation_ratios": 80,
    "memory": 70,
    "loader": 50,
    "parsing": 60,
    "two_processes": 90,
    "training": 240,
}
"""Seconds that each part may take. A module of the same name has a function ``run``."""

AROUND_TRAINING = 70  # Seconds of the last part that are not training: preprocessing, starting and scoring
QUICK_FACTOR = 5  # Quick runs may take so many times longer: they are for busy machines, and nobody waits for a GPU
MINUTES = 8  # all parts together take no longer than this, unless the user allows more


@dataclass(frozen=True)
class Options:
    device: str  # torch's name of the device
    quick: bool  # small sizes and few repeats, to see that everything runs; the figures mean nothing
    output: Path  # folder of the results
    data: Path | None  # folder with Multi30k's text; None for a generated corpus
    parser_dir: Path  # models of Stanza for English
    python: str  # interpreter that runs the parts and fairseq's commands
    train_seconds: float  # length of the training

    def choose(self, full, quick):
        return quick if self.quick else full


@dataclass
class Result:
    figures: list[Figure] = field(default_factory=list)  # with their goals, in the order of the table
    notes: list[str] = field(default_factory=list)  # sentences for below the table
    details: dict = field(default_factory=dict)  # more numbers, for the file of JSON alone
    device: dict = field(default_factory=dict)  # the device's description

    def save(self, path: Path) -> None:
        """Writes the result, whole or not at all; a part may do so as often as it has more."""
        record = {
            "figures": [figure.record() for figure in self.figures],
            "notes": self.notes,
            "details": _for_json(self.details),
            "device": self.device,
        }
        temporary = path.with_name(f"{path.name}.new")
        temporary.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        temporary.replace(path)


def run_part(name: str, options: Options, path: Path) -> None:
    """Runs one part in this process; ``path`` gets its result, also a partial one if it fails."""
    # The package may have been imported before fairseq, and has then registered nothing.
    tree_fairseq.register()
    device = Device(options.device)
    result = Result(device=device.describe())
    try:
        for _ in importlib.import_module(f"tests.gpu.{name}").run(device, options, result):
            result.save(path)
    finally:
        result.save(path)


def _for_json(value):
    """Writes numbers that JSON does not know, infinity and not-a-number, as words."""
    if isinstance(value, dict):
        return {key: _for_json(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_for_json(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
