"""Splits raw text into the word pieces of a pretrained encoder, and writes the dictionary of all pieces.

    tree-fairseq pieces --pieces-of DIR text/{train,valid,test}.nl

Writes ``text/{train,valid,test}.wp``, a line of pieces for each line of text, and ``text/dict.wp.txt``. The target side
does not change: preprocess with ``-s wp -t lf --trainpref text/train … --srcdict text/dict.wp.txt``. The option
``--bpe pretrained_pieces --pieces-of DIR`` splits new text into the same pieces.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Optional

from tree_fairseq.errors import InputError
from tree_fairseq.nn.pretrained import PretrainedPieces, PretrainedPiecesConfig
from tree_fairseq.support.files import atomic_file
from tree_fairseq.support.options import command
from tree_fairseq.trees.text import read_lines

SUFFIX = "wp"


def pieces_of_lines(path: Path, pieces: PretrainedPieces) -> Iterator[str]:
    """Yields the pieces of each line of a file. Raises InputError for a line without a word."""
    for number, line in enumerate(read_lines(path), 1):
        cut = pieces.encode(line)
        if not cut:
            raise InputError(f"{path}:{number}: a line without a word", hint="Leave it out, and its target.")
        yield cut


def write_pieces(files: Sequence[Path], pieces: PretrainedPieces) -> None:
    """Writes the pieces beside the files, and the dictionary beside the first. Raises InputError for ``*.wp``."""
    for path in files:
        if path.suffix == f".{SUFFIX}":
            raise InputError(f"{path} would be overwritten", hint="Give the raw text another suffix.")
    for path in files:
        with atomic_file(path.with_suffix(f".{SUFFIX}")) as stream:
            stream.writelines(f"{line}\n" for line in pieces_of_lines(path, pieces))
    pieces.dictionary().save(str(files[0].with_name(f"dict.{SUFFIX}.txt")))


@command
def main(arguments: Optional[Sequence[str]] = None) -> None:
    """Command line of this module."""
    parser = argparse.ArgumentParser(prog="tree-fairseq pieces", description=__doc__.splitlines()[0])
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="raw text, a sentence on each line")
    parser.add_argument(
        "--pieces-of", required=True, metavar="DIR", help="the encoder's folder, as save_pretrained() writes it"
    )
    args = parser.parse_args(arguments)
    write_pieces(args.files, PretrainedPieces(PretrainedPiecesConfig(pieces_of=args.pieces_of)))
