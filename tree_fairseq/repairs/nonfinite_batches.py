"""A training that stops at NaN or infinity says which sentences it was at.

fairseq stops with a FloatingPointError at gradients that are NaN or infinite, and with ``--fp16`` when the loss scale
has reached its floor. It then saves ``crash.pt``, and logs the modules whose outputs are not finite. Here every process
also writes its sentences into ``crash.json``, beside ``crash.pt``, and ``tree-fairseq replay`` runs that batch again.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Callable

from fairseq import utils
from fairseq.trainer import Trainer

from tree_fairseq.errors import CorruptFileError, NonFiniteError
from tree_fairseq.support.files import read_json, write_json

CHECKPOINT = "crash.pt"
"""The name that fairseq gives to the state of a training that it stops."""
_SHOWN = 8  # sentences in a message


@dataclass
class NonFiniteBatch:
    """The batch that a process was training on when the training stopped.

    Attributes:
        cause: fairseq's message
        update: number of the update, from 1; its epoch, and ``--seed``
        rank: number of this process among ``world_size``
        batches: the sentences of each batch of ``--update-freq``, numbers in the training split from 0; empty for a
            batch that only kept this process in step with others
        subset: the training split
        data: the preprocessed folders, absolute
    """

    cause: str
    update: int
    epoch: int
    seed: int
    rank: int
    world_size: int
    batches: list[list[int]]
    subset: str
    data: list[str]

    @classmethod
    def load(cls, path: Path) -> NonFiniteBatch:
        """Reads a file; raises FileNotFoundError without one, and CorruptFileError if it does not describe a batch."""
        values = read_json(path)
        if values is None:
            raise FileNotFoundError(f"{path} does not exist")
        try:
            found = cls(**{field.name: values[field.name] for field in fields(cls)})
            numbers = [found.update, found.epoch, found.seed, *(number for ids in found.batches for number in ids)]
            is_sound = all(type(number) is int and number >= 0 for number in numbers) and all(
                isinstance(name, str) for name in (found.subset, *found.data)
            )
        except (KeyError, TypeError):
            is_sound = False
        if not is_sound:
            raise CorruptFileError(f"{path} does not describe a batch; fairseq-train writes such files when it stops")
        return found

    def describe(self, path: Path) -> str:
        """The message of the end: cause, sentences, files, and how to go on."""
        ids = [number for batch in self.batches for number in batch]
        listed = ", ".join(map(str, ids[:_SHOWN])) + (f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else "")
        others = " (of this process alone; each process has written a file)" if self.world_size > 1 else ""
        return (
            f"training stopped at update {self.update} in epoch {self.epoch}: {self.cause}. Its sentences{others}, "
            f"counted from 0, are {listed} of {self.subset}; see {path}, and {path.with_name(CHECKPOINT)} for the "
            f"weights before this update. This command runs the batch again and names the module and the sentences:\n"
            f"  tree-fairseq replay {path}"
        )


def note_epoch(begin: Callable) -> Callable:
    """Notes the epoch of a training, which fairseq's trainer does not keep."""

    def begin_epoch(self: Trainer, epoch: int) -> None:
        self.epoch_begun = epoch
        begin(self, epoch)

    return begin_epoch


def keep_batch(step: Callable) -> Callable:
    """Writes the batch down if an update ends in a FloatingPointError."""

    def train_step(self: Trainer, samples: Sequence[dict], raise_oom: bool = False) -> Any:
        try:
            return step(self, samples, raise_oom)
        except Exception as error:
            cause = _floating_point_error(error)
            if cause is None or isinstance(error, NonFiniteError):
                raise
            raise NonFiniteError(_write(self, samples, str(cause))) from error

    return train_step


def _floating_point_error(error: BaseException | None) -> FloatingPointError | None:
    """The error, or the one that was being handled when it came: fairseq runs the batch again, which may fail too."""
    while error is not None and not isinstance(error, FloatingPointError):
        error = error.__context__
    return error


def _write(trainer: Trainer, samples: Sequence[dict], cause: str) -> str:
    """Writes the file of this process; returns the message."""
    data = utils.split_paths(str(getattr(trainer.cfg.task, "data", None) or ""))
    found = NonFiniteBatch(
        cause=(cause.strip().splitlines() or ["a number is not finite"])[0].rstrip("."),
        update=trainer.get_num_updates() + 1,
        epoch=getattr(trainer, "epoch_begun", 1),
        seed=trainer.cfg.common.seed,
        rank=trainer.data_parallel_rank,
        world_size=trainer.data_parallel_world_size,
        batches=[_ids(sample) for sample in samples],
        subset=trainer.cfg.dataset.train_subset,
        data=[os.path.abspath(path) for path in data],
    )
    name = "crash.json" if found.world_size == 1 else f"crash-{found.rank}.json"
    path = Path(trainer.cfg.checkpoint.save_dir, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, asdict(found))
    return found.describe(path)


def _ids(sample: dict | None) -> list[int]:
    ids = (sample or {}).get("id")
    return [] if ids is None else [int(number) for number in ids]
