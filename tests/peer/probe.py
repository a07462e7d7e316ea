"""All that a user of stock fairseq sees, as JSON: ``python -m tests.peer.probe FOLDER OUTPUT [--plugin]``.

Run in two processes, with the plugin and without, it gives the same values, but for what the plugin adds.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import enum
import hashlib
import inspect
import io
import json
import logging
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

TINY = (
    *("--encoder-embed-dim", "16", "--encoder-ffn-embed-dim", "16", "--encoder-layers", "1"),
    *("--decoder-embed-dim", "16", "--decoder-ffn-embed-dim", "16", "--decoder-layers", "1"),
    *("--encoder-attention-heads", "2", "--decoder-attention-heads", "2"),
)
PARSERS = ("preprocessing", "training", "generation", "interactive_generation", "eval_lm", "validation")


def plain(value: object) -> object:
    """A value as JSON; functions and classes by name."""
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, argparse.Namespace):
        return plain(vars(value))
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, (str, int, float, bool, type(None))) and not isinstance(value, enum.Enum):
        return value
    if inspect.isclass(value) or inspect.isfunction(value):
        return f"{value.__module__}.{value.__qualname__}"
    return repr(value)


def registries() -> dict:
    """All registries of fairseq: what stands under each name."""
    from fairseq import criterions, models, optim, scoring, tasks
    from fairseq.data import encoders
    from fairseq.optim import lr_scheduler
    from fairseq.registry import REGISTRIES

    del criterions, optim, scoring, encoders, lr_scheduler  # importing them fills the registries
    found = {name: registry["registry"] for name, registry in REGISTRIES.items()}
    names = ("MODEL_REGISTRY", "ARCH_MODEL_REGISTRY", "ARCH_CONFIG_REGISTRY", "ARCH_MODEL_NAME_REGISTRY")
    found.update({name: getattr(models, name) for name in names})
    found.update(tasks=tasks.TASK_REGISTRY, configs=tasks.TASK_DATACLASS_REGISTRY)
    return plain(found)


def arguments() -> dict:
    """Each argument of each command, and of each task and architecture: default, choices, type, and number."""
    from fairseq import options

    found: dict = {}
    for name in PARSERS:
        # A default of one parser is not one of another.
        parser = getattr(options, f"get_{name}_parser")()
        found[name] = {}
        for action in parser._actions:
            choices = action.choices and list(action.choices)
            facts = [action.dest, action.default, choices, action.type, action.nargs, action.required, action.help]
            found[name][" ".join(action.option_strings) or action.dest] = plain(facts)
    return found


def _default(field: dataclasses.Field) -> object:
    return "missing" if field.default is dataclasses.MISSING else field.default


def settings() -> dict:
    """What architectures, tasks and criteria make of a command line with nothing else in it."""
    from fairseq import criterions, models, options, tasks

    found = {}

    def parse(*given: str) -> object:
        with contextlib.redirect_stderr(io.StringIO()):
            try:
                return plain(options.parse_args_and_arch(options.get_training_parser(), ["data", *given]))
            except (SystemExit, Exception) as error:  # what needs flags or libraries, with the plugin or without
                return f"{type(error).__name__}"

    for arch in ("transformer", "transformer_iwslt_de_en", "lstm", "fconv", "lightconv", "transformer_lm", "roberta"):
        found[arch] = parse("--arch", arch)
    for task in ("translation", "language_modeling", "masked_lm", "sentence_prediction", "translation_lev"):
        found[task] = parse("--task", task, "--arch", "transformer")
    for name in ("cross_entropy", "label_smoothed_cross_entropy", "adaptive_loss", "composite_loss"):
        found[name] = parse("--criterion", name, "--arch", "transformer")
    values = argparse.Namespace
    for arch, configure in models.ARCH_CONFIG_REGISTRY.items():
        if configure.__module__.startswith("fairseq."):
            given = values()
            with contextlib.suppress(Exception):
                configure(given)
            found[f"defaults of {arch}"] = plain(given)
    for name, config in (*tasks.TASK_DATACLASS_REGISTRY.items(), *models.MODEL_DATACLASS_REGISTRY.items()):
        if config is not None and config.__module__.startswith("fairseq."):
            fields = config.__dataclass_fields__.values()
            found[f"fields of {name}"] = plain({field.name: [_default(field), str(field.type)] for field in fields})
    del criterions
    return found


@contextlib.contextmanager
def _logged() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(name)s | %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        with contextlib.redirect_stdout(stream):
            yield stream
    finally:
        root.removeHandler(handler)


def command(name: str, *given: object, stdin: str = "") -> str:
    """Runs a console script of fairseq in this process; returns its log and output."""
    import importlib

    module = importlib.import_module(f"fairseq_cli.{name}")
    before, sys.argv, sys.stdin = (sys.argv, sys.stdin), [f"fairseq-{name}", *map(str, given)], io.StringIO(stdin)
    try:
        with _logged() as log:
            module.cli_main()
        return log.getvalue()
    finally:
        sys.argv, sys.stdin = before


def journey(folder: Path) -> dict:
    draw = random.Random(1)
    for split, count in (("train", 40), ("valid", 10), ("test", 10)):
        lines = [[draw.choice("abcdefgh") for _ in range(draw.randint(2, 7))] for _ in range(count)]
        (folder / f"{split}.in").write_text("".join(" ".join(line) + "\n" for line in lines))
        (folder / f"{split}.out").write_text("".join(" ".join(reversed(line)).upper() + "\n" for line in lines))
    data, out = folder / "data-bin", folder / "checkpoints"
    splits = [part for split in ("train", "valid", "test") for part in (f"--{split}pref", folder / split)]
    command("preprocess", "-s", "in", "-t", "out", *splits, "--destdir", data)
    training = ("--optimizer", "adam", "--lr", "1e-2", "--max-tokens", 60, "--seed", 3, "--cpu", "--num-workers", 0)
    task = (data, "--task", "translation", "--arch", "transformer", *TINY)
    flags = (*task, *training, "--save-dir", out, "--log-format", "json", "--log-interval", 1, "--keep-last-epochs", 2)
    log = command("train", *flags, "--max-epoch", 2) + command("train", *flags, "--max-epoch", 3)
    decoding = ("--path", out / "checkpoint_best.pt", "--beam", 2, "--max-len-b", 8, "--cpu", "--num-workers", 0)
    generated = command("generate", data, *decoding, "--batch-size", 4, "--print-alignment", "--nbest", 2)
    typed = command("interactive", data, *decoding, stdin="a b c\nh g\n")
    valid = command(
        "validate", data, "--path", out / "checkpoint_best.pt", "--task", "translation", "--cpu", "--batch-size", 4,
        "--num-workers", 0,
    )  # fmt: skip
    state = torch.load(out / "checkpoint_last.pt", weights_only=False)
    return {
        "files": {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in data.iterdir() if path.suffix != ".log"
        },
        "losses": [
            {
                name: value
                for name, value in json.loads(line.split(" | ", 1)[1]).items()
                if "loss" in name or "num_updates" in name
            }
            for line in log.splitlines()
            if '"epoch"' in line
        ],
        "checkpoints": sorted(path.name for path in out.glob("*.pt")),
        "weights": {name: float(weight.double().sum()) for name, weight in state["model"].items()},
        "state": sorted(state),
        "settings": plain(
            {name: dict(part) if isinstance(part, dict) else part for name, part in state["cfg"].items()}
        ),
        "generated": [line for line in generated.splitlines() if line[:2] in ("S-", "T-", "H-", "D-", "P-", "A-")],
        "typed": [line for line in typed.splitlines() if line[:2] in ("S-", "H-", "D-", "P-")],
        "valid": [line.split(" | ")[-3:] for line in valid.splitlines() if "nll_loss" in line],
    }


def main() -> None:
    folder, output = Path("work"), Path(sys.argv[2]).absolute()
    os.chdir(sys.argv[1])  # relative paths are the same in both runs
    folder.mkdir()
    os.environ["TREE_FAIRSEQ_TRACEBACK"] = "0"
    import fairseq  # noqa: F401

    if "--plugin" in sys.argv:
        import tree_fairseq

        tree_fairseq.register()
    parts = {"registries": registries(), "arguments": arguments(), "settings": settings()}
    parts["journey"] = journey(folder)
    output.write_text(json.dumps(parts, default=repr), encoding="utf-8")


if __name__ == "__main__":
    main()
