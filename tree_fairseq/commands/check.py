"""Verifies a folder with trees and names what is wrong: ``tree-fairseq check data-bin``."""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path

import tree_fairseq
from tree_fairseq.data_bin.manifest import MANIFEST_NAME, FileRecord, Manifest
from tree_fairseq.data_bin.staging import staging_path
from tree_fairseq.data_bin.text_record import with_folder_model
from tree_fairseq.errors import TreeFairseqError
from tree_fairseq.parsing import trust
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
    for name, record in with_progress(manifest.files.items(), "check", unit="files"):
        problems += _file_problems(folder / name, record)
    return problems


def unrecorded_files(folder: Path) -> list[str]:
    """Returns one sentence for each file of data that ``tree.json`` does not know."""
    known = Manifest.load(folder).files
    others = (path for path in sorted(folder.iterdir()) if path.name not in known)
    of_data = (path for path in others if re.fullmatch(r"(dict|subwords)\..*|.*\.(bin|idx)", path.name))
    return [f"{path} is not in {MANIFEST_NAME}, so it was not compared" for path in of_data]


def needed_flags(folder: Path) -> list[str]:
    """Returns one sentence for each flag that new text needs, because a folder alone may not decide it."""
    manifest = Manifest.load(folder)
    found = [(lang, getattr(record, "options", None)) for lang, record in manifest.languages.items()]
    found += [(manifest.source_lang, getattr(record, "text_options", None)) for record in manifest.sections.values()]
    own = (with_folder_model(options, folder, lang) for lang, options in found if options is not None)
    needed = (trust.untrusted(trust.with_own_models(options, folder), folder) for options in own)
    return list(dict.fromkeys(sentence for sentences in needed for sentence in sentences.values()))


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
        flags = [*unrecorded_files(Path(args.folder)), *([] if problems else needed_flags(Path(args.folder)))]
    except TreeFairseqError as error:
        problems, flags = [str(error)], []
    found = problems or [f"{args.folder}: {'all files are whole' if flags else 'all is well'}"]
    sys.stdout.writelines(f"{line}\n" for line in [*found, *flags])
    return 1 if problems else 0
