"""Verifies a folder with trees and names what is wrong: ``tree-fairseq check data-bin``."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import tree_fairseq
from tree_fairseq.data_bin.manifest import MANIFEST_NAME, FileRecord, Manifest
from tree_fairseq.data_bin.staging import staging_path
from tree_fairseq.errors import TreeFairseqError
from tree_fairseq.support.files import file_sha256
from tree_fairseq.support.progress import with_progress


def check_folder(folder: str | os.PathLike) -> list[str]:
    """Compares all files of a folder with what was written, and returns what is wrong, one sentence each.

    Raises DataFolderError if there are no trees or the manifest cannot be read.
    """
    tree_fairseq.register()
    folder = Path(folder)
    manifest = Manifest.load(folder)
    problems = Manifest.problems(folder)
    staging = staging_path(folder)
    if staging.exists() and any(staging.iterdir()):
        problems += [f"{staging} is there: a command that builds this folder is running or was stopped; give it again"]
    problems += [f"{MANIFEST_NAME} has a section that this version does not know: {name}" for name in manifest.unread]
    for name, record in with_progress(manifest.files.items(), "check", unit="files"):
        problems += _file_problems(folder / name, record)
    return problems


def _file_problems(path: Path, record: FileRecord) -> list[str]:
    try:
        if path.name.startswith("dict."):
            record.verify_content(path)
            return []
        record.verify_size(path)
    except TreeFairseqError as error:
        return [str(error)]
    if file_sha256(path) == record.sha256:
        return []
    return [f"{path} has the right size but another content than was written: it was damaged or replaced"]


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; the exit status is 1 if anything is wrong."""
    parser = argparse.ArgumentParser(
        prog="tree-fairseq check", description="Verifies a folder with trees and names what is wrong."
    )
    parser.add_argument("folder", help="the folder that fairseq-preprocess wrote")
    args = parser.parse_args(arguments)
    try:
        problems = check_folder(args.folder)
    except TreeFairseqError as error:
        problems = [str(error)]
    sys.stdout.writelines(f"{line}\n" for line in problems or [f"{args.folder}: all is well"])
    return 1 if problems else 0
