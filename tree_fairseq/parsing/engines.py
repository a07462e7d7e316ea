"""Where a corpus is parsed: in processes of this machine, by a Ray cluster, or by an array of Slurm jobs."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence

from tree_fairseq.support.options import refuse_unread
from tree_fairseq.support.processes import ProcessPool


def pool_for(args: argparse.Namespace) -> ProcessPool:
    """Returns the pool of ``--engine``, ``--ray-address`` and ``--workers``; raises InputError for what is not read."""
    if args.engine == "ray":
        given = {"parse_cache"} if args.parse_cache else set()
        refuse_unread(given, {"parse_cache": "a cache serves one machine"}, "--engine ray")
        from tree_fairseq.parsing.ray_engine import RayPool

        return RayPool(args.workers, args.ray_address)
    refuse_unread({"ray_address"} if args.ray_address else (), {"ray_address": "it goes with --engine ray"})
    return ProcessPool(args.workers)


_SCRIPT = """#!/bin/sh
#SBATCH --array=0-{last} --cpus-per-task=1 --requeue
# Give this to sbatch. When its jobs have ended: tree-fairseq parse --join {output}
exec tree-fairseq parse {arguments} --shard "$SLURM_ARRAY_TASK_ID/{count}"
"""


def slurm_script(arguments: Sequence[str], output: str, count: int) -> str:
    """Returns the script of an array of jobs, each of which parses one of ``count`` shards.

    ``arguments`` are those of ``tree-fairseq parse``, apart from ``--engine`` and ``--workers``, which are left out.
    """
    own = argparse.ArgumentParser(add_help=False)
    own.add_argument("--engine")
    own.add_argument("--workers")
    rest = shlex.join(own.parse_known_args(arguments)[1])
    return _SCRIPT.format(last=count - 1, count=count, arguments=rest, output=shlex.quote(output))
