"""Measures how long ``import tree_fairseq`` takes after ``import fairseq``, and which packages it loads for that."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.benchmarks.figures import Figure
from tests.benchmarks.measuring import Settings
from tests.benchmarks.reporting import Report, milliseconds

ROOT = Path(__file__).resolve().parents[2]
# fairseq's commands import these two themselves, before they import the plugin.
PROBE = """
import json, sys, time
start = time.process_time(), time.perf_counter()
import torch, fairseq, fairseq_cli.train, fairseq.options
stock = time.process_time(), time.perf_counter()
before = set(sys.modules)
import tree_fairseq
end = time.process_time(), time.perf_counter()
print(json.dumps({
    "stock": [b - a for a, b in zip(start, stock)],
    "ours": [b - a for a, b in zip(stock, end)],
    "modules": sorted(set(sys.modules) - before),
}))
"""


def run(settings: Settings) -> Report:
    """Imports both in new interpreters, the first time to fill the cache of files."""
    found = [measure() for _ in range(settings.choose(8, 1))][settings.choose(1, 0) :]
    processor, clock = (sorted(one["ours"][kind] for one in found) for kind in (0, 1))
    stock = statistics.median(one["stock"][0] for one in found)
    seconds = statistics.median(processor)
    packages = Counter(name.partition(".")[0] for name in found[0]["modules"])
    rows = [("import", "processor ms", "fastest to slowest")]
    rows.append(("torch, fairseq and its command", milliseconds(stock), ""))
    spread = f"{milliseconds(processor[0])} to {milliseconds(processor[-1])}"
    rows.append(("tree_fairseq after them", milliseconds(seconds), spread))
    loaded = [("package", "modules that are loaded with ours")]
    loaded += [(name, str(count)) for name, count in packages.most_common(12)]
    what, peer = "seconds of `import tree_fairseq` after fairseq", f"{stock:.2f} s for torch and fairseq"
    return Report(
        "import_time",
        f"{len(found)} new interpreters",
        [Figure("seconds", seconds, 0.5, True, what, f"{seconds:.2f} s", peer, (processor[0], processor[-1]))],
        [rows, loaded],
        [f"Processor time; by the clock {clock[0]:.2f} to {clock[-1]:.2f} seconds."],
    )


def measure() -> dict:
    """Imports both in one new interpreter; returns processor and clock seconds of each, and the modules of ours."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROBE], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])
