"""Trains in two processes that share one device, and compares the weights with those of one process."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from tests.benchmarks.commands import quiet
from tests.benchmarks.figures import Figure
from tests.end_to_end.fixtures import TASK, preprocess
from tests.end_to_end.tiny_corpus import write_corpus
from tests.gpu.device import Device
from tests.gpu.parts import Options, Result
from tests.gpu.processes import OUT_OF_TIME, ended_in_time, fairseq_command
from tree_fairseq.errors import TreeFairseqError

PLUGIN = Path(__file__).resolve().parents[2] / "tree_fairseq"
WAYS = (("nccl", "pytorch_ddp"), ("gloo", "pytorch_ddp"), ("gloo", "legacy_ddp"))
"""Backends of torch.distributed and of fairseq's training, the best first. A CPU has the last."""
DIFFERENCE = 2e-3
LIMIT, QUICK_LIMIT = 40, 240
"""Seconds for one attempt: a backend that does not work may wait for ever. Quick runs are for busy machines."""


class DistributedTrainingFailedError(TreeFairseqError):
    """No backend let two processes train together."""


def run(device: Device, options: Options, result: Result) -> Iterator[None]:
    with tempfile.TemporaryDirectory() as name, quiet():
        folder = Path(name)
        epochs = options.choose(2, 1)
        preprocess(write_corpus(folder / "text", sizes=options.choose((160, 16, 16), (24, 4, 4))), folder / "bin")
        with ThreadPoolExecutor(1) as pool:
            alone = pool.submit(train, device, options, folder, "one", 1, epochs, ("--update-freq", "2"))
            used, refusals = _together(device, options, folder, epochs)
            (finished,) = alone.result()
        if finished.returncode:
            raise DistributedTrainingFailedError(f"one process alone does not train:\n{finished.stdout[-2000:]}")
        result.details = {"backend": used, "refused": refusals}
        together, one = (
            torch.load(folder / path / f"checkpoint{epochs}.pt", map_location="cpu", weights_only=True)
            for path in (used, "one")
        )
    updates = [saved["optimizer_history"][-1]["num_updates"] for saved in (together, one)]
    if updates[0] != updates[1]:
        raise DistributedTrainingFailedError(f"two processes made {updates[0]} updates, and one made {updates[1]}")
    differences = {
        key: (together["model"][key].float() - weight.float()).abs().max().item()
        for key, weight in one["model"].items()
    }
    worst = max(differences, key=differences.__getitem__)
    result.figures = [
        Figure(
            "difference", differences[worst], DIFFERENCE, True,
            f"largest difference of a weight after {updates[0]} updates in two processes on one device", used,
            "one process",
        )
    ]  # fmt: skip
    for backend, said in refusals.items():
        result.notes.append(f"Two processes: {backend} does not let two processes share a device here: {said}")
    result.notes.append(f"Two processes: fairseq's training over {used}.")
    yield


def _together(device: Device, options: Options, folder: Path, epochs: int) -> tuple[str, dict[str, str]]:
    """Trains in two processes; returns the backend that worked and what the others said."""
    refusals: dict[str, str] = {}
    for backend, ddp in WAYS if device.is_gpu else WAYS[-1:]:
        way = f"{backend}, {ddp}"
        flags = ("--distributed-backend", backend, "--ddp-backend", ddp)
        finished = train(device, options, folder, way, 2, epochs, flags)
        if not any(process.returncode for process in finished):
            return way, refusals
        refusals[way] = next(_reason(process) for process in finished if process.returncode)
    raise DistributedTrainingFailedError(f"two processes cannot train together: {refusals}")


def train(
    device: Device, options: Options, folder: Path, name: str, ranks: int, epochs: int, flags: Sequence[str]
) -> list[subprocess.CompletedProcess]:
    """Runs ``fairseq-train`` in one process for each rank, all of them on the same device; returns them finished."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    settings = {
        "--arch": "tree_transformer_tiny", "--optimizer": "adam", "--lr": "1e-3", "--lr-scheduler": "inverse_sqrt",
        "--warmup-updates": 8, "--seed": 7, "--criterion": "label_smoothed_cross_entropy", "--label-smoothing": 0.1,
        # No dropout: each rank draws its own.
        "--dropout": 0, "--batch-size": options.choose(16, 4), "--num-workers": 0, "--max-epoch": epochs,
        "--save-dir": folder / name, "--user-dir": PLUGIN, "--log-format": "simple",
        "--device-id": 0,
    }  # fmt: skip
    command = [*fairseq_command(options.python, "train"), folder / "bin", *TASK, *flags]
    command += [part for setting in settings.items() for part in setting]
    environment = dict(os.environ)
    if device.is_gpu:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
        index = device.torch.index or 0
        environment["CUDA_VISIBLE_DEVICES"] = visible[index] if index < len(visible) and visible[0] else str(index)
        # A refusal comes at once; both processes then end by themselves.
        environment |= {"NCCL_DEBUG": "WARN", "TORCH_NCCL_BLOCKING_WAIT": "1"}
    else:
        command.append("--cpu")
    if ranks > 1:
        # Processes of our own: fairseq would start one for each device.
        command += ["--distributed-no-spawn", "--distributed-init-method", f"tcp://127.0.0.1:{port}"]
        command += ["--distributed-world-size", ranks]

    def start(rank: int) -> subprocess.CompletedProcess:
        own = [*command, "--distributed-rank", rank] if ranks > 1 else command
        return ended_in_time(list(map(str, own)), options.choose(LIMIT, QUICK_LIMIT), environment)

    with ThreadPoolExecutor(ranks) as pool:
        return list(pool.map(start, range(ranks)))


def _reason(process: subprocess.CompletedProcess) -> str:
    if process.returncode == OUT_OF_TIME:
        return "it did not end in time"
    lines = [line.strip() for line in process.stdout.splitlines() if line.strip()]
    telling = [line for line in lines if "Duplicate GPU" in line or "Error" in line]
    return (telling or lines or ["it said nothing"])[-1][:300]
