"""``python -m tree_fairseq`` prints the path to give to ``--user-dir``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    """Print this package's directory, absolute and with symbolic links resolved, on one line of standard output."""
    argparse.ArgumentParser(
        prog="python -m tree_fairseq",
        description="Prints the path for fairseq's --user-dir: "
        'fairseq-train ... --user-dir "$(python -m tree_fairseq)"',
    ).parse_args(arguments)
    print(Path(__file__).resolve().parent)
    return 0


if __name__ == "__main__":
    sys.exit(main())
