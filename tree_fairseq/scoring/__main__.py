"""``tree-fairseq score`` scores files of hypotheses, and, with a name, files of several seeds or runs of a recipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tree_fairseq.errors import did_you_mean
from tree_fairseq.support.logs import log_to_standard_error
from tree_fairseq.support.options import command, run_command

SCORERS = {
    "bleu": (
        "scoring.text_runs:TranslationSet.main",
        "BLEU of translations in three readings, with signatures and significance",
    ),
    "classification": (
        "scoring.predictions:ClassSet.main",
        "accuracy, macro F1 and confusion matrix, by group and length",
    ),
    "code": (
        "scoring.program_runs:CodeSet.main",
        "programs: exact match as trees, BLEU, CodeBLEU, F1 of trees, share that parses",
    ),
    "rouge": ("scoring.text_runs:SummarySet.main", "ROUGE-1, -2 and -L of summaries"),
    "regression": ("scoring.predictions:NumberSet.main", "correlations of predicted numbers"),
    "seeds": ("scoring.seeds:main", "files of several seeds of two systems: means, and tests of the means"),
    "sql": ("scoring.program_runs:SqlSet.main", "SQL: exact match as trees, and execution accuracy on a SQLite file"),
    "structural": (
        "scoring.tree_runs:TreeSet.main",
        "accuracy and validity of generated trees: programs, logical forms",
    ),
}


@command
def main(arguments: Sequence[str] | None = None) -> int:
    """Scores files, or runs the scorer that the first argument names; the exit status is 2 for an unknown name."""
    is_name = arguments and not arguments[0].startswith("-") and did_you_mean(arguments[0], SCORERS)
    if is_name and not Path(arguments[0]).is_file():  # a folder may be called like a scorer
        return run_command("tree-fairseq score", SCORERS, arguments)
    log_to_standard_error()  # before the libraries of metrics are imported, one of which sets logging up, too
    from tree_fairseq.scoring import hypothesis_files

    names = "\n".join(f"  {name:<14} {about}" for name, (_, about) in SCORERS.items())
    about = (
        f"scorers of seeds, and of the runs of recipes, tree-fairseq score NAME --run DIR (see NAME --help):\n{names}"
    )
    hypothesis_files.main(arguments or ["--help"], epilog=about)
    return 0


if __name__ == "__main__":
    sys.exit(main())
