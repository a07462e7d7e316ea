"""The argument parsers of fairseq's commands with the plugin, and of the package's own, as the commands build them."""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import io
from collections.abc import Iterator, Sequence

from fairseq import options
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.tasks import TASK_REGISTRY

import tree_fairseq.plugin  # noqa: F401  (registers everything)
from tree_fairseq.__main__ import COMMANDS

FAIRSEQ = {
    "fairseq-preprocess": "get_preprocessing_parser",
    "fairseq-train": "get_training_parser",
    "fairseq-generate": "get_generation_parser",
    "fairseq-interactive": "get_interactive_generation_parser",
}


class Parsed(BaseException):
    """A command has parsed its arguments; its parser."""


class WrongArguments(Exception):
    """A command refuses its arguments, with its message."""


@contextlib.contextmanager
def _stopping_after_parsing() -> Iterator[None]:
    """Makes commands stop when their arguments are parsed."""
    parse = argparse.ArgumentParser.parse_args

    def parse_and_stop(self, *args, **kwargs):
        parse(self, *args, **kwargs)
        raise Parsed(self)

    argparse.ArgumentParser.parse_args = parse_and_stop
    try:
        yield
    finally:
        argparse.ArgumentParser.parse_args = parse


def parser_of(program: str, arguments: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of a command, after it has parsed the arguments.

    Args:
        program: such as ``fairseq-train`` or ``tree-fairseq check``
        arguments: of the command line

    Raises:
        WrongArguments: the command refuses them
    """
    stream = io.StringIO()
    try:
        with contextlib.redirect_stderr(stream), contextlib.redirect_stdout(stream), _stopping_after_parsing():
            if program in FAIRSEQ:
                parser = getattr(options, FAIRSEQ[program])()
                if program == "fairseq-preprocess":
                    parser.parse_args(list(arguments))
                options.parse_args_and_arch(parser, list(arguments))
            else:
                module, function = COMMANDS[program.rpartition(" ")[2]][0].split(":")
                getattr(importlib.import_module(f"tree_fairseq.{module}"), function)(list(arguments))
    except Parsed as parsed:
        return parsed.args[0]
    except SystemExit:
        raise WrongArguments(stream.getvalue().strip().splitlines()[-1]) from None
    raise WrongArguments(f"{program} parses no arguments")


def _models() -> list[str]:
    """An architecture of each model of the package."""
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
    data = ["data-bin", "--task"]
    criteria = ("label_smoothed_cross_entropy", "tree_classification", "tree_regression", "slot_kl_divergence")
    training = [[*data, task, "--arch", "transformer"] for task in tasks]
    training += [[*data, "translation", "--arch", arch] for arch in _models()]
    training += [[*data, "translation", "--arch", "transformer", "--criterion", name] for name in criteria]
    training += [
        [*data, "translation", "--arch", "transformer", "--optimizer", "adam", "--lr-scheduler", "inverse_sqrt"]
    ]
    generation = [[*data, task, "--path", "model.pt"] for task in tasks]
    generation += [
        [*data, "translation", "--path", "model.pt", *more]
        for more in (
            ("--bpe", "subword_nmt"),
            ("--bpe", "sentencepiece"),
            ("--bpe", "pretrained_pieces"),
            ("--tokenizer", "moses"),
            ("--scoring", "sacrebleu"),
        )
    ]
    found = {
        "fairseq-preprocess": [parser_of("fairseq-preprocess", ["--source-lang", "en"])],
        "fairseq-train": [parser_of("fairseq-train", arguments) for arguments in training],
        "fairseq-generate": [parser_of("fairseq-generate", arguments) for arguments in generation],
        "fairseq-interactive": [parser_of("fairseq-interactive", arguments) for arguments in generation],
    }
    for name in COMMANDS:
        with contextlib.suppress(WrongArguments):
            found[f"tree-fairseq {name}"] = [_parser_without_arguments(f"tree-fairseq {name}")]
    return found


def _parser_without_arguments(program: str) -> argparse.ArgumentParser:
    """The parser of a command of ours, caught before it parses."""
    parse = argparse.ArgumentParser.parse_known_args

    def stop(self, *args, **kwargs):
        flags = {flag for action in self._actions for flag in action.option_strings}
        # fairseq first looks for this one alone.
        if flags and flags != {"--user-dir"}:
            raise Parsed(self)
        return parse(self, *args, **kwargs)

    argparse.ArgumentParser.parse_known_args = stop
    try:
        return parser_of(program, [])
    finally:
        argparse.ArgumentParser.parse_known_args = parse
