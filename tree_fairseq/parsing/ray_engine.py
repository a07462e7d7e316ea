"""``--engine ray``: shards of a corpus are parsed by the machines of a Ray cluster.

Ray (Moritz et al. 2018, https://docs.ray.io) runs a task on each free core or GPU of its machines, in a process that
keeps its parser for the next task, and repeats the tasks of a process or machine that was lost. Lines and trees travel
through its object store, so the machines share no folder; they have this package and the models of the parser.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tree_fairseq.errors import InputError, WorkerDiedError
from tree_fairseq.support.options import refuse_unread
from tree_fairseq.support.processes import ProcessPool, take_device
from tree_fairseq.support.python_versions import import_library

# One shard is being parsed while the next one waits, on each core or GPU; no more are in the object store.
_TASKS_AHEAD = 2
# Of the same shard, after the loss of its process or machine.
_REPETITIONS = 5


def pool_for(args: argparse.Namespace) -> ProcessPool:
    """Returns the pool of ``--engine``, ``--ray-address`` and ``--workers``; raises InputError for what is not read."""
    if args.engine == "ray":
        given = {"parse_cache"} if args.parse_cache else set()
        refuse_unread(given, {"parse_cache": "a cache serves one machine"}, "--engine ray")
        return RayPool(args.workers, args.ray_address)
    refuse_unread({"ray_address"} if args.ray_address else (), {"ray_address": "it goes with --engine ray"})
    return ProcessPool(args.workers)


class RayPool(ProcessPool):
    """A pool whose parsing processes are those of a Ray cluster: of this machine alone, without an ``address``.

    ``ray.init`` takes the address: ``auto``, ``HOST:PORT`` or ``ray://HOST:PORT``. ``workers`` do other work here.
    """

    is_remote = True

    def __init__(self, workers: int = 1, address: str | None = None):
        super().__init__(workers)
        self._ray: Any = import_library("ray", "ray", "--engine ray")
        own = {"address": address} if address else {"address": "local", "num_cpus": workers, "include_dashboard": False}
        try:
            self._ray.init(**own, logging_level="ERROR", log_to_driver=False)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise InputError(f"--ray-address {address}: {error}", hint="`ray status` shows whether it runs.") from error

    def free(self, kind: str) -> int:
        """Returns how many CPUs or GPUs the cluster has now; one if it waits for its first machine."""
        return max(1, int(self._ray.cluster_resources().get(kind, 0)))

    def stream(
        self, function: Callable, calls: Iterable[tuple[Any, Any]], work: str, devices: Sequence[str] | None = None
    ) -> Iterator[tuple[Any, Any]]:
        """Yields the results of an importable function in the order in which the cluster finishes them.

        ``devices`` other than the CPU stand for a GPU for each task: Ray shows each process its own as the first one.
        """
        is_cpu = not devices or devices[0] == "cpu"
        resources = {"num_cpus": 1} if is_cpu else {"num_cpus": 1, "num_gpus": 1}
        answer = self._ray.remote(max_retries=_REPETITIONS, **resources)(_answer)
        source, contexts = iter(calls), dict[Any, Any]()
        while True:
            # The cluster may have grown.
            while len(contexts) < _TASKS_AHEAD * self.free("CPU" if is_cpu else "GPU"):
                if (call := next(source, None)) is None:
                    break
                contexts[answer.remote(function, call[0], "cpu" if is_cpu else "cuda:0")] = call[1]
            if not contexts:
                return
            # Other results stay where they are until they are asked for.
            [done], _ = self._ray.wait([*contexts], num_returns=1, fetch_local=False)
            try:
                value, error = self._ray.get(done)
            except self._ray.exceptions.RayError as lost:
                raise WorkerDiedError(
                    f"a process of Ray that {work} was lost {_REPETITIONS + 1} times with the same shard "
                    f"({type(lost).__name__}). What is done is kept. {lost}"
                ) from lost
            if error is not None:
                raise error
            yield contexts.pop(done), value

    def __exit__(self, *exception: object) -> None:
        self._ray.shutdown()
        super().__exit__(*exception)


def _answer(function: Callable, task: Any, device: str) -> tuple[Any, Exception | None]:
    """Calls a function in a process of Ray; its error keeps its class as a value."""
    take_device(device)
    try:
        return function(task), None
    except Exception as error:
        return None, error
