"""Packs a trained model for others: one folder with everything that translating new text needs, and nothing else.

tree-fairseq release data-bin checkpoints/checkpoint_best.pt --output released

The folder has the model (``model.safetensors``), dictionaries, ``tree.json``, subword models and a model card
(``README.md``), which says what the checkpoint tells and what is yet to be written. It loads with
``hub.from_pretrained("released")`` and, with the task of its training, with ``fairseq-interactive released --user-dir
$(tree-fairseq path) --task tree_translation --path released/model.safetensors``.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import shutil
from collections.abc import Mapping, MutableMapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import torch
from fairseq.data.data_utils import infer_language_pair
from torch import Tensor

from tree_fairseq.errors import DataFolderError, InputError
from tree_fairseq.parsing.trust import PARSER_FOLDER
from tree_fairseq.repairs.checkpoint_loading import NAMESPACE, RELEASE_FORMAT, RELEASED, load_weights_only
from tree_fairseq.support.files import atomic_file, copy_whole, require_plain_file
from tree_fairseq.support.options import command

logger = logging.getLogger(__name__)

# Splits are not needed for new text, and logs have paths of the machine.
_LEFT_OUT = re.compile(r"(train|valid|test)\d*\..*|.*\.log|\..*")
_DTYPES = {"float32": None, "float16": torch.float16, "bfloat16": torch.bfloat16}


def release(
    data_bin: Path, checkpoint: Path, output: Path, dtype: torch.dtype | None = None, parser_dir: Path | None = None
) -> list[Path]:
    """Writes the folder; the model comes last, so a folder with a model is complete.

    ``data_bin`` is the folder that the model was trained on. Weights are stored in ``dtype``; None keeps theirs.
    ``parser_dir`` is the parser's model, to be part of the release. Returns the files of the new folder. Raises
    DataFolderError if ``data_bin`` has no dictionaries, or links to files of other folders; CheckpointError if
    ``checkpoint`` cannot be read; InputError if ``output`` has a model already.
    """
    kept = [path for path in sorted(data_bin.iterdir()) if not path.is_dir() and not _LEFT_OUT.fullmatch(path.name)]
    if not any(path.name.startswith("dict.") for path in kept):
        raise DataFolderError(f"{data_bin} has no dictionaries; give the folder that fairseq-preprocess wrote")
    for path in kept:
        require_plain_file(path)
        if path.is_symlink() and data_bin.resolve() not in path.resolve().parents:
            raise DataFolderError(
                f"{path} is a link to {path.resolve()}, which is in another folder: copy the file here if it is to be "
                "part of the release"
            )
    model = output / f"model{RELEASED}"
    if model.exists():
        raise InputError(f"{model} exists already", hint="Give another --output, or remove it first.")
    state = load_weights_only(checkpoint)
    task = state["cfg"]["task"]
    if isinstance(task, MutableMapping) and task.get("source_lang", "") is None:
        # fairseq infers the languages from the names of the splits, which are left out.
        task["source_lang"], task["target_lang"] = infer_language_pair(os.fspath(data_bin))
    output.mkdir(parents=True, exist_ok=True)
    for path in kept:
        copy_whole(path, output / path.name)
    if parser_dir is not None:
        shutil.copytree(parser_dir, output / PARSER_FOLDER, dirs_exist_ok=True)
    with atomic_file(output / "README.md") as file:
        file.write(card_of(state, output.resolve().name))
    write_released_model(state, model, dtype)
    return sorted(path for path in output.rglob("*") if path.is_file())


def card_of(state: Mapping[str, Any], name: str) -> str:
    """Returns what a checkpoint says of itself, as a model card in Markdown for a folder of this ``name``."""
    settings = _to_json(state["cfg"])
    model, task = (settings[part].get(NAMESPACE, settings[part]) for part in ("model", "task"))
    history = state.get("optimizer_history") or [{}]
    card = Path(__file__).with_name("card.md").read_text(encoding="utf-8")
    return card.format(
        name=name,
        arch=model.get("arch") or model["_name"],
        parameters=sum(tensor.numel() for tensor in without_copies(state["model"], None)[0].values()) / 1e6,
        task=task["_name"],
        source=task.get("source_lang") or "text",
        target=task.get("target_lang") or "classes",
        updates=history[-1].get("num_updates", "?"),
        seed=settings.get("common", {}).get("seed", "?"),
        suffix=RELEASED,
    )


def write_released_model(state: Mapping[str, Any], path: Path, dtype: torch.dtype | None = None) -> None:
    """Writes the model of a checkpoint, and its settings as JSON, to a file of safetensors, at once.

    Nothing in such a file can run code, and it does not depend on versions of Python, torch or fairseq. Paths of the
    machine that trained the model are left out. Floating point numbers become of type ``dtype``, or keep theirs.
    """
    from safetensors.torch import save

    weights, aliases = without_copies(state["model"], dtype)
    settings = {
        "format": RELEASE_FORMAT,
        "cfg": json.dumps(_to_json(state["cfg"]), ensure_ascii=False),
        "task_state": json.dumps(_to_json(state.get("task_state") or {}), ensure_ascii=False),
        "aliases": json.dumps(aliases),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path, "wb") as file:
        file.write(save(weights, metadata=settings))


def without_copies(model: Mapping[str, Tensor], dtype: torch.dtype | None) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Returns weights that differ, converted, by name; and for each of the others, the name of the one that it equals.

    Tied matrices are equal, but after averaging they no longer share memory.
    """
    weights, aliases, seen = {}, {}, {}
    for name, tensor in model.items():
        first = next((other for other in seen.get(tensor.shape, ()) if torch.equal(model[other], tensor)), None)
        if first is None:
            converted = tensor.to(dtype) if dtype is not None and tensor.is_floating_point() else tensor
            weights[name] = converted.contiguous()
            seen.setdefault(tensor.shape, []).append(name)
        else:
            aliases[name] = first
    return weights, aliases


def _to_json(value: Any) -> Any:
    """A setting as JSON; paths become null."""
    if isinstance(value, argparse.Namespace):
        return {NAMESPACE: _to_json(vars(value))}
    if isinstance(value, Mapping):
        return {str(name): _to_json(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_json(part) for part in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (str, os.PathLike)):
        return None if os.path.isabs(value) else str(value)
    return value if isinstance(value, (bool, int, float, type(None))) else str(value)


@command
def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(
        prog="tree-fairseq release",
        description="Packs a trained model with dictionaries, tree.json and subword models into a folder for others.",
    )
    add = parser.add_argument
    add("data", type=Path, help="the folder that the model was trained on")
    add("checkpoint", type=Path, metavar="CHECKPOINT", help="of fairseq-train, or an average")
    add("--output", type=Path, required=True, metavar="DIR", help="the new folder")
    add("--dtype", choices=_DTYPES, default="float32", help="to store weights in (default: %(default)s)")
    add("--parser-dir", type=Path, metavar="DIR", help="model of the parser, to be part of the release")
    args = parser.parse_args(arguments)
    files = release(args.data, args.checkpoint, args.output, _DTYPES[args.dtype], args.parser_dir)
    size = sum(path.stat().st_size for path in files)
    logger.info("%s: %d files, %.1f MB", args.output, len(files), size / 1e6)
