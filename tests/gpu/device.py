"""The device that is checked: it moves batches, times work and measures memory, on a GPU and on the CPU alike."""

from __future__ import annotations

import gc
import platform
import time
from collections.abc import Mapping
from typing import Callable

import torch
from fairseq import utils
from torch import Tensor

from tests.benchmarks.measuring import Timing, no_garbage_collection, old_objects_kept, peak_bytes

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class Device:
    """A device of torch."""

    def __init__(self, name: str):
        self.torch = torch.device(name)
        self.is_gpu = self.torch.type == "cuda"
        if self.is_gpu and self.torch.index is None:
            self.torch = torch.device("cuda", 0)
        if self.is_gpu:
            torch.cuda.set_device(self.torch)
            # Ratios and differences in fp32 are those of fp32, not of TF32.
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False

    def precisions(self) -> dict[str, torch.dtype]:
        """Returns the number formats that the device computes with, by name."""
        lacks_bf16 = self.is_gpu and not torch.cuda.is_bf16_supported()
        return {name: dtype for name, dtype in PRECISIONS.items() if not (lacks_bf16 and name == "bf16")}

    def describe(self) -> dict:
        found = {"name": platform.processor() or platform.machine(), "torch": torch.__version__}
        if self.is_gpu:
            properties = torch.cuda.get_device_properties(self.torch)
            found |= {"name": properties.name, "memory_gb": round(properties.total_memory / 1e9, 1)}
            found |= {"capability": f"{properties.major}.{properties.minor}", "cuda": torch.version.cuda}
        return found

    def move(self, batch, dtype: torch.dtype = torch.float32):
        """Copies a batch to the device; numbers with a fraction become ``dtype``, as fairseq's trainer makes them."""

        def moved(tensor: Tensor) -> Tensor:
            wanted = dtype if tensor.dtype == torch.float32 else tensor.dtype
            return tensor.to(self.torch, wanted, non_blocking=True)

        return utils.apply_to_sample(moved, batch)

    def synchronise(self) -> None:
        if self.is_gpu:
            torch.cuda.synchronize(self.torch)

    def seconds(self, work: Callable[[], object], calls: int) -> tuple[float, float]:
        """Returns the seconds of one call by the device's clock, and of the processor, on average over some calls.

        The calls follow each other without waiting, as the steps of a training do. The device's clock runs from the
        first to the last, with all pauses in which it waits for the host.
        """
        self.synchronise()
        with no_garbage_collection():
            processor = time.process_time()
            if self.is_gpu:
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                begin.record()
                for _ in range(calls):
                    work()
                end.record()
                end.synchronize()
                elapsed = begin.elapsed_time(end) / 1e3
            else:
                start = time.perf_counter()
                for _ in range(calls):
                    work()
                elapsed = time.perf_counter() - start
            return elapsed / calls, (time.process_time() - processor) / calls

    def side_by_side(
        self, candidates: Mapping[str, Callable[[], object]], rounds: int, calls: int, warm_up: int
    ) -> dict[str, Timing]:
        """Times candidates in turn, in every second round in reverse order.

        In calls of warming up before them, kernels are chosen and memory is reserved.
        """
        names, taken = list(candidates), {name: [] for name in candidates}
        for name in names:
            for _ in range(warm_up):
                candidates[name]()
        self.synchronise()
        with old_objects_kept():
            for turn in range(rounds):
                for name in reversed(names) if turn % 2 else names:
                    taken[name].append(self.seconds(candidates[name], calls))
        return {name: Timing(*zip(*values)) for name, values in taken.items()}

    def peak_bytes(self, work: Callable[[], object]) -> int:
        """Returns the most memory that a call has in use at once, minus what was in use before it."""
        if not self.is_gpu:
            return peak_bytes(work)
        gc.collect()
        self.synchronise()
        torch.cuda.reset_peak_memory_stats(self.torch)
        before = torch.cuda.memory_allocated(self.torch)
        work()
        self.synchronise()
        return torch.cuda.max_memory_allocated(self.torch) - before

    def free(self) -> None:
        gc.collect()
        if self.is_gpu:
            torch.cuda.empty_cache()

    def memory(self) -> int:
        """Returns the bytes of the device's memory that are free; 2 GB stand for the memory of a CPU."""
        self.free()
        return torch.cuda.mem_get_info(self.torch)[0] if self.is_gpu else 2 * 10**9
