"""``fairseq-generate --raw FILE``: the lines of a text file take the place of a split of the folder.

They are read as by ``fairseq-interactive``, all at once, so that batches are made of sentences of similar length.
"""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

from fairseq.data import FairseqDataset
from fairseq.tasks import FairseqTask
from omegaconf import open_dict

from tree_fairseq.errors import InputError
from tree_fairseq.new_text.line_guard import LineGuard, NothingReadableError, empty_lines


def check_raw_file(path: Path, cfg: Any) -> None:
    """Raises InputError for a file that is missing or empty; makes fairseq translate every line of it."""
    if not path.is_file():
        raise InputError("there is no such file", path)
    if not path.stat().st_size:
        raise InputError("the file is empty", path)
    with open_dict(cfg):
        # With a larger multiple, fairseq leaves the sentences out that do not fill the last batch.
        cfg.dataset.required_batch_size_multiple = 1


def read_raw_file(task: FairseqTask, path: Path, cfg: Any, guard: LineGuard, output: IO[str]) -> None:
    """Makes a task load the lines of a file, whatever split it is asked for.

    They are tokenised and split as its folder says, or as fairseq's flags in the configuration say. For faulty lines,
    too, ``output`` gets the lines that fairseq prints for a sentence. If all lines are faulty, the task raises
    NothingReadableError.
    """
    guard.watch(task)
    iterate = task.get_batch_iterator

    def load_dataset(split: str, *args: Any, **kwargs: Any) -> None:
        steps = [step for step in (task.build_tokenizer(cfg.tokenizer), task.build_bpe(cfg.bpe)) if step is not None]

        def encode(line: str) -> str:
            for step in steps:
                line = step.encode(line)
            return line

        with open(path, "rb") as file:
            lines = guard.take(list(file))
        tokens, lengths = task.get_interactive_tokens_and_lengths(lines, encode)
        task.datasets[split] = task.build_dataset_for_inference(tokens, lengths)

    def get_batch_iterator(dataset: FairseqDataset, *args: Any, **options: Any):
        iterator = iterate(dataset, *args, **options)
        if len(guard.faulty) == guard.lines_read:
            raise NothingReadableError("no line can be read", path)  # fairseq's summary would divide by zero
        if not options.get("shard_id"):
            output.writelines(map(empty_lines, guard.faulty))
        return iterator

    task.load_dataset = load_dataset
    task.get_batch_iterator = get_batch_iterator
