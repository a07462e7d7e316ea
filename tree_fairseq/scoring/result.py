"""Result files: ``score.json`` of one run, ``result.json`` of a recipe's output folder.

``result.json`` holds the metrics of one run (the one a recipe was called for) by name, the primary one again under ``score``, its name
under ``metric``, and a short entry for every run of the folder under ``runs``.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from tree_fairseq.errors import ScoringError

SCORE_FILE = "score.json"


def write_json(path: Path, content: dict) -> None:
    """Write JSON through a temporary file beside ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".part")
    with open(partial, "w", encoding="utf-8") as stream:
        json.dump(content, stream, indent=1, ensure_ascii=False)
        stream.write("\n")
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(partial, path)


def read_scores(path: Path) -> dict:
    """The scores of one run. Raises ScoringError where there are none or they are not JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ScoringError(f"{path} is missing: score that run first") from None
    except ValueError as error:
        raise ScoringError(f"{path}: not JSON ({error}); delete it and score that run again") from error


def read_runs(folder: Path) -> list[dict]:
    """Every ``score.json`` below ``folder``, ordered by path. Raises ScoringError where one is not JSON."""
    return [read_scores(path) for path in sorted(folder.rglob(SCORE_FILE))]


def build_result(current: dict, runs: list[dict]) -> dict:
    """The content of ``result.json`` from the scores of the run at the top and those of all runs."""
    metrics = current["metrics"]
    metric = current["primary"]
    if metric not in metrics:
        raise ScoringError(f"the primary metric {metric} was not measured; there are {', '.join(metrics)}")
    details = {name: value for name, value in current.items() if name not in ("metrics", "primary")}
    summary = [
        {**run["description"], "metrics": run["metrics"], "differences": run["differences"]} for run in runs
    ]
    return {"metric": metric, "score": metrics[metric], **metrics, **details, "runs": summary}
