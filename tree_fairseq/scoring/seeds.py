"""Compares systems that were trained with several seeds each: means over the seeds, and paired tests of these means.

    tree-fairseq score seeds tree-1.txt tree-2.txt tree-3.txt --baseline stock-1.txt stock-2.txt stock-3.txt \\
        --references test.de --metrics bleu chrf

Both systems have the same number of seeds. A test draws sentences, the same ones for all runs, and compares the means
over the seeds. It says how sure the difference of these runs is on other sentences. The scores of the single seeds,
printed beside it, say how far a run can be from another. ``--groups`` names a file with the group of each sentence, one
a line: the test draws whole groups, where the sentences of a group are not independent of each other.
"""

from __future__ import annotations

import logging
import statistics
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tree_fairseq.errors import ScoringError
from tree_fairseq.scoring.frame import COUNT, aligned
from tree_fairseq.scoring.hypothesis_files import FileSet, metrics_parser, print_scores, read_arguments
from tree_fairseq.scoring.measures import Measure
from tree_fairseq.scoring.outputs import read_text
from tree_fairseq.scoring.significance import SAMPLES, Resampling, paired_test

logger = logging.getLogger(__name__)


def mean_over_seeds_test(baseline: Sequence[Measure], system: Sequence[Measure], test: Resampling) -> dict[str, dict]:
    """Compares the means over seeds of two systems; see :func:`~tree_fairseq.scoring.significance.paired_test`.

    Raises ScoringError if the systems have different numbers of seeds or of sentences.
    """
    if len(baseline) != len(system):
        raise ScoringError(
            f"{len(system)} seeds of the system, but {len(baseline)} of the baseline: give as many of both"
        )
    counts = system[0].aligned_counts([*baseline, *system])
    width = counts[0].shape[1]  # the number F of columns of one run
    sides = [np.hstack(counts[: len(baseline)]), np.hstack(counts[len(baseline) :])]  # [sentences, seeds * F]

    def mean(sums: np.ndarray) -> dict[str, np.ndarray]:
        of_seeds = [system[0].statistic(sums[..., first : first + width]) for first in range(0, sums.shape[-1], width)]
        return {name: np.mean([values[name] for values in of_seeds], axis=0) for name in of_seeds[0]}

    return paired_test(*sides, mean, test)


def score_seeds(args: Namespace) -> dict[str, Any]:
    """Scores the files of several seeds of one system and of one baseline; returns what ``--output`` writes."""
    test_set = FileSet(args)
    everything = range(test_set.count)
    system, baseline = ([test_set.measures(path) for path in paths] for paths in (args.hypotheses, args.baseline))
    groups = tuple(read_text(args.groups, test_set.count)) if args.groups else ()
    test = Resampling(args.test, args.samples or SAMPLES[args.test], groups=groups)
    result: dict[str, Any] = {COUNT: test_set.count, "metrics": {}, "signatures": {}}
    for name in args.metrics:
        ours, theirs = [each[name] for each in system], [each[name] for each in baseline]
        result["signatures"].update(ours[0].signatures)
        logger.info("comparing %s", name)
        tests = mean_over_seeds_test(theirs, ours, test)
        for metric in ours[0].metrics(everything):
            values, others = ([each.metrics(everything)[metric] for each in side] for side in (ours, theirs))
            row = {"system": _summary(values), "baseline": _summary(others), **tests.get(metric, {})}
            row.setdefault("difference", row["system"]["mean"] - row["baseline"]["mean"])
            result["metrics"][metric] = row
    return result


def _summary(values: Sequence[float]) -> dict[str, Any]:
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return {"mean": statistics.fmean(values), "deviation": spread, "seeds": list(values)}


def table(result: Mapping[str, Any]) -> list[str]:
    """Formats the result as lines: means and deviations over seeds, differences, tests."""
    rows = [["", "system", "baseline", "difference", "95 % interval", "p"]]
    for name, row in result["metrics"].items():
        cells = [f"{row[side]['mean']:.2f} ±{row[side]['deviation']:.2f}" for side in ("system", "baseline")]
        interval = " to ".join(f"{bound:+.2f}" for bound in row.get("interval", []))
        rows.append(
            [name, *cells, f"{row['difference']:+.2f}", interval, f"{row['p_value']:.4f}" if "p_value" in row else ""]
        )
    tests = dict.fromkeys(row["signature"] for row in result["metrics"].values() if "signature" in row)
    notes = [*(f"{name}: {text}" for name, text in result["signatures"].items()), *(f"test: {text}" for text in tests)]
    return [f"{result[COUNT]} sentences", *aligned(rows), *notes]


def seeds_parser() -> ArgumentParser:
    """Returns the parser of the command's arguments; each system has several files."""
    parser = metrics_parser("tree-fairseq score seeds", __doc__)
    parser.add_argument("hypotheses", type=Path, nargs="+", metavar="HYPOTHESES", help="of each seed")
    parser.add_argument("--baseline", type=Path, nargs="+", required=True, metavar="FILE", help="of each seed")
    parser.add_argument("--groups", type=Path, metavar="FILE", help="the group of each sentence; the test draws groups")
    return parser


def main(arguments: list[str] | None = None) -> None:
    """Runs the command."""
    print_scores(read_arguments(seeds_parser(), arguments), score_seeds, table)
