"""What the package changes about training in several processes, and that fairseq still needs it.

That processes train is in training_steps/test_ranks.py, and that they end in faults/test_38_lost_process.py.
"""

from __future__ import annotations

import inspect
import io
from types import SimpleNamespace

import pytest
import torch
from fairseq.distributed import utils
from omegaconf import DictConfig
from torch.multiprocessing import ProcessExitedException, ProcessRaisedException
from torch.nn.parallel import DistributedDataParallel

from tree_fairseq.errors import LostProcessError, MissingTreesError
from tree_fairseq.repairs import distributed

GLOO = "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:4711"


@pytest.fixture
def group(tmp_path):
    """A group of this process alone."""
    torch.distributed.init_process_group("gloo", f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()
    utils.get_global_group.__dict__.pop("_global_group", None)


def configuration(**distributed_training):
    return SimpleNamespace(
        common=SimpleNamespace(cpu=True, tpu=False),
        distributed_training=SimpleNamespace(
            **{
                "distributed_world_size": 2, "distributed_backend": "nccl", "distributed_rank": 1,
                "heartbeat_timeout": -1, **distributed_training,
            }
        ),
    )  # fmt: skip


def run(error: BaseException):
    """What ``distributed_main`` makes of an error of the training."""

    def main(i, main, cfg, kwargs):
        raise error

    return distributed._with_one_sentence(main)(0, None, configuration(), {})


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError(GLOO),
        torch.distributed.DistBackendError("NCCL error: remote process exited or there was a network error"),
        torch.distributed.DistStoreError("Timed out after 601 seconds waiting for clients. 1/2 clients joined."),
    ],
    ids=["gloo", "nccl", "store"],
)
def test_a_lost_process_is_one_sentence(error):
    with pytest.raises(LostProcessError, match="^process 1 of 2 has lost another one: ") as caught:
        run(error)
    assert "\n" not in str(caught.value) and "third_party" not in str(caught.value)
    # fairseq's own limit interrupts a process that has just had such an error.
    interrupt = KeyboardInterrupt()
    interrupt.__context__ = error
    with pytest.raises(LostProcessError):
        run(interrupt)


@pytest.mark.parametrize("error", [RuntimeError("out of memory"), KeyboardInterrupt(), MissingTreesError("none")])
def test_other_errors_stay_as_they_are(error):
    with pytest.raises(type(error)) as caught:
        run(error)
    assert caught.value is error


def test_a_process_that_fairseq_started_is_killed():
    def call(error):
        def call_main(cfg, main):
            raise error

        return distributed._on_cpus_too(call_main)(configuration(), None)

    killed = ProcessExitedException("process 1 terminated with signal SIGKILL", 1, 2, -9, "SIGKILL")
    with pytest.raises(
        LostProcessError, match="one of 2 processes has ended: process 1 terminated with signal SIGKILL"
    ):
        call(killed)
    # The first to tell may be one that is left.
    left = ProcessRaisedException(f"-- Process 0 terminated with the following error:\nRuntimeError: {GLOO}", 0, 1)
    with pytest.raises(LostProcessError, match="Connection closed by peer"):
        call(left)
    with pytest.raises(ProcessRaisedException):
        call(ProcessRaisedException("Traceback\nValueError: something else", 0, 1))


def test_processes_start_without_gpus(monkeypatch):
    seen = []

    def call_main(cfg, main):
        seen.append((cfg.distributed_training.distributed_backend, torch.cuda.device_count()))

    call, count = distributed._on_cpus_too(call_main), torch.cuda.device_count()
    call(configuration(), None)
    for name in distributed._LAUNCHED:
        monkeypatch.setenv(name, "1")
    call(configuration(distributed_backend="mpi"), None)
    call(configuration(distributed_world_size=1), None)
    assert seen == [("gloo", 2), ("mpi", 1), ("nccl", count)] and torch.cuda.device_count() == count


@pytest.mark.skipif(torch.cuda.is_available(), reason="about machines without a GPU")
def test_fairseq_still_needs_gpus(group):
    with pytest.raises((TypeError, RuntimeError, AssertionError)):
        utils.all_gather_list.__wrapped__({"loss": 1}, max_size=1000)
    assert utils.all_gather_list({"loss": 1}, max_size=1000) == [{"loss": 1}]
    layer = torch.nn.Linear(2, 2)
    with pytest.raises(ValueError, match="device_ids"):
        DistributedDataParallel(layer, device_ids=[0], output_device=0)
    assert distributed.DataParallelOnAnyDevice(layer, device_ids=[0], output_device=0).device_ids is None
    # 0.12.3 gives processes of torchrun their GPUs by this.
    source = inspect.getsource(utils._infer_torch_distributed_launch_init)
    assert "% torch.cuda.device_count()" in source or "device_id" not in source


def test_fairseq_still_waits_and_receives_as_torch_likes():
    assert "timeout" not in inspect.getsource(utils.distributed_init.__wrapped__)
    assert "weights_only" not in inspect.getsource(utils._broadcast_object_slow.__wrapped__)
    if torch.__version__ >= (2, 6):
        buffer = io.BytesIO()
        torch.save({"cfg": DictConfig({"seed": 1})}, buffer)
        buffer.seek(0)
        with pytest.raises(Exception, match="omegaconf"):
            torch.load(buffer)


def test_a_limit_to_waiting(tmp_path):
    cfg = configuration(heartbeat_timeout=7)
    limits = []

    def init(cfg):
        store = f"file://{tmp_path / 'store'}"
        torch.distributed.init_process_group("gloo", store, rank=0, world_size=1)
        return 0

    try:
        assert distributed._with_limited_waiting(init)(cfg) == 0
        for group in (torch.distributed.group.WORLD, utils.get_global_group()):
            limits.append(group._get_backend(torch.device("cpu")).options._timeout.total_seconds())
    finally:
        torch.distributed.destroy_process_group()
        utils.get_global_group.__dict__.pop("_global_group", None)
    assert limits == [7, 7]
