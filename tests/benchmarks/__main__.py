"""``python -m tests.benchmarks NAME``: prints tables and, as the last line, the figures as JSON.

The figures are also added to ``benchmarks.json`` in the folder of ``--output``; ``all`` ends with one table of them.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

import tree_fairseq
from tests.benchmarks import records
from tests.benchmarks.measuring import BUNDLED_PARSER, Settings
from tests.benchmarks.reporting import aligned

BENCHMARKS = {
    "accumulation": "hierarchical accumulation: the closed form and the paper's tensor",
    "tree_transformer_step": "training step: Tree-Transformer and transformer, on equally many positions",
    "tree_transformer_generate": "beam search: Tree-Transformer and transformer, on equally many positions",
    "structural_beam": "search for trees and fairseq's beam search; how many outputs are trees",
    "tree_positions": "tree positions: rows of a projected table and n * k * P values for each node",
    "classification_step": "training step of classifiers: Tree-Transformer, transformer, Tree-LSTMs; also by length",
    "documents": "training step on a document by number of sentences: as rows and as one forest",
    "treeformer": "Treeformer's chart, its encoder without the chart, the triple loop, one gather per level",
    "insertion": "decoding by insertion, from left to right, and one sentence at a time; oracle, training step",
    "treeformer_generate": "beam search: Treeformer and transformer, on the same sentences",
    "preprocess": "binarizing and fairseq-preprocess; parsing and bare Stanza; the parse cache",
    "corpus_scale": "memory, disk and time of fairseq-preprocess and of the start of training, up to 10^6 lines",
    "scale": "training step of the recipes' sizes: arithmetic, memory, time",
    "source_code": "reading programs of all languages, and queries by sqlglot alone",
    "loading": "loading and collating a batch, and the training step on it",
    "growth": "training step by length of sentences, and on trees of the worst shapes: over the stock model's",
    "memory": "peak memory of training steps of all methods: beside stock models on equally many positions",
    "import_time": "import tree_fairseq after fairseq, in new interpreters",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the benchmarks that the command line names; returns 0 if all of them ran, whatever they measured."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks", description="Measures time and memory; tests nothing."
    )
    parser.add_argument(
        "name", nargs="?", choices=[*BENCHMARKS, "all"], help="benchmark; without a name, all are listed"
    )
    parser.add_argument("--threads", type=int, help="number of torch's threads (default: torch's own)")
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, to see that it runs; the figures mean nothing"
    )
    parser.add_argument(
        "--parser-dir",
        type=Path,
        default=BUNDLED_PARSER,
        metavar="DIR",
        help="English models of Stanza, for classification_step",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("out/benchmarks"),
        metavar="DIR",
        help="folder of benchmarks.json and pictures",
    )
    parser.add_argument(
        "--page", action="store_true", help="afterwards, put the figures of benchmarks.json into docs/benchmarks.md"
    )
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="Overnight's .examples, for insertion (default: made-up forms)"
    )
    parser.add_argument(
        "--checkpoints",
        type=Path,
        nargs=2,
        metavar=("INSERTION", "LEFT_TO_RIGHT"),
        help="for insertion: models trained on --data (default: both are trained anew)",
    )
    parser.add_argument("--lines", type=int, nargs="+", metavar="N", help="for corpus_scale: numbers of lines")
    parser.add_argument(
        "--folder", type=Path, metavar="DIR", help="for corpus_scale: a place for files of about 4 KB a line"
    )
    options = parser.parse_args(arguments)
    path = options.output / "benchmarks.json"
    code = run(options, path)
    if options.page:
        records.publish(path, BENCHMARKS)
    return code


def run(options: argparse.Namespace, path: Path) -> int:
    """Lists the benchmarks, runs one, or runs all of them; ``path`` gets the figures. Returns the exit status."""
    if options.name is None:
        if options.page:
            return 0
        width = max(map(len, BENCHMARKS))
        print("\n".join(f"{name.ljust(width)}  {summary}" for name, summary in BENCHMARKS.items()))
        return 0
    if options.name == "all":
        # Each runs in a process of its own: some change their process.
        flags = [f"--parser-dir={options.parser_dir}", f"--output={options.output}"]
        flags += [] if options.data is None else [f"--data={options.data}"]
        flags += ["--quick"] * options.quick + ([] if options.threads is None else [f"--threads={options.threads}"])
        codes = [subprocess.call([sys.executable, "-m", "tests.benchmarks", name, *flags]) for name in BENCHMARKS]
        found = records.load(path) if path.exists() else {}
        print(f"\n{aligned(records.table({name: found[name] for name in BENCHMARKS if name in found}))}")
        return max(codes, key=abs)
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    names = ("quick", "parser_dir", "output", "data", "checkpoints", "lines", "folder")
    settings = Settings(**{name: getattr(options, name) for name in names})
    # This process imported the package before fairseq, so nothing is registered yet.
    tree_fairseq.register()
    report = importlib.import_module(f"tests.benchmarks.{options.name}").run(settings)
    records.add(path, report, options.quick)
    print(
        f"torch {torch.__version__}, {torch.get_num_threads()} thread(s), load {os.getloadavg()[0]:.1f} on "
        f"{os.cpu_count()} cores"
    )
    print(report.text(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
