"""``tree-fairseq score NAME ...`` runs a scorer.

Without a name, the names are listed.

Scorers of outputs read the files that fairseq-generate wrote for one or more runs. They print tables, and write the
same figures as JSON beside the files.
"""

from __future__ import annotations

import sys

from tree_fairseq.options import run_command

SCORERS = {
    "attention": ("scoring.attention_share:main", "share of a translation model's attention on tree nodes"),
    "bleu": (
        "scoring.bleu:TranslationScorer.main",
        "BLEU of translations in three readings, with signatures and significance",
    ),
    "classification": (
        "scoring.predictions:ClassificationRuns.main",
        "accuracy, macro F1 and confusion matrix, by group and length",
    ),
    "compounds": ("scoring.compounds:CompoundScorer.main", "error rates of CoGnition's compounds, and BLEU of Chinese"),
    "rouge": ("scoring.rouge:RougeScorer.main", "ROUGE-1, -2 and -L of summaries"),
    "regression": ("scoring.predictions:RegressionRuns.main", "correlations of predicted numbers"),
    "structural": (
        "scoring.structural:StructuralScorer.main",
        "accuracy and validity of generated trees: programs, logical forms",
    ),
}


def main(arguments: list[str] | None = None) -> int:
    """Runs the scorer that the first argument names; returns its exit status, 2 for an unknown name."""
    given = sys.argv[1:] if arguments is None else arguments
    return run_command("tree-fairseq score", SCORERS, given or ["--help"])


if __name__ == "__main__":
    sys.exit(main())
