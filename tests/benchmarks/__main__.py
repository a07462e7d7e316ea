"""``python -m tests.benchmarks NAME``: prints tables and, as the last line, the figures as JSON."""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from tests.benchmarks.measuring import BUNDLED_PARSER, Settings

BENCHMARKS = {
    "accumulation": "closed form of hierarchical accumulation against the paper's tensor",
    "tree_transformer_step": "training step against the stock transformer's over as many positions",
    "tree_transformer_generate": "beam search against the stock transformer's over as many positions",
    "structural_beam": "search for trees against fairseq's beam search, and how many outputs are trees",
    "tree_positions": "rows of the projected table against n * k * P values a node",
    "classification_step": "training step of a classifier against the stock transformer's and Tree-LSTMs', over the "
    "length too",
    "documents": "training step on a document over the number of its sentences, by rows and as one forest",
    "treeformer": "the chart against the encoder under it, the triple loop and a gather for every level",
    "insertion": "decoding by insertions against left to right and against itself one sentence at a time, oracles, "
    "training step",
    "treeformer_generate": "beam search with a chart against the stock transformer's on the same sentences",
    "preprocess": "binarizing against fairseq-preprocess, parsing against bare Stanza, the parse cache",
    "loading": "loading and collating a batch against the training step on it",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the benchmarks that the command line names.

    Returns:
        0 where all of them ran, whatever they measured
    """
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description="Measures; tests nothing.")
    parser.add_argument("name", nargs="?", choices=[*BENCHMARKS, "all"], help="without it, the names are listed")
    parser.add_argument("--threads", type=int, help="threads of torch; by default as many as torch takes")
    parser.add_argument("--quick", action="store_true", help="small and few: shows that it runs, measures nothing")
    parser.add_argument(
        "--parser-dir",
        type=Path,
        default=BUNDLED_PARSER,
        metavar="DIR",
        help="Stanza models, of English, for classification_step",
    )
    parser.add_argument("--output", type=Path, default=Path("out/benchmarks"), metavar="DIR", help="folder of pictures")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="Overnight's .examples, for insertion; made-up forms without it"
    )
    parser.add_argument(
        "--checkpoints",
        type=Path,
        nargs=2,
        metavar=("INSERTION", "LEFT_TO_RIGHT"),
        help="for insertion: trained on the folder that --data gives, instead of trained anew",
    )
    options = parser.parse_args(arguments)
    if options.name is None:
        width = max(map(len, BENCHMARKS))
        print("\n".join(f"{name.ljust(width)}  {summary}" for name, summary in BENCHMARKS.items()))
        return 0
    if options.name == "all":
        # A process each: some change the process they run in.
        flags = [f"--parser-dir={options.parser_dir}", f"--output={options.output}"]
        flags += [] if options.data is None else [f"--data={options.data}"]
        flags += ["--quick"] * options.quick + ([] if options.threads is None else [f"--threads={options.threads}"])
        codes = [subprocess.call([sys.executable, "-m", "tests.benchmarks", name, *flags]) for name in BENCHMARKS]
        return max(codes, key=abs)
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    settings = Settings(
        quick=options.quick,
        parser_dir=options.parser_dir,
        output=options.output,
        data=options.data,
        checkpoints=None if options.checkpoints is None else tuple(options.checkpoints),
    )
    report = importlib.import_module(f"tests.benchmarks.{options.name}").run(settings)
    print(
        f"torch {torch.__version__}, {torch.get_num_threads()} thread(s), load {os.getloadavg()[0]:.1f} on "
        f"{os.cpu_count()} cores"
    )
    print(report.text(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
