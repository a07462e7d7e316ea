"""A training stops at a loss or at gradients that are not finite, and saves the batch to be looked at.

fairseq stops with a FloatingPointError at gradients that are NaN or infinite, and with ``--fp16`` when the loss scale
has reached its floor. It then saves ``crash.pt``, and logs the modules whose outputs are not finite. It does not say
which sentences were in the batch, and goes on if the loss is not finite but the gradients are. Here every process
writes its sentences into ``crash.json``, beside ``crash.pt``, and ``tree-fairseq replay`` runs that batch again.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Callable

import torch
from fairseq import trainer, utils
from torch import Tensor

from tree_fairseq.errors import CorruptFileError, NonFiniteError
from tree_fairseq.repairs.compat import wrap
from tree_fairseq.support.files import read_json, write_json

CHECKPOINT = "crash.pt"
"""What fairseq calls the state of a training that it stops."""
_SHOWN = 8  # sentences in a message


@dataclass
class NonFiniteBatch:
    """The batch that a process was training on when the training stopped.

    Attributes:
        cause: of the end, as fairseq says it
        update: number of the update, from 1; its epoch, and ``--seed``
        rank: of this process among ``world_size``
        losses: one for each batch of ``--update-freq``, summed over its sentences, as text; ``nan`` and ``inf`` too
        batches: the sentences of each, numbers in the training split from 0; empty for one that stood in for none
        subset: the training split
        data: the preprocessed folders, absolute
    """

    cause: str
    update: int
    epoch: int
    seed: int
    rank: int
    world_size: int
    losses: list[str]
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

    @property
    def is_finite(self) -> bool:
        """Whether all losses of this process are finite."""
        return all(math.isfinite(float(loss)) for loss in self.losses)

    def describe(self, path: Path) -> str:
        """The message of the end: cause, sentences, files, and how to go on."""
        if "loss scale" in self.cause:
            what = "the loss scale of --fp16 has reached its floor (--min-loss-scale): the gradients are not finite"
        elif not self.is_finite:
            what = f"the loss is {next(loss for loss in self.losses if not math.isfinite(float(loss)))}"
        elif self.world_size > 1:
            what = "the loss of this process is finite, but the gradients of all processes together are not"
        else:
            what = "the loss is finite, but the gradients are not"
        ids = [number for batch in self.batches for number in batch]
        listed = ", ".join(map(str, ids[:_SHOWN])) + (f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else "")
        others = " (of this process alone; each process has written a file)" if self.world_size > 1 else ""
        return (
            f"training stopped at update {self.update} in epoch {self.epoch}: {what}. Its sentences{others}, counted "
            f"from 0, are {listed} of {self.subset}; see {path}, and {path.with_name(CHECKPOINT)} for the weights "
            f"before this update. This command runs the batch again and names the module and the sentences:\n"
            f"  tree-fairseq replay {path}"
        )


def install() -> None:
    """Wraps three methods of fairseq's trainer; a second call does nothing."""
    wrap(trainer.Trainer, "begin_epoch", _note_epoch)
    wrap(trainer.Trainer, "train_step", _keep_batch)
    wrap(trainer.Trainer, "_check_grad_norms", _check_losses)


def _note_epoch(begin: Callable) -> Callable:
    def begin_epoch(self: trainer.Trainer, epoch: int) -> None:
        self.epoch_begun = epoch
        begin(self, epoch)

    return begin_epoch


def _keep_batch(step: Callable) -> Callable:
    """Notes the losses of a step, and writes the batch down if the step ends in a FloatingPointError."""

    def train_step(self: trainer.Trainer, samples: Sequence[dict], raise_oom: bool = False) -> Any:
        losses: list[Tensor] = []
        hook = self.criterion.register_forward_hook(lambda criterion, given, output: losses.append(output[0].detach()))
        self.losses_of_step = losses
        try:
            return step(self, samples, raise_oom)
        except Exception as error:
            cause = _floating_point_error(error)
            if cause is None or isinstance(error, NonFiniteError):
                raise
            raise NonFiniteError(_write(self, samples, losses[: len(samples)], str(cause))) from error
        finally:
            hook.remove()

    return train_step


def _floating_point_error(error: BaseException | None) -> FloatingPointError | None:
    """The error, or the one that was being handled when it came: fairseq runs the batch again, which may fail too."""
    while error is not None and not isinstance(error, FloatingPointError):
        error = error.__context__
    return error


def _check_losses(check: Callable) -> Callable:
    """Also stops at a loss that is not finite while the gradients are; fairseq's check waits for the device, too."""

    def check_grad_norms(self: trainer.Trainer, grad_norm: Tensor) -> None:
        check(self, grad_norm)
        losses = getattr(self, "losses_of_step", [])
        # Automatic mixed precision repeats a step with another scale, and then skips it.
        if (
            losses
            and not self.cfg.common.amp
            and not bool(torch.stack([loss.sum() for loss in losses]).isfinite().all())
        ):
            raise FloatingPointError("the loss is NaN or infinite")

    return check_grad_norms


def _write(self: trainer.Trainer, samples: Sequence[dict], losses: Sequence[Tensor], cause: str) -> str:
    """Writes the file of this process; returns the message."""
    data = utils.split_paths(str(getattr(self.cfg.task, "data", None) or ""))
    found = NonFiniteBatch(
        cause=cause.strip().splitlines()[0] if cause.strip() else "",
        update=self.get_num_updates() + 1,
        epoch=getattr(self, "epoch_begun", 1),
        seed=self.cfg.common.seed,
        rank=self.data_parallel_rank,
        world_size=self.data_parallel_world_size,
        losses=[str(float(loss.sum())) for loss in losses],
        batches=[_ids(sample) for sample in samples],
        subset=self.cfg.dataset.train_subset,
        data=[os.path.abspath(path) for path in data],
    )
    name = "crash.json" if found.world_size == 1 else f"crash-{found.rank}.json"
    path = Path(self.cfg.checkpoint.save_dir, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, asdict(found))
    return found.describe(path)


def _ids(sample: dict | None) -> list[int]:
    ids = (sample or {}).get("id")
    return [] if ids is None else [int(number) for number in ids]
