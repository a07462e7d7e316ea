"""``fairseq-generate --raw FILE``: the lines of a text file take the place of a split of the folder.

They are read as by ``fairseq-interactive``, all at once, so that batches are made of sentences of similar length.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairseq.tasks import FairseqTask
from omegaconf import open_dict

from tree_fairseq.errors import InputError
from tree_fairseq.trees.text import inspect_text, read_lines
from tree_fairseq.trees.tree import Forest


def check_raw_file(path: Path, cfg: Any) -> None:
    """Raises InputError for a file that is missing, empty or no text; makes fairseq translate every line of it."""
    if not inspect_text(path).lines:
        raise InputError("the file is empty", path)
    with open_dict(cfg):
        # With a larger multiple, fairseq leaves the sentences out that do not fill the last batch.
        cfg.dataset.required_batch_size_multiple = 1


def read_raw_file(task: FairseqTask, path: Path, cfg: Any, forests: list[Forest] | None = None) -> None:
    """Makes a task load the lines of a file, whatever split it is asked for.

    They are tokenised and split as its folder says, or as fairseq's flags in the configuration say. If the task reads
    trees, those of the lines are added to ``forests``.
    """

    def load_dataset(split: str, *args: Any, **kwargs: Any) -> None:
        steps = [step for step in (task.build_tokenizer(cfg.tokenizer), task.build_bpe(cfg.bpe)) if step is not None]

        def encode(line: str) -> str:
            for step in steps:
                line = step.encode(line)
            return line

        lines = list(read_lines(path))
        if forests is not None and hasattr(task, "source_forests"):
            forests.extend(task.source_forests(list(lines), encode))
        tokens, lengths = task.get_interactive_tokens_and_lengths(lines, encode)
        task.datasets[split] = task.build_dataset_for_inference(tokens, lengths)

    task.load_dataset = load_dataset
