"""Averages the weights of several checkpoints of one training run.

    tree-fairseq average checkpoints --last-epochs 10 --output checkpoints/average.pt

The averaged file keeps everything else (configuration, dictionaries' sizes, counters) of the newest checkpoint except
the optimiser's state, which belongs to one point of the trajectory. Checkpoints are loaded with ``weights_only=True``.
"""

from __future__ import annotations

import argparse
import logging
import re
from collections.abc import Sequence
from pathlib import Path

import torch

from tree_fairseq.errors import CheckpointError
from tree_fairseq.repairs.checkpoint_loading import load_weights_only
from tree_fairseq.support.files import atomic_file
from tree_fairseq.support.options import command
from tree_fairseq.support.progress import with_progress

logger = logging.getLogger(__name__)

_EPOCH = re.compile(r"checkpoint(\d+)\.pt")
_UPDATE = re.compile(r"checkpoint_\d+_(\d+)\.pt")


def last_checkpoints(folder: Path, count: int, pattern: re.Pattern[str] = _EPOCH) -> list[Path]:
    """Returns the ``count`` newest checkpoints of a folder, newest first, by the number in their names.

    Logs a warning if there are fewer, and raises CheckpointError if there are none.
    """
    matches = ((pattern.fullmatch(path.name), path) for path in folder.iterdir())
    numbered = [(int(match[1]), path) for match, path in matches if match]
    if not numbered:
        raise CheckpointError(f"{folder} has no checkpoint whose name matches {pattern.pattern}")
    chosen = [path for _, path in sorted(numbered, reverse=True)[:count]]
    if len(chosen) < count:
        logger.warning("%s has only %d of the %d wanted checkpoints; averaging those", folder, len(chosen), count)
    return chosen


def average_weights(paths: Sequence[Path]) -> dict[str, torch.Tensor]:
    """Returns the mean of every parameter, summed in float64 and converted back to the parameter's dtype.

    Integer entries (counters, version markers) come from the first checkpoint. One checkpoint is in memory at a time.
    If parameters, their shapes or the labels of trees differ, CheckpointError is raised.
    """
    newest = load_weights_only(paths[0])
    first, task = newest["model"], newest.get("task_state")
    shapes = {name: tensor.shape for name, tensor in first.items()}
    sums = {name: tensor.double() for name, tensor in first.items() if tensor.is_floating_point()}
    for path in with_progress(paths[1:], "average", unit="checkpoints"):
        state = load_weights_only(path)
        model = state["model"]
        if {name: tensor.shape for name, tensor in model.items()} != shapes:
            raise CheckpointError(f"{path} and {paths[0]} have different parameters")
        if state.get("task_state") != task:
            raise CheckpointError(f"{path} and {paths[0]} were trained with different labels of trees")
        for name, total in sums.items():
            total += model[name].double()
    # Tied matrices have equal sums, so their averages stay equal.
    return {
        name: (sums[name] / len(paths)).to(tensor.dtype) if name in sums else tensor for name, tensor in first.items()
    }


def average_checkpoints(paths: Sequence[Path], output: Path) -> None:
    """Writes the average of ``paths``, newest first, to ``output``, which appears only when complete."""
    weights = average_weights(paths)
    state = load_weights_only(paths[0]) | {"model": weights, "last_optimizer_state": None}
    output.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(output, "wb") as file:
        torch.save(state, file)
    logger.info("averaged %s into %s", ", ".join(path.name for path in paths), output)


@command
def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(prog="tree-fairseq average", description=__doc__.splitlines()[0])
    inputs = "one folder, or checkpoint files newest first"
    parser.add_argument("inputs", type=Path, nargs="+", metavar="CHECKPOINT", help=inputs)
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="the new checkpoint")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--last-epochs", type=int, metavar="N", help="the last N files checkpointE.pt of the folder")
    which.add_argument("--last-updates", type=int, metavar="N", help="the last N files checkpoint_E_U.pt of the folder")
    args = parser.parse_args(arguments)
    count = args.last_updates if args.last_epochs is None else args.last_epochs
    if (len(args.inputs) == 1 and args.inputs[0].is_dir()) != (count is not None):
        parser.error("give one folder with --last-epochs or --last-updates, or several files without")
    if count is not None and count < 1:
        parser.error("N must be positive")
    paths = args.inputs
    if count is not None:
        paths = last_checkpoints(paths[0], count, _EPOCH if args.last_epochs else _UPDATE)
    average_checkpoints(paths, args.output)
