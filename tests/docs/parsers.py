"""The argument parsers of fairseq's commands with the plugin, and of the package's own, as the commands build them."""

from __future__ import annotations

import argparse
import functools
import importlib
from collections.abc import Sequence
from unittest import mock

from fairseq import options
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.tasks import TASK_REGISTRY

import tree_fairseq.plugin  # noqa: F401  (registers everything)
from tree_fairseq.__main__ import COMMANDS


class Parsing(BaseException):
    """A command is about to parse its arguments; its parser."""


def _fairseq_parser(kind: str, arguments: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of a command of fairseq, with the flags of the task, model and so on that the arguments name."""
    parser = getattr(options, f"get_{kind}_parser")()
    options.parse_args_and_arch(parser, list(arguments))
    return parser


def _own_parser(name: str) -> argparse.ArgumentParser | None:
    """The parser of a command of ours, caught before it parses; None if it has none."""
    parse = argparse.ArgumentParser.parse_known_args

    def stop(self, *args, **kwargs):
        flags = {flag for action in self._actions for flag in action.option_strings}
        # These are first looked for alone, by fairseq and by commands that read checkpoints.
        if flags and flags not in ({"--user-dir"}, {"--path"}):
            raise Parsing(self)
        return parse(self, *args, **kwargs)

    module, function = COMMANDS[name][0].split(":")
    try:
        with mock.patch.object(argparse.ArgumentParser, "parse_known_args", stop):
            getattr(importlib.import_module(f"tree_fairseq.{module}"), function)([])
    except Parsing as parsing:
        return parsing.args[0]
    return None


def _models() -> list[str]:
    found = {
        model.__name__: arch
        for arch, model in ARCH_MODEL_REGISTRY.items()
        if model.__module__.startswith("tree_fairseq")
    }
    return sorted(found.values())


@functools.cache
def known_parsers() -> dict[str, list[argparse.ArgumentParser]]:
    """The parsers of every command, by its name; those of training with each task, model and criterion of ours."""
    tasks = sorted(name for name, task in TASK_REGISTRY.items() if task.__module__.startswith("tree_fairseq"))
    criteria = ("label_smoothed_cross_entropy", "tree_classification", "tree_regression", "slot_kl_divergence")
    data, stock = ["data-bin", "--task"], ["data-bin", "--task", "translation", "--arch", "transformer"]
    training = [[*data, task, "--arch", "transformer"] for task in tasks]
    training += [[*data, "translation", "--arch", arch] for arch in _models()]
    training += [[*stock, "--criterion", name] for name in criteria]
    training += [[*stock, "--optimizer", "adam", "--lr-scheduler", "inverse_sqrt"]]
    generation = [[*data, task, "--path", "model.pt"] for task in tasks]
    more = ["--bpe subword_nmt", "--bpe sentencepiece", "--bpe pretrained_pieces", "--tokenizer moses"]
    more += ["--scoring sacrebleu"]
    generation += [[*data, "translation", "--path", "model.pt", *flags.split()] for flags in more]
    found = {
        "fairseq-preprocess": [options.get_preprocessing_parser()],
        "fairseq-train": [_fairseq_parser("training", arguments) for arguments in training],
        "fairseq-generate": [_fairseq_parser("generation", arguments) for arguments in generation],
        "fairseq-interactive": [_fairseq_parser("interactive_generation", arguments) for arguments in generation],
    }
    own = {f"tree-fairseq {name}": _own_parser(name) for name in COMMANDS}
    return {**found, **{name: [parser] for name, parser in own.items() if parser}}
