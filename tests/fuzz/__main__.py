"""``python -m tests.fuzz [--seconds N] [--out DIR] [TARGET ...]``: see `guided`."""

from __future__ import annotations

import argparse
import importlib
import logging
import pkgutil
import sys
from pathlib import Path

import fairseq  # noqa: F401  the plugin registers only where fairseq is

import tests.fuzz
import tree_fairseq
from tests.fuzz.guided import fuzz
from tests.fuzz.law import TARGETS


def load_targets() -> None:
    for module in pkgutil.iter_modules(tests.fuzz.__path__):
        if module.name.endswith("_targets"):
            importlib.import_module(f"tests.fuzz.{module.name}")


def main() -> int:
    """Runs targets one after the other; the exit status is 1 if an input breaks the law."""
    load_targets()
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", default=sorted(TARGETS), help="names (default: all)")
    parser.add_argument("--seconds", type=float, default=60, help="for each target (default: 60)")
    parser.add_argument("--out", type=Path, default=Path("out/fuzz"), help="inputs that break the law")
    args = parser.parse_args()
    tree_fairseq.register()
    logging.disable(logging.WARNING)
    broken = {name: fuzz(TARGETS[name], args.seconds, args.out) for name in args.targets}
    print(f"inputs that broke the law: {broken}")
    return 1 if any(broken.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
