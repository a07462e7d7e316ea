"""Writes the trees of a folder back as text: ``tree-fairseq export data-bin --split train``.

Constituency trees become brackets. Symbol trees, and trees that grow by insertions, are written in the notation that
they were read from. Trees whose labels are classes have them again, and sentences without trees have their class.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import tree_fairseq
from tree_fairseq.data_bin.kinds import exports_of
from tree_fairseq.data_bin.manifest import Export, Manifest
from tree_fairseq.errors import InputError, MissingTreesError
from tree_fairseq.support.files import atomic_file
from tree_fairseq.support.options import command
from tree_fairseq.support.progress import with_progress


def find_export(folder: str | os.PathLike, side: str | None = None) -> Export:
    """Returns what writes the trees of a side (``source`` or ``target``), or of the only side that has any."""
    tree_fairseq.register()
    exports = exports_of(Manifest.load(folder))
    if not exports:
        raise MissingTreesError(f"{folder} has no trees")
    if side is None:
        if len(exports) != 1:
            raise InputError("both sides have trees: choose one with --side source or --side target")
        return next(iter(exports.values()))
    if side not in exports:
        raise MissingTreesError(f"the {side} has no trees, the {' and the '.join(exports)} has")
    return exports[side]


@command
def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(
        prog="tree-fairseq export",
        description="Writes the trees of a folder back as text, one line each. "
        "Words that the dictionary lacks are <unk>.",
    )
    add = parser.add_argument
    add("folder", help="the folder that fairseq-preprocess wrote")
    add("--split", default="train", help="train, valid, valid1, ... (default: %(default)s)")
    add("--side", choices=("source", "target"), help="needed where both sides have trees")
    add("--output", default="-", metavar="FILE", help="default: standard output")
    args = parser.parse_args(arguments)
    export, split = find_export(args.folder, args.side), args.split
    lines, manifest = export(Path(args.folder), split), Manifest.load(args.folder)
    records = (*manifest.languages.values(), *manifest.sections.values())
    count = next((record.splits[split].lines for record in records if split in record.splits), None)
    output = contextlib.nullcontext(sys.stdout) if args.output == "-" else atomic_file(args.output, sync=False)
    with output as file:
        for line in with_progress(lines, f"export {split}", count, "lines"):
            file.write(line + "\n")
