"""Scores summaries: ROUGE-1, ROUGE-2 and ROUGE-L (Lin 2004), computed by the library rouge-score.

    tree-fairseq score rouge --run runs/treeformer --references words --target-lang title \\
        --against runs/transformer --result result.json

Scores are F1 in percent, averaged over summaries, on the tokens of the data: without stemming, and signs such as ``#``
count. ``--references`` is the folder with ``{subset}.{language}``. Runs are compared by approximate randomization.
"""

from __future__ import annotations

import importlib
import logging
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from tree_fairseq.errors import ScoringError
from tree_fairseq.scoring.breakdowns import COUNT
from tree_fairseq.scoring.outputs import read_text
from tree_fairseq.scoring.runs import RunScorer, hypotheses_of
from tree_fairseq.scoring.significance import RANDOMIZATION, Resampling, mean_test
from tree_fairseq.support.python_versions import zip_equal

METRICS = ("rouge1", "rouge2", "rougeL")
TEST = Resampling(RANDOMIZATION, samples=2000)


def rouge(references: Sequence[str], hypotheses: Sequence[str]) -> dict[str, np.ndarray]:
    """Computes F1 of each summary, ``[sentences]`` in float64, by metric. Raises ScoringError without rouge-score."""
    try:
        library = importlib.import_module("rouge_score.rouge_scorer")
    except ModuleNotFoundError as error:
        raise ScoringError("ROUGE needs rouge-score: pip install 'tree-fairseq[scores]'") from error
    logging.getLogger("absl").setLevel(logging.WARNING)
    at_blanks = SimpleNamespace(tokenize=str.split)  # rouge-score's own tokeniser keeps only letters and digits
    scorer = library.RougeScorer(list(METRICS), use_stemmer=False, tokenizer=at_blanks)
    rows = [scorer.score(reference, hypothesis) for reference, hypothesis in zip_equal(references, hypotheses)]
    return {name: np.array([row[name].fmeasure for row in rows], dtype=np.float64) for name in METRICS}


def difference(baseline: np.ndarray, system: np.ndarray) -> dict:
    """Returns the mean difference of two systems in percent and the probability of a difference as large by chance."""
    return mean_test(100 * baseline, 100 * system, TEST)


class RougeScorer(RunScorer):
    """Scores summaries: ROUGE-1, ROUGE-2 and ROUGE-L (Lin 2004), computed by the library rouge-score."""

    name, primary = "rouge", "rouge1"

    @staticmethod
    def add_arguments(parser: ArgumentParser) -> None:
        parser.add_argument("--references", type=Path, required=True, help="folder with the summaries of the data")
        parser.add_argument("--target-lang", required=True, help="suffix of their files")

    def score_set(self, scores: dict, subset: str, suffix: str) -> None:
        system = hypotheses_of(self.args.run, subset)
        references = read_text(self.args.references / f"{subset}.{self.args.target_lang}", len(system))
        ours = rouge(references, system)
        scores["metrics"] |= {name + suffix: 100 * float(values.mean()) for name, values in ours.items()}
        scores[COUNT][subset] = len(references)
        for other in self.args.against:
            theirs = rouge(references, hypotheses_of(other, subset))
            scores["differences"] += [
                {"metric": name + suffix, "baseline": other.name, **difference(theirs[name], ours[name])}
                for name in METRICS
            ]
