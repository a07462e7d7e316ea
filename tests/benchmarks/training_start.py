"""``python -m tests.benchmarks.training_start FOLDER TASK`` prints time to the first batch, the loader's memory."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from fairseq import options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

import tree_fairseq  # noqa: F401  (both tasks pay for the import, before the clock starts)

_ARCHITECTURES = {"tree_translation": "tree_transformer_iwslt_de_en", "translation": "transformer_iwslt_de_en"}


def main(folder: str, name: str) -> None:
    """Loads the training set, cuts it into batches and takes the first from one loading process."""
    flags = [folder, "-s", "en", "-t", "de", "--task", name, "--arch", _ARCHITECTURES[name]]
    args = options.parse_args_and_arch(options.get_training_parser(), input_args=flags)
    started = time.process_time()
    task = tasks.setup_task(convert_namespace_to_omegaconf(args).task)
    task.load_dataset("train")
    epoch = task.get_batch_iterator(task.dataset("train"), max_tokens=4000, max_positions=(1024, 1024), num_workers=1)
    batches = epoch.next_epoch_itr(shuffle=True)
    next(batches)
    seconds = time.process_time() - started
    loaders = [int(pid) for pid in Path("/proc/self/task").glob("*/children") for pid in pid.read_text().split()]
    print(json.dumps({"seconds": seconds, "loader": max(map(anonymous_memory, loaders))}), flush=True)


def anonymous_memory(pid: int) -> int:
    """Returns the resident memory of a process that is not that of mapped files, in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))


if __name__ == "__main__":
    main(*sys.argv[1:])
