"""Training in several processes: on CPUs too, with a limit to waiting, and with one sentence when a process is lost.

fairseq 0.12 starts and joins processes on GPUs alone, although torch joins those on CPUs by gloo. It leaves to torch
how long a process waits for the others: half an hour with gloo. With torch 2.6 and later, several processes cannot
resume a training.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import os
import re
from typing import Any, Callable

import torch
from fairseq.distributed import utils as distributed_utils
from fairseq.models import distributed_fairseq_model
from torch.multiprocessing import ProcessExitedException, ProcessRaisedException
from torch.nn.parallel import DistributedDataParallel

from tree_fairseq.errors import LostProcessError
from tree_fairseq.repairs.compat import replaced, wrap

# torch raises errors of its own when processes cannot reach each other; those of gloo are plain.
_LOST = re.compile(
    r"gloo|Connection (closed|reset|refused)|Broken pipe|[Tt]imed out|Socket Timeout|failed to (recv|send)|"
    r"remote (process|peer)|Dist(Backend|Network|Store)Error"
)
_PLACE = re.compile(r"^\[[^]\s]*:\d+\] ")
_LAUNCHED = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")


def install() -> None:
    """Makes the changes to fairseq; a second call does nothing."""
    wrap(distributed_utils, "call_main", _on_cpus_too)
    wrap(distributed_utils, "distributed_init", _with_limited_waiting)
    wrap(distributed_utils, "distributed_main", _with_one_sentence)
    wrap(distributed_utils, "all_gather_list", _gather_on_cpus)
    wrap(distributed_utils, "_broadcast_object_slow", _receive_any_object)
    distributed_fairseq_model.DistributedDataParallel = DataParallelOnAnyDevice


class DataParallelOnAnyDevice(DistributedDataParallel):
    """torch's class; fairseq names a GPU also for a model on the CPU, which torch refuses."""

    def __init__(self, module: torch.nn.Module, device_ids: Any = None, output_device: Any = None, **options: Any):
        if all(parameter.device.type == "cpu" for parameter in module.parameters()):
            device_ids = output_device = None
        super().__init__(module, device_ids=device_ids, output_device=output_device, **options)


def _on_cpus_too(call: Callable) -> Callable:
    """With ``--cpu``, lets fairseq start processes, and torchrun start fairseq, as with that many GPUs."""

    def call_main(cfg: Any, main: Callable, **kwargs: Any) -> Any:
        distributed = cfg.distributed_training
        world_size, context = distributed.distributed_world_size, contextlib.nullcontext()
        if cfg.common.cpu and world_size > 1:
            if distributed.distributed_backend == "nccl":  # the default, for GPUs alone
                distributed.distributed_backend = "gloo"
            # fairseq gives a process of torchrun one of its GPUs.
            devices = 1 if all(name in os.environ for name in _LAUNCHED) else world_size
            context = replaced(torch.cuda, "device_count", lambda: devices)
        try:
            with context:
                return call(cfg, main, **kwargs)
        except (ProcessExitedException, ProcessRaisedException) as error:
            if isinstance(error, ProcessRaisedException) and not _LOST.search(str(error)):
                raise
            reason = str(error).strip().splitlines()[-1]
            raise LostProcessError(_sentence(f"one of {world_size} processes has ended", reason)) from error

    return call_main


def _with_limited_waiting(init: Callable) -> Callable:
    """With ``--heartbeat-timeout``, limits how long a process waits for the others to as many seconds.

    fairseq's own limit interrupts Python code, and not a process that waits within torch.
    """

    def distributed_init(cfg: Any) -> Any:
        seconds = cfg.distributed_training.heartbeat_timeout
        if seconds <= 0 or cfg.common.tpu:
            return init(cfg)
        limit = {"timeout": datetime.timedelta(seconds=seconds)}
        distributed = torch.distributed
        with replaced(distributed, "init_process_group", functools.partial(distributed.init_process_group, **limit)):
            rank = init(cfg)
        with replaced(distributed, "new_group", functools.partial(distributed.new_group, **limit)):
            distributed_utils.get_global_group()  # fairseq keeps it
        return rank

    return distributed_init


def _with_one_sentence(run: Callable) -> Callable:
    """Raises :class:`LostProcessError` for the errors of torch that say that another process is gone."""

    def distributed_main(i: int, main: Callable, cfg: Any, kwargs: dict) -> Any:
        try:
            return run(i, main, cfg, kwargs)
        except (RuntimeError, KeyboardInterrupt) as raised:
            # fairseq's limit interrupts while torch's error is on its way.
            error = raised.__context__ if isinstance(raised, KeyboardInterrupt) else raised
            if not isinstance(error, RuntimeError) or not _LOST.search(f"{type(error).__name__} {error}"):
                raise
            distributed = cfg.distributed_training
            who = f"process {distributed.distributed_rank} of {distributed.distributed_world_size} has lost another one"
            # The first sentence; torch adds advice.
            reason = _PLACE.sub("", str(error).strip()).splitlines()[0].split(". ")[0]
            raise LostProcessError(_sentence(who, reason)) from error

    return distributed_main


def _sentence(who: str, reason: str) -> str:
    return (
        f"{who}: {reason.rstrip('.')}. The output of the lost process says why it ended. Start all of them again; a "
        "training goes on from the last checkpoint of --save-dir."
    )


def _gather_on_cpus(gather: Callable) -> Callable:
    """Gathers objects through memory of the host on machines without a GPU; fairseq would use memory of the GPU."""

    def all_gather_list(data: Any, group: Any = None, max_size: int = 16384) -> list:
        if not torch.cuda.is_available():
            size = max_size * distributed_utils.get_world_size(group or distributed_utils.get_global_group())
            # Where fairseq keeps its buffers.
            keeper = distributed_utils.all_gather_list
            if not hasattr(keeper, "_buffer") or keeper._buffer.numel() < size:
                keeper._buffer, keeper._cpu_buffer = torch.ByteTensor(size), torch.ByteTensor(max_size)
        return gather(data, group, max_size)

    return all_gather_list


def _receive_any_object(broadcast: Callable) -> Callable:
    """Receives any object that the first process sends, such as a checkpoint with its options.

    fairseq calls torch.load for this, which accepts only tensors since torch 2.6. Other objects are safe here, because
    the first process has read the checkpoint with ``weights_only=True``, and processes of one training trust each
    other: :func:`all_gather_list` unpickles, too.
    """

    def broadcast_object(obj: Any, src_rank: int, group: object, dist_device: torch.device) -> Any:
        with replaced(torch, "load", functools.partial(torch.load, weights_only=False)):
            return broadcast(obj, src_rank, group, dist_device)

    return broadcast_object
