"""``python -m tests.fuzz [--seconds N] [--out DIR] [TARGET ...]``: see `guided`."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import tests.fuzz
from tests.fuzz.law import TARGETS


def load_targets() -> None:
    """Imports every module of targets."""
    for module in pkgutil.iter_modules(tests.fuzz.__path__):
        if module.name.endswith("_targets"):
            importlib.import_module(f"tests.fuzz.{module.name}")


def main() -> int:
    """Runs targets one after the other; the exit status is 1 if an input breaks the law."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", help="names (default: all)")
    parser.add_argument("--seconds", type=float, default=60, help="for each target (default: 60)")
    parser.add_argument("--out", type=Path, default=Path("out/fuzz"), help="inputs that break the law")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        return _run_one(args)
    import fairseq  # noqa: F401  the plugin registers only where fairseq is

    load_targets()
    found = []
    for name in args.targets or sorted(TARGETS):
        print(f"{name}: {args.seconds:g} s", flush=True)
        command = [sys.executable, "-m", "tests.fuzz", "--one", "--seconds", str(args.seconds), "--out", args.out, name]
        process = subprocess.run(list(map(str, command)), env={**os.environ, "OMP_NUM_THREADS": "1"})
        broken = sorted((args.out / name).glob("*"))
        if process.returncode or broken:
            found.append(f"{name}: {len(broken)} inputs in {args.out / name}, exit status {process.returncode}")
    print("\n".join(found) or "every target keeps its law")
    return 1 if found else 0


def _run_one(args: argparse.Namespace) -> int:
    try:
        import atheris
    except ImportError:
        atheris = None
    import fairseq  # noqa: F401

    if atheris is not None:
        with atheris.instrument_imports(include=["tree_fairseq"]):
            load_targets()
    else:
        load_targets()
    import tree_fairseq
    from tests.fuzz.guided import run

    tree_fairseq.register()
    logging.disable(logging.WARNING)
    return 1 if run(TARGETS[args.targets[0]], args.seconds, args.out) else 0


if __name__ == "__main__":
    sys.exit(main())
