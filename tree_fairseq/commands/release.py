"""Packs a trained model for others: one folder with everything that translating new text needs, and nothing else.

tree-fairseq release data-bin --path checkpoints/checkpoint_best.pt --output released --card card.md

The folder has the model (``model.safetensors``, and with ``--checkpoint`` also ``model.pt`` for fairseq without this
package's loader), dictionaries, ``tree.json``, subword models and the model card (``README.md``). It loads with
``hub.from_pretrained("released")`` and, with the task of its training, with ``fairseq-interactive released --user-dir
$(tree-fairseq path) --task tree_translation --path released/model.safetensors``.
"""

from __future__ import annotations

import argparse
import logging
import re
import shutil
import sys
from pathlib import Path

import torch

from tree_fairseq.errors import DataFolderError, InputError, TreeFairseqError
from tree_fairseq.repairs.checkpoint_loading import load_weights_only
from tree_fairseq.support.error_reports import failed
from tree_fairseq.support.files import atomic_file, require_plain_file
from tree_fairseq.support.released_model import SUFFIX, without_copies, write_released_model

logger = logging.getLogger(__name__)

PARSER_FOLDER = "parser"  # of a released model, see tree_fairseq.hub
# Splits are not needed for new text, and logs have paths of the machine.
_LEFT_OUT = re.compile(r"(train|valid|test)\d*\..*|.*\.log|\..*")
_DTYPES = {"float32": None, "float16": torch.float16, "bfloat16": torch.bfloat16}


def release(
    data_bin: Path,
    checkpoint: Path,
    output: Path,
    dtype: torch.dtype | None = None,
    card: Path | None = None,
    parser_dir: Path | None = None,
    with_checkpoint: bool = False,
) -> list[Path]:
    """Writes the folder; the model comes last, so a folder with a model is complete.

    Args:
        data_bin: the folder that the model was trained on
        checkpoint: of fairseq-train, or an average
        output: the new folder, which must not have a model yet
        dtype: to store weights in; None keeps theirs
        card: text in Markdown that becomes ``README.md``
        parser_dir: model of the parser, to be part of the release
        with_checkpoint: also write ``model.pt``, which ``torch.load(weights_only=True)`` reads

    Returns:
        the files of the folder

    Raises:
        DataFolderError: ``data_bin`` has no dictionaries, or links to files of other folders
        CheckpointError: ``checkpoint`` cannot be read
        InputError: ``output`` has a model already
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
    model = output / f"model{SUFFIX}"
    if model.exists():
        raise InputError(f"{model} exists already", hint="Give another --output, or remove it first.")
    state = load_weights_only(checkpoint)
    output.mkdir(parents=True, exist_ok=True)
    for path in [*kept, *([card] if card else [])]:
        with atomic_file(output / ("README.md" if path == card else path.name), "wb") as copy:
            copy.write(path.read_bytes())
    if parser_dir is not None:
        shutil.copytree(parser_dir, output / PARSER_FOLDER, dirs_exist_ok=True)
    if with_checkpoint:
        with atomic_file(output / "model.pt", "wb") as file:
            weights, aliases = without_copies(state["model"], dtype)
            weights = {name: weights[aliases.get(name, name)] for name in state["model"]}  # one storage for equal ones
            torch.save({**state, "model": weights, "last_optimizer_state": None}, file)
    write_released_model(state, model, dtype)
    return sorted(path for path in output.rglob("*") if path.is_file())


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns exit status 1 if the model cannot be packed."""
    parser = argparse.ArgumentParser(
        prog="tree-fairseq release",
        description="Packs a trained model with dictionaries, tree.json and subword models into a folder for others.",
    )
    add = parser.add_argument
    add("data", type=Path, help="the folder that the model was trained on")
    add("--path", type=Path, required=True, metavar="FILE", help="the checkpoint")
    add("--output", type=Path, required=True, metavar="DIR", help="the new folder")
    add("--dtype", choices=_DTYPES, default="float32", help="to store weights in (default: %(default)s)")
    add("--card", type=Path, metavar="FILE", help="the model card, in Markdown: data, licence, scores, limits")
    add("--parser-dir", type=Path, metavar="DIR", help="model of the parser, to be part of the release")
    add("--checkpoint", action="store_true", help="also write model.pt, for fairseq without safetensors")
    args = parser.parse_args(arguments)
    logging.basicConfig(format="%(levelname)s | %(message)s", level=logging.INFO)
    try:
        dtype = _DTYPES[args.dtype]
        files = release(args.data, args.path, args.output, dtype, args.card, args.parser_dir, args.checkpoint)
    except (TreeFairseqError, OSError) as error:
        return failed(error, logger)
    size = sum(path.stat().st_size for path in files)
    logger.info("%s: %d files, %.1f MB", args.output, len(files), size / 1e6)
    return 0


if __name__ == "__main__":
    sys.exit(main())
