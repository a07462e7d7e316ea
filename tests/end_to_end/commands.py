"""fairseq's commands, run in this process as their console scripts run them."""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest import mock

from tests.fork_server import CONSOLE_SCRIPTS, programs
from tree_fairseq.support.logs import TRACEBACK

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "tree_fairseq"


def run(command: str, *arguments: object, stdin: str | bytes | None = None) -> str:
    """Runs ``fairseq-COMMAND`` with the plugin, or ``tree-fairseq translate``; returns its log and its output.

    Batches are loaded in this process unless ``--num-workers`` is among the arguments: when the cyclic garbage
    collector frees a loader with workers, torch waits five seconds for each of them.
    """
    main = translate if command == "translate" else importlib.import_module(f"fairseq_cli.{command}").cli_main
    forget_earlier_runs()
    argv = [f"fairseq-{command}", *map(str, arguments), "--user-dir", str(PLUGIN)]
    if command in ("train", "validate", "generate", "translate") and "--num-workers" not in argv:
        argv += ["--num-workers", "0"]
    typed = io.TextIOWrapper(io.BytesIO(stdin if isinstance(stdin, bytes) else (stdin or "").encode()), "utf-8")
    with _captured() as output, mock.patch.object(sys, "argv", argv), mock.patch.object(sys, "stdin", typed):
        main()
    return output.getvalue()


TRAINING = {
    "--optimizer": "adam", "--lr": "5e-3", "--lr-scheduler": "inverse_sqrt", "--warmup-updates": 8, "--dropout": 0.1,
    "--num-workers": 0, "--seed": 7, "--log-format": "simple", "--log-interval": 1,
}  # fmt: skip
LABEL_SMOOTHING = {"--criterion": "label_smoothed_cross_entropy", "--label-smoothing": 0.1}


def train_by(defaults: dict[str, object], data: object, folder: Path, *arguments: object) -> str:
    """Runs ``fairseq-train`` by TRAINING, ``defaults`` that replace these, and arguments that replace both."""
    flags = {**TRAINING, **defaults}.items()
    options = [text for name, value in flags if name not in arguments for text in (name, value)]
    return run("train", data, "--cpu", "--save-dir", folder, *options, *arguments)


def prefixes_of(text: Path) -> list[object]:
    return [part for split in ("train", "valid", "test") for part in (f"--{split}pref", text / split)]


def translate() -> None:
    """Runs ``tree-fairseq translate``; errors that would end it with a message are raised."""
    from tree_fairseq.commands.translate import main

    with mock.patch.dict(os.environ, {TRACEBACK: "1"}):
        assert main() == 0


def readable(output: str) -> list[str]:
    """The texts of the ``D-`` lines, in the order of the input."""
    found = lines_of("D", output)
    return [found[number].partition("\t")[2] for number in sorted(found)]


def run_in_process(command: Sequence[object], **options) -> subprocess.CompletedProcess:
    """Runs a command in a process of one thread; output and errors come back as one text."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": "", **options.pop("env", {})}
    options = {"cwd": ROOT, "timeout": 300, "text": True, **options}
    return subprocess.run(
        list(map(str, command)), env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options
    )


def script(name: str) -> Path:
    """A console script of the environment that runs the tests, without its import time if the fork server has it."""
    return programs() / name if name in CONSOLE_SCRIPTS else Path(sys.executable).with_name(name)


def hypotheses(output: str) -> dict[int, tuple[str, float]]:
    """Translation and score by sentence number, from what generate and interactive print."""
    found = re.findall(r"^H-(\d+)\t(-?[\d.e-]+|-?inf|nan)\t(.*)$", output, re.MULTILINE)
    return {int(number): (text, float(score)) for number, score, text in found}


def lines_of(kind: str, output: str) -> dict[int, str]:
    """Lines such as ``A-0`` by sentence number."""
    return {int(number): text for number, text in re.findall(rf"^{kind}-(\d+)\t(.*)$", output, re.MULTILINE)}


def logged(name: str, log: str) -> list[float]:
    return [float(value) for value in re.findall(rf"valid on 'valid' subset.*? {name} ([\d.]+)", log)]


def updates(log: str) -> int:
    return int(re.findall(r"num_updates (\d+)", log)[-1])


def forget_earlier_runs() -> None:
    """fairseq keeps the best score so far on its functions: a process is meant to run one command."""
    from fairseq import checkpoint_utils
    from fairseq_cli import train

    for function in (checkpoint_utils.save_checkpoint, train.should_stop_early):
        function.__dict__.pop("best", None)
        function.__dict__.pop("num_runs", None)


@contextlib.contextmanager
def _captured() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(levelname)s | %(name)s | %(message)s"))
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.INFO)
    root.addHandler(handler)
    try:
        with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
            yield stream
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
