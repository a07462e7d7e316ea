"""Put the means of several runs into a result file: one system trained with several seeds.

    python examples/lib/mean_of_seeds.py --result OUT/result.json RUN...

Metrics at the top of the file, ``score`` among them, become means over the runs. ``by_seed`` keeps the metrics of each
run,
``spread`` the difference between the best and the worst. The rest of the file (by size, differences, checkpoint) is
about the first run.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

from tree_fairseq.errors import ScoringError
from tree_fairseq.scoring.runs import SCORE_FILE, read_scores
from tree_fairseq.support.files import write_json


def with_means(result: dict, runs: list[dict]) -> dict:
    """The content of the result file with means of the runs' metrics.

    Raises:
        ScoringError: the runs have no metrics in common, or lack the primary one
    """
    common = [name for name in runs[0]["metrics"] if all(name in run["metrics"] for run in runs)]
    if result["metric"] not in common:
        raise ScoringError(f"not every run has {result['metric']}: score them again")
    values = {name: [run["metrics"][name] for run in runs] for name in common}
    means = {name: statistics.fmean(column) for name, column in values.items()}
    by_seed = [
        {"run": run["description"]["run"], "seed": run["description"].get("seed"), **run["metrics"]} for run in runs
    ]
    spread = {name: max(column) - min(column) for name, column in values.items()}
    return {**result, **means, "score": means[result["metric"]], "by_seed": by_seed, "spread": spread}


def main(arguments: list[str] | None = None) -> int:
    """Command line of this script; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+", help="folders with score.json")
    parser.add_argument("--result", type=Path, required=True)
    args = parser.parse_args(arguments)
    try:
        result = with_means(read_scores(args.result), [read_scores(run / SCORE_FILE) for run in args.runs])
    except ScoringError as error:
        sys.stderr.write(f"mean_of_seeds: {error}\n")
        return 1
    write_json(args.result, result)
    sys.stdout.write(f"{result['metric']} = {result['score']:.2f}, mean of {len(args.runs)} seeds -> {args.result}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
