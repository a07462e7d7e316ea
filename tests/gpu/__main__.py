"""``python -m tests.gpu``: checks and measures the package on a GPU; writes ``gpu.json`` and a table, ``gpu.md``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.measuring import BUNDLED_PARSER
from tests.benchmarks.reporting import aligned
from tests.gpu.parts import AROUND_TRAINING, MINUTES, PARTS, QUICK_FACTOR, Options, run_part
from tests.gpu.runner import Runner, rows_of


def arguments_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.gpu", description=__doc__)
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1 or cpu (default: cuda)")
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, to see that everything runs; the figures mean nothing"
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="run these parts alone")
    parser.add_argument("--output", type=Path, default=Path("out/gpu"), metavar="DIR", help="folder of the results")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="Multi30k's text, data/task1/tok (default: a generated corpus)"
    )
    parser.add_argument(
        "--parser-dir", type=Path, default=BUNDLED_PARSER, metavar="DIR", help="English models of Stanza"
    )
    parser.add_argument("--minutes", type=float, default=MINUTES, help="limit of all parts together (default: 8)")
    parser.add_argument("--train-seconds", type=float, default=120, help="length of the training (default: 120)")
    parser.add_argument("--python", default=sys.executable, metavar="FILE", help="interpreter that runs the parts")
    parser.add_argument("--only-part", nargs=2, metavar=("PART", "FILE"), help=argparse.SUPPRESS)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the parts that the command line names; returns 0 if all of them ended well, whatever they measured."""
    given = arguments_parser().parse_args(arguments)
    if given.only_part is not None:
        name, path = given.only_part
        run_part(name, options_of(given), Path(path))
        return 0
    problem = unusable(given.device)
    if problem:
        print(problem, file=sys.stderr)
        return 2
    flags = ["--device", given.device, "--parser-dir", str(given.parser_dir.resolve())]
    flags += ["--python", given.python, *["--quick"] * given.quick]
    flags += [] if given.data is None else ["--data", str(given.data.resolve())]

    def command(name: str, path: Path, seconds: float) -> list[str]:
        # A training that begins late is shorter, so that it ends in time and is scored.
        training = min(given.train_seconds, max(10.0, seconds - AROUND_TRAINING))
        own = ["--train-seconds", str(training), "--only-part", name, str(path.resolve())]
        return [given.python, "-m", "tests.gpu", *flags, *own]

    factor = QUICK_FACTOR if given.quick else 1
    runner = Runner(given.output, command, 60 * given.minutes * factor)
    runner.record["quick"] = given.quick
    finished = runner.run({name: factor * seconds for name, seconds in PARTS.items() if name in given.parts})
    print(f"\n{aligned(rows_of(runner.record))}\n\nwritten: {given.output / 'gpu.json'}, {given.output / 'gpu.md'}")
    return 0 if finished else 1


def options_of(given: argparse.Namespace) -> Options:
    names = ("device", "quick", "output", "data", "parser_dir", "python", "train_seconds")
    return Options(**{name: getattr(given, name) for name in names})


def unusable(device: str) -> str | None:
    import torch

    try:
        chosen = torch.device(device)
    except RuntimeError as error:
        return f"--device {device}: {error}"
    # Nothing is put on the GPU here: this process would keep a part of its memory, or all of an exclusive one.
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if chosen.type == "cuda" and (chosen.index or 0) >= count:
        found = f"torch {torch.__version__} finds {count} GPUs"
        return f"--device {device}: {found}. Without a GPU, --device cpu --quick shows that everything runs."
    return None


if __name__ == "__main__":
    sys.exit(main())
