"""Draws the learning curves of runs from the logs of ``fairseq-train``.

tree-fairseq curves logs/tree_transformer.log logs/transformer.log --output curves
tree-fairseq curves trees=runs/1/train.log stock=runs/2/train.log --metrics loss bleu --output curves.svg
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from tree_fairseq.drawing.figure_files import write_figure
from tree_fairseq.drawing.learning_curves import Curves, draw_curves, read_curves
from tree_fairseq.errors import TreeFairseqError
from tree_fairseq.support.error_reports import failed

logger = logging.getLogger(__name__)


def _read(argument: str) -> Curves:
    """Reads ``NAME=LOG``, or a log that gives its own name to its lines."""
    name, sign, path = argument.partition("=")
    return read_curves(path, name) if sign and not Path(argument).exists() else read_curves(argument)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and prints the paths of the pictures; returns exit status 1 if a log cannot be drawn."""
    parser = argparse.ArgumentParser(
        prog="tree-fairseq curves", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("logs", nargs="+", metavar="LOG", help="output or --log-file of fairseq-train; NAME=LOG names its lines")
    add(
        "--metrics",
        nargs="+",
        metavar="NAME",
        help="such as loss, ppl, bleu (default: loss, and what chose checkpoints)",
    )
    add("--output", type=Path, required=True, metavar="FILE", help="FILE.svg or FILE.png; without an ending both")
    args = parser.parse_args(arguments)
    try:
        for path in write_figure(
            draw_curves(list(map(_read, args.logs)), args.metrics), args.output, "learning curves"
        ):
            print(path)
    except (TreeFairseqError, OSError) as error:
        return failed(error, logger)
    return 0


if __name__ == "__main__":
    sys.exit(main())
