"""Commands over trained models: their flags are those of ``fairseq-generate`` for the task of the checkpoint."""

from __future__ import annotations

import argparse
import ast
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Callable

import numpy as np
import torch
from fairseq import checkpoint_utils, options, utils

from tree_fairseq import hub
from tree_fairseq.errors import CheckpointError, InputError
from tree_fairseq.support.options import flag_of, refuse_flags

# Flags that say where things are or how batches are loaded; all others replace options of checkpoints.
_NOT_OPTIONS = frozenset(
    "data path task arch user_dir input gen_subset buffer_size cpu fp16 model_overrides num_workers output".split()
)
# These need references or typed constraints, divide the input among processes, or have another name here.
_OF_GENERATE = (
    "constraints prefix_size replace_unk score_reference lm_path results_path "
    "num_shards shard_id distributed_world_size"
).split()


def parse_flags(
    add_flags: Callable[[argparse.ArgumentParser], Collection[str]], arguments: Sequence[str]
) -> tuple[argparse.Namespace, dict[str, Any]]:
    """Parses fairseq's flags for the task of ``--path``, and those of a command.

    ``add_flags`` adds the flags of the command to a parser, and returns their names. Returns all flags, with the names
    of the ``given`` ones, and those that replace options of the checkpoints.
    """
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--path")
    task = task_of(early.parse_known_args(arguments)[0].path)
    parsers = [options.get_interactive_generation_parser(default_task=task) for _ in range(2)]
    own = [add_flags(parser) for parser in parsers][0]
    # The help begins with the flags of the command; fairseq's are some 150, and would fill the usage, too.
    groups = parsers[0]._action_groups
    groups.insert(0, groups.pop())
    parsers[0].usage = "%(prog)s [DATA] --path CHECKPOINT [flags]"
    args = options.parse_args_and_arch(parsers[0], input_args=arguments)
    given = vars(options.parse_args_and_arch(parsers[1], input_args=arguments, suppress_defaults=True))
    args.given = set(given)
    if args.task != task:
        raise InputError(f"{args.path} was trained with --task {task}", hint="Leave --task out.")
    overrides = {name: value for name, value in given.items() if name not in _NOT_OPTIONS.union(own)}
    return args, {**overrides, **ast.literal_eval(args.model_overrides)}


def refuse_flags_of_generate(args: argparse.Namespace, program: str) -> None:
    """Raises InputError about the first flag that ``fairseq-generate`` alone reads."""
    flags = {flag_of(name): name in args.given for name in _OF_GENERATE}
    refuse_flags(flags, program, advice="use fairseq-generate")


def task_of(path: str | None) -> str:
    """Reads under which task the first checkpoint of a path was trained; fairseq's default without such a file."""
    first = None if path is None else path.split(os.pathsep)[0]
    if first is None or not Path(first).is_file():
        return "translation"
    try:
        return checkpoint_utils.load_checkpoint_to_cpu(first)["cfg"]["task"]["_name"]
    except (KeyError, TypeError):
        raise CheckpointError(f"{first} is not a checkpoint of fairseq: it does not say of which task it is") from None


def load_models(path: str, data: str, args: argparse.Namespace, overrides: dict[str, Any]) -> hub.TreeHubInterface:
    """Loads a checkpoint, or an ensemble joined by ``:``, with the folder of its data, to run as the flags say."""
    np.random.seed(args.seed)
    utils.set_torch_seed(args.seed)  # of sampling
    files = [Path(part).absolute() for part in path.split(os.pathsep)]
    interface = hub.from_pretrained(files[0].parent, os.pathsep.join(map(str, files)), data, **overrides)
    interface = interface.half() if args.fp16 else interface
    return interface if args.cpu or not torch.cuda.is_available() else interface.cuda()
