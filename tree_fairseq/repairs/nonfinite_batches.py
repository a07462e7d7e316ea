"""A training that stops at NaN or infinity says which sentences it was at.

fairseq stops with a FloatingPointError at gradients that are NaN or infinite, and with ``--fp16`` when the loss scale
has reached its floor. It then saves ``crash.pt``, and logs the modules whose outputs are not finite. Here every process
also writes the numbers of its sentences into ``crash.json``, beside ``crash.pt``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable

from fairseq.trainer import Trainer

from tree_fairseq.errors import NonFiniteError
from tree_fairseq.support.files import write_json

_SHOWN = 8  # sentences in a message


def save_batch(step: Callable) -> Callable:
    """Saves the numbers of the sentences if an update ends in a FloatingPointError."""

    def train_step(self: Trainer, samples: Sequence[dict], raise_oom: bool = False) -> Any:
        try:
            return step(self, samples, raise_oom)
        except Exception as error:
            cause: BaseException | None = error
            while cause is not None and not isinstance(cause, FloatingPointError):
                cause = cause.__context__  # fairseq runs the batch again, which may fail in another way
            if cause is None:
                raise
            raise NonFiniteError(_save(self, samples, str(cause))) from error

    return train_step


def _save(trainer: Trainer, samples: Sequence[dict], cause: str) -> str:
    cause = (cause.strip().splitlines() or ["a number is not finite"])[0].rstrip(".")
    update, subset = trainer.get_num_updates() + 1, trainer.cfg.dataset.train_subset
    # A batch that only keeps this process in step with others is empty.
    numbers = [int(number) for sample in samples if sample for number in sample["id"]]
    name = "crash.json" if trainer.data_parallel_world_size == 1 else f"crash-{trainer.data_parallel_rank}.json"
    path = Path(trainer.cfg.checkpoint.save_dir, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"cause": cause, "update": update, "subset": subset, "sentences": numbers})
    listed = ", ".join(map(str, numbers[:_SHOWN]))
    return (
        f"training stopped at update {update}: {cause}. Its {len(numbers)} sentences of {subset}, counted from 0, are "
        f"in {path} ({listed}{', ...' if len(numbers) > _SHOWN else ''}); the weights before this update are in "
        f"{path.with_name('crash.pt')}"
    )
