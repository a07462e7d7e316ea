"""Runs fairseq's commands with the plugin in this process."""

from __future__ import annotations

import contextlib
import logging
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

import tree_fairseq
from tree_fairseq.tasks.translation import TreeTranslationTask


def preprocess_arguments(prefix: Path, destination: Path, *flags: str) -> Namespace:
    """Returns arguments of ``fairseq-preprocess`` for an English-German training set; ours are allowed."""
    plugin = ["--user-dir", str(Path(tree_fairseq.__file__).parent), "--task", "tree_translation"]
    files = ["-s", "en", "-t", "de", "--trainpref", str(prefix), "--destdir", str(destination)]
    return options.get_preprocessing_parser().parse_args([*plugin, *files, *flags])


def training_task(folder: Path) -> TreeTranslationTask:
    """Returns the task of ``fairseq-train`` on a preprocessed folder, with the training set loaded."""
    flags = [str(folder), *"-s en -t de --task tree_translation --arch tree_transformer_iwslt_de_en".split()]
    args = options.parse_args_and_arch(options.get_training_parser(), input_args=flags)
    task = TreeTranslationTask.setup_task(convert_namespace_to_omegaconf(args).task)
    task.load_dataset("train")
    return task


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keeps the log out of the tables."""
    logging.disable(logging.INFO)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
