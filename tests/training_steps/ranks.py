"""Processes that run ``fairseq-train`` together on the CPU, one training after the other.

They are forks of the process that makes them, so that none has to import torch and fairseq again; gloo joins them once.
"""

from __future__ import annotations

import copy
import ctypes
import logging
import multiprocessing
import signal
import socket
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np
import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.distributed import utils as distributed_utils
from fairseq.models import distributed_fairseq_model
from fairseq.trainer import Trainer
from fairseq_cli import train
from omegaconf import DictConfig, OmegaConf
from torch.nn.parallel import DistributedDataParallel

from tests.end_to_end.commands import PLUGIN, forget_earlier_runs
from tests.training_steps.cases import FOLDERS, Case, Folders, without_dropout

Changes = Mapping[str, Any]  # Options as fairseq names them in its configuration, such as ``dataset.batch_size``
OPTIONS = {
    # Weights differ by as much as the gradients do, whose norms before they are clipped are compared, too.
    "--optimizer": "sgd", "--lr": "0.2", "--clip-norm": "1", "--max-epoch": "2",
    # Otherwise fairseq leaves the last batch out, if it is smaller.
    "--required-batch-size-multiple": "1",
    "--num-workers": "0", "--log-format": "json", "--user-dir": str(PLUGIN),
}  # fmt: skip
_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux
MEASURES = ("wall", "train_wall", "wps", "ups", "wpb", "bsz")  # Times, and numbers that a batch has of its own


@dataclass
class Outcome:
    start: dict[str, np.ndarray] = field(default_factory=dict)  # the weights before the first update
    weights: dict[str, np.ndarray] = field(default_factory=dict)  # those at the end
    # of each update, the sums that the criterion logged, the size of the sample and the norm of the gradient
    updates: list[dict[str, float]] = field(default_factory=list)
    validation: dict[str, float] = field(default_factory=dict)  # the sums of a whole validation
    # what the first process printed at the ends of epochs and validations, less times and speeds
    reported: list[str] = field(default_factory=list)
    error: str = ""  # the traceback of a training that failed


def configuration_of(case: Case, folders: Folders) -> DictConfig:
    """What fairseq makes of the command line of a case; half of the time of such a training goes into it."""
    flags = [*map(str, case.flags)]
    if "pretrained" in flags:
        flags += ["--encoder-path", str(folders.pretrained())]
    task = () if "--task" in flags else FOLDERS[case.folder][0]
    settings = [part for setting in OPTIONS.items() for part in setting]
    command = [str(folders(case.folder)), *task, "--arch", case.arch, *flags, "--cpu", *settings]
    return convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), command))


class Ranks:
    def __init__(self, count: int):
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            address = f"tcp://127.0.0.1:{found.getsockname()[1]}"
        context = multiprocessing.get_context("fork")
        self._pipes, self._processes = [], []
        for rank in range(count):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, rank, address), daemon=True)
            process.start()
            self._pipes.append(ours)
            self._processes.append(process)

    def together(self, cfg: DictConfig, changes: Changes, seconds: float = 300) -> list[Outcome]:
        """Trains in all processes; returns the outcome of each. The errors of any of them are raised."""
        return self._run(cfg, changes, self._pipes, seconds)

    def alone(self, cfg: DictConfig, changes: Changes, seconds: float = 300) -> Outcome:
        return self._run(cfg, changes, self._pipes[:1], seconds)[0]

    def _run(self, cfg: DictConfig, changes: Changes, pipes: list, seconds: float) -> list[Outcome]:
        cfg = copy.deepcopy(cfg)
        for name, value in {**changes, "distributed_training.distributed_world_size": len(pipes)}.items():
            OmegaConf.update(cfg, name, value, merge=False)
        for pipe in pipes:
            pipe.send(cfg)
        outcomes = []
        for rank, pipe in enumerate(pipes):
            assert pipe.poll(seconds), f"process {rank} has not answered"
            outcomes.append(pipe.recv())
        failed = [outcome.error for outcome in outcomes if outcome.error]
        if failed:
            self.close()  # the others may be in the middle of a step
            raise AssertionError("\n".join(failed))
        return outcomes

    @property
    def is_alive(self) -> bool:
        return all(process.is_alive() for process in self._processes)

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.join()


def _serve(pipe, rank: int, address: str) -> None:
    warnings.resetwarnings()
    warnings.simplefilter("ignore")
    # The threads of the first process are not here.
    torch.set_num_threads(1)
    logging.getLogger().handlers[:] = []
    _do_without_gpus()
    own = {"distributed_rank": rank, "distributed_init_method": address, "distributed_backend": "gloo"}
    if sys.platform == "linux":
        # Not to outlive a parent that is killed.
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    while True:
        cfg = pipe.recv()
        for name, value in own.items():
            cfg.distributed_training[name] = value
        failed = False
        try:
            if cfg.distributed_training.distributed_world_size > 1 and not torch.distributed.is_initialized():
                distributed_utils.distributed_init(cfg)
            outcome = _train(cfg)
        except BaseException:
            outcome, failed = Outcome(error=f"process {rank}: {traceback.format_exc()}"), True
        pipe.send(outcome)
        if failed:
            return


def _do_without_gpus() -> None:
    """Lets fairseq's distribution work in this process, for which it names a GPU and takes memory of one."""

    class OnTheCpu(DistributedDataParallel):
        def __init__(self, module, device_ids=None, output_device=None, **options):
            super().__init__(module, **options)

    distributed_fairseq_model.DistributedDataParallel = OnTheCpu
    gather = distributed_utils.all_gather_list
    gather._buffer, gather._cpu_buffer = torch.ByteTensor(1 << 20), torch.ByteTensor(1 << 18)


def _train(cfg: DictConfig) -> Outcome:
    outcome = Outcome()
    forget_earlier_runs()

    class Recorded(Trainer):
        """fairseq's trainer, which notes what it does and leaves nothing to chance."""

        def __init__(self, cfg, task, model, *others):
            super().__init__(cfg, task, without_dropout(model), *others)
            # Arrays: a tensor would be sent as an open file.
            outcome.weights = {name: value.numpy() for name, value in model.state_dict().items()}
            outcome.start = {name: value.copy() for name, value in outcome.weights.items()}

        def _reduce_and_log_stats(self, logging_outputs, sample_size, grad_norm=None):
            sums = {"sample_size of all": float(sample_size)}
            for output in logging_outputs:
                for name, value in output.items():
                    sums[name] = sums.get(name, 0.0) + float(torch.as_tensor(value, dtype=torch.float64).sum())
            if grad_norm is None:
                for name, value in sums.items():
                    outcome.validation[name] = outcome.validation.get(name, 0.0) + value
            else:
                outcome.updates.append({**sums, "gnorm": float(grad_norm)})
            return super()._reduce_and_log_stats(logging_outputs, sample_size, grad_norm)

    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(train, "Trainer", Recorded),
        _reports(outcome.reported),
    ):
        cfg.checkpoint.update(save_dir=folder, no_save=True)
        train.main(cfg)
    return outcome


@contextmanager
def _reports(lines: list[str]) -> Iterator[None]:
    class Notes(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.name in ("train", "valid"):
                lines.append(record.getMessage())

    root, notes = logging.getLogger(), Notes()
    root.addHandler(notes)
    level = root.level
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.removeHandler(notes)
        root.setLevel(level)
