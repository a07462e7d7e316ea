"""Score summaries: ROUGE-1, ROUGE-2 and ROUGE-L (Lin 2004), by the library rouge-score.

    python -m tree_fairseq.scoring rouge --run runs/treeformer --references words --target-lang title \\
        --against runs/transformer --result result.json

F1 in percent, the mean over summaries, on the tokens of the data: no stemming, and signs such as ``#`` count. ``--references`` is
the folder with ``{subset}.{language}``. Runs are compared by a permutation test on the differences of their summaries.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.stats import permutation_test

from tree_fairseq.errors import ScoringError
from tree_fairseq.scoring.outputs import read_hypotheses, read_text
from tree_fairseq.scoring.runs import add_run_arguments, pairs, score_and_publish

METRICS = ("rouge1", "rouge2", "rougeL")
SAMPLES = 2000
SIGNATURE = f"permutation test of paired differences, {SAMPLES} samples, two-sided"


class Tokens:
    """The tokens of a line are what stands between blanks; rouge-score's own tokeniser drops all that is no letter or digit."""

    def tokenize(self, text: str) -> list[str]:
        """The tokens."""
        return text.split()


def rouge(references: Sequence[str], hypotheses: Sequence[str]) -> dict[str, np.ndarray]:
    """F1 of each summary, ``[sentences]`` in float64, by metric.

    Raises:
        ScoringError: rouge-score is not installed
    """
    try:
        library = importlib.import_module("rouge_score.rouge_scorer")
    except ModuleNotFoundError as error:
        raise ScoringError(f"ROUGE needs {error.name}: pip install 'rouge-score>=0.1.2'") from error
    scorer = library.RougeScorer(list(METRICS), use_stemmer=False, tokenizer=Tokens())
    rows = [scorer.score(reference, hypothesis) for reference, hypothesis in zip(references, hypotheses, strict=True)]
    return {name: np.array([row[name].fmeasure for row in rows], dtype=np.float64) for name in METRICS}


def difference(baseline: np.ndarray, system: np.ndarray) -> dict:
    """The mean difference of two systems on the same summaries, in percent, and how probable one as large is by chance."""
    found = permutation_test(
        (system, baseline), lambda ours, theirs, axis: np.mean(ours - theirs, axis=axis), permutation_type="samples",
        vectorized=True, n_resamples=SAMPLES, batch=50, rng=np.random.default_rng(12345),
    )  # fmt: skip
    return {"difference": 100 * float(found.statistic), "p_value": float(found.pvalue), "signature": SIGNATURE}


def score_run(run: Path, references: Path, language: str, sets: dict[str, str], against: Sequence[Path] = ()) -> dict:
    """Metrics of a run, and its difference from each run of ``against``.

    Raises:
        ScoringError: files are missing or do not fit each other
    """
    scores: dict = {"metrics": {}, "sentences": {}, "differences": []}
    for subset, label in sets.items():
        suffix = f"_{label}" if label else ""
        system = _summaries(run, subset)
        wanted = read_text(references / f"{subset}.{language}", len(system))
        ours = rouge(wanted, system)
        scores["metrics"] |= {name + suffix: 100 * float(values.mean()) for name, values in ours.items()}
        scores["sentences"][subset] = len(wanted)
        for other in against:
            theirs = rouge(wanted, _summaries(other, subset))
            scores["differences"] += [
                {"metric": name + suffix, "baseline": other.name, **difference(theirs[name], ours[name])}
                for name in METRICS
            ]
    return scores


def _summaries(run: Path, subset: str) -> list[str]:
    path = run / f"generate-{subset}.txt"
    if not path.is_file():
        raise ScoringError(f"{path} is missing: generate with that run first")
    return read_hypotheses(path)


def report(scores: dict) -> str:
    """The scores as lines of text."""
    lines = [f"{name} = {value:.2f}" for name, value in scores["metrics"].items()]
    for row in scores["differences"]:
        lines.append(
            f"{row['metric']}: {row['difference']:+.2f} over {row['baseline']} (p = {row['p_value']:.4f}, {row['signature']})"
        )
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Command line of this module; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tree_fairseq.scoring rouge", description=__doc__.splitlines()[0])
    add_run_arguments(parser, primary="rouge1")
    parser.add_argument("--references", type=Path, required=True, help="folder with the summaries of the data")
    parser.add_argument("--target-lang", required=True, help="suffix of their files")
    args = parser.parse_args(arguments)
    logging.getLogger("absl").setLevel(logging.WARNING)
    return score_and_publish(
        args,
        lambda: (score_run(args.run, args.references, args.target_lang, pairs(args.sets), args.against), None),
        report,
    )


if __name__ == "__main__":
    sys.exit(main())
