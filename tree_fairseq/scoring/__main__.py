"""``python -m tree_fairseq.scoring NAME ...`` runs a scorer; without a name it lists them."""

from __future__ import annotations

import importlib
import sys

SCORERS = {
    "attention": ("tree_fairseq.scoring.attention_share", "share of a translation model's attention on tree nodes"),
    "bleu": ("tree_fairseq.scoring.bleu", "BLEU of translations in three readings, with signatures and significance"),
    "classification": ("tree_fairseq.scoring.classes", "accuracy, macro F1 and confusion matrix, by group and length"),
    "compounds": ("tree_fairseq.scoring.compounds", "error rates of CoGnition's compounds, and BLEU of Chinese"),
    "rouge": ("tree_fairseq.scoring.rouge", "ROUGE-1, -2 and -L of summaries"),
    "regression": ("tree_fairseq.scoring.regression", "correlations of predicted numbers"),
    "structural": (
        "tree_fairseq.scoring.structural",
        "accuracy and validity of generated trees: programs, logical forms",
    ),
}


def listing() -> str:
    """Returns the usage text with all scorers."""
    lines = ["usage: python -m tree_fairseq.scoring NAME [options], NAME one of"]
    lines += [f"  {name:<14} {about}" for name, (_, about) in SCORERS.items()]
    return "\n".join([*lines, "Options of a scorer: python -m tree_fairseq.scoring NAME --help"])


def main(arguments: list[str] | None = None) -> int:
    """Runs the scorer that the first argument names; returns its exit status, 2 for an unknown name."""
    name, *rest = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if name in ("-h", "--help"):
        print(listing())
        return 0
    if name not in SCORERS:
        sys.stderr.write(f"no scorer {name!r}\n{listing()}\n")
        return 2
    return importlib.import_module(SCORERS[name][0]).main(rest)


if __name__ == "__main__":
    sys.exit(main())
