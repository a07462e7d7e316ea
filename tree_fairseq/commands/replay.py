"""Runs the batch again at which a training stopped because of NaN or infinity, and says where it comes from.

tree-fairseq replay checkpoints/crash.json

The weights, the sentences, the seed and the precision are those of the training. It prints the first modules whose
outputs are not finite, the operation that first gave NaN in the backward pass (anomaly detection of torch), and the
sentences that do so alone. The exit status is 1 if the batch is not finite again, and 0 if it is.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils, tasks, utils
from fairseq.nan_detector import NanDetector
from fairseq.trainer import Trainer
from omegaconf import open_dict

from tree_fairseq.errors import DataFolderError
from tree_fairseq.repairs.checkpoint_loading import load_weights_only
from tree_fairseq.repairs.nonfinite_batches import CHECKPOINT, NonFiniteBatch
from tree_fairseq.support.options import command


class Replay:
    """A trainer in the state in which a training stopped, and the batches of one process.

    Args:
        batch: the batch in the file that the training wrote
        checkpoint: the state of the training
        data: folders that replace those of the training

    Raises:
        DataFolderError: the training split has fewer sentences than the numbers say
    """

    def __init__(self, batch: NonFiniteBatch, checkpoint: Path, data: Sequence[str] = ()):
        self.batch = batch
        folders = ":".join(data or batch.data)
        state = checkpoint_utils.load_checkpoint_to_cpu(str(checkpoint), arg_overrides={"data": folders})
        cfg = self._settings(state["cfg"])
        self.task = tasks.setup_task(cfg.task)
        self.trainer = Trainer(
            cfg, self.task, self.task.build_model(cfg.model), self.task.build_criterion(cfg.criterion)
        )
        self._load_weights(checkpoint)
        self.task.load_dataset(batch.subset, epoch=batch.epoch, combine=True)
        self.dataset = self.task.dataset(batch.subset)
        self.dataset.set_epoch(batch.epoch)
        most = max((number for ids in batch.batches for number in ids), default=-1)
        if most >= len(self.dataset):
            raise DataFolderError(
                f"sentence {most} is not in {folders}, whose {batch.subset} has {len(self.dataset)}; name the folder "
                "of the training with --data"
            )

    @staticmethod
    def _settings(cfg: Any) -> Any:
        """The settings of the training, for one process."""
        with open_dict(cfg):
            cfg.common.user_dir = None
            cfg.common.cpu = cfg.common.cpu or not torch.cuda.is_available()
            cfg.dataset.num_workers = 0
            cfg.distributed_training.distributed_world_size = 1
            cfg.distributed_training.distributed_rank = 0
        return cfg

    def _load_weights(self, checkpoint: Path) -> None:
        """Loads the state of the training. fairseq wants a place in the data, which ``crash.pt`` does not have."""
        state = load_weights_only(checkpoint)
        state["extra_state"] = {"train_iterator": {"epoch": self.batch.epoch}}
        with tempfile.TemporaryDirectory() as folder:
            copy = os.path.join(folder, CHECKPOINT)
            torch.save(state, copy)
            self.trainer.load_checkpoint(copy)

    def run(self) -> list[str]:
        """Repeats the step with anomaly detection; returns a line for each thing that was not finite."""
        found: list[str] = []
        with _noticing(found), NanDetector(self.trainer.get_model(), backward=False):
            try:
                with torch.autograd.set_detect_anomaly(True):
                    why = self._step(*filter(None, self.batch.batches))
            except RuntimeError as error:
                if "returned nan values" not in str(error):
                    raise
                why = f"backward pass: {error}"
        return [*found, *([why] if why else [])]

    def alone(self) -> Iterator[tuple[int, str]]:
        """The sentences whose loss or gradients are not finite when they are a batch of their own, and the reason."""
        for number in dict.fromkeys(number for ids in self.batch.batches for number in ids):
            if why := self._step([number]):
                yield number, why

    def _step(self, *batches: Sequence[int]) -> str | None:
        """Goes forward and backward; returns a sentence about what is not finite, or None."""
        trainer, updates = self.trainer, self.batch.update - 1
        utils.set_torch_seed(self.batch.seed + updates)
        trainer.model.train()
        trainer.zero_grad()
        total = 0.0
        for ids in batches:
            sample, _ = trainer._prepare_sample(self._collate(ids))
            loss, *_ = self.task.train_step(sample, trainer.model, trainer.criterion, trainer.optimizer, updates)
            total += float(loss.detach().sum())
        gradients = [weight.grad for weight in trainer.model.parameters() if weight.grad is not None]
        is_finite = all(bool(gradient.isfinite().all()) for gradient in gradients)
        trainer.zero_grad()
        if not math.isfinite(total):
            return f"its loss is {total}"
        return None if is_finite else f"its loss is {total:.4g}, but its gradients are not finite"

    def text(self, number: int) -> str:
        """The source of a sentence."""
        tokens, dictionary = self._collate([number])["net_input"].get("src_tokens"), self.task.source_dictionary
        return "" if tokens is None or dictionary is None else dictionary.string(tokens[0])

    def _collate(self, ids: Sequence[int]) -> dict:
        return self.dataset.collater([self.dataset[number] for number in ids])


@contextlib.contextmanager
def _noticing(found: list[str]) -> Iterator[None]:
    """Adds the messages of fairseq's detector about modules."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            message = record.getMessage()
            if " detected in output of " in message and message not in found:
                found.append(message)

    handler, detector = Handler(), logging.getLogger("fairseq.nan_detector")
    detector.addHandler(handler)
    try:
        yield
    finally:
        detector.removeHandler(handler)


@command
def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="tree-fairseq replay", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="crash.json, or crash-RANK.json of one of several processes")
    add("--checkpoint", type=Path, metavar="FILE", help="state of the training (default: crash.pt beside FILE)")
    add("--data", nargs="+", default=(), metavar="FOLDER", help="the preprocessed folder, if it has moved since")
    args = parser.parse_args(arguments)
    batch = NonFiniteBatch.load(args.file)
    return _report(Replay(batch, args.checkpoint or args.file.with_name(CHECKPOINT), args.data))


def _report(replay: Replay) -> int:
    batch = replay.batch
    count = sum(map(len, batch.batches))
    print(f"update {batch.update}, epoch {batch.epoch}, seed {batch.seed}, {count} sentences")
    found = replay.run()
    if not found:
        print("everything is finite this time")
        return 0
    print("\n".join(found))
    guilty = list(replay.alone())
    for number, why in guilty:
        print(f"sentence {number} alone: {why}: {replay.text(number)}")
    if not guilty:
        print("each sentence alone is finite; only their sum is not")
    return 1
