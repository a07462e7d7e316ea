"""``python -m tree_fairseq.scoring NAME ...`` runs a scorer; without a name it lists them."""

from __future__ import annotations

import pkgutil
import sys

SCORERS = {
    "attention": ("attention_share:main", "share of a translation model's attention on tree nodes"),
    "bleu": ("bleu:TranslationScorer.main", "BLEU of translations in three readings, with signatures and significance"),
    "classification": (
        "predictions:ClassificationRuns.main", "accuracy, macro F1 and confusion matrix, by group and length"
    ),
    "compounds": ("compounds:CompoundScorer.main", "error rates of CoGnition's compounds, and BLEU of Chinese"),
    "rouge": ("rouge:RougeScorer.main", "ROUGE-1, -2 and -L of summaries"),
    "regression": ("predictions:RegressionRuns.main", "correlations of predicted numbers"),
    "structural": (
        "structural:StructuralScorer.main", "accuracy and validity of generated trees: programs, logical forms"
    ),
}  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Runs the scorer that the first argument names; returns its exit status, 2 for an unknown name."""
    lines = ["usage: python -m tree_fairseq.scoring NAME [options], NAME one of"]
    lines += [f"  {name:<14} {about}" for name, (_, about) in SCORERS.items()]
    listing = "\n".join([*lines, "Options of a scorer: python -m tree_fairseq.scoring NAME --help"])
    name, *rest = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if name in ("-h", "--help"):
        print(listing)
        return 0
    if name not in SCORERS:
        sys.stderr.write(f"no scorer {name!r}\n{listing}\n")
        return 2
    return pkgutil.resolve_name(f"tree_fairseq.scoring.{SCORERS[name][0]}")(rest)


if __name__ == "__main__":
    sys.exit(main())
