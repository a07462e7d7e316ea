"""Splits raw text into the word pieces of a pretrained encoder, and writes the dictionary of all pieces.

    python -m preprocess.word_pieces --pieces-of DIR text/{train,valid,test}.nl

Writes ``text/{train,valid,test}.wp``, a line of pieces for each line of text, and ``text/dict.wp.txt``. The target side
does not change: preprocess with ``-s wp -t lf --trainpref text/train … --srcdict text/dict.wp.txt``. The option
``--bpe pretrained_pieces --pieces-of DIR`` splits new text into the same pieces.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from fairseq.data import Dictionary

from preprocess.command import run_command
from preprocess.corpora import CorpusError, raw_lines, write_lines
from tree_fairseq.nn.pretrained import PretrainedPieces, PretrainedPiecesConfig
from tree_fairseq.support.python_versions import zip_equal


def pieces_of_lines(path: Path, pieces: PretrainedPieces) -> Iterator[str]:
    """Yields the pieces of each line of a file."""
    for number, line in enumerate(raw_lines(path), 1):
        cut = pieces.encode(line)
        if not cut:
            raise CorpusError(f"{path}:{number}: a line without a word")
        yield cut


def all_pieces(pieces: PretrainedPieces) -> Dictionary:
    """Returns a dictionary of all pieces, in their order; new text may contain pieces that training does not have.

    Special pieces are left out: fairseq has its own, and the encoder translates them.
    """
    dictionary = Dictionary()
    special = {*pieces.tokenizer.all_special_tokens, *dictionary.symbols}
    for piece, _ in sorted(pieces.tokenizer.get_vocab().items(), key=lambda entry: entry[1]):
        if piece not in special:
            dictionary.add_symbol(piece)
    return dictionary


def write_pieces(files: list[Path], name: str, suffix: str) -> None:
    """Writes the pieces beside the files, and the dictionary beside the first."""
    written = [path.with_suffix(f".{suffix}") for path in files]
    for path, target in zip_equal(files, written):
        if path == target:
            raise CorpusError(f"{path} would be overwritten; give another --suffix")
    pieces = PretrainedPieces(PretrainedPiecesConfig(pieces_of=name))
    for path, target in zip_equal(files, written):
        write_lines(target, pieces_of_lines(path, pieces))
    all_pieces(pieces).save(str(files[0].with_name(f"dict.{suffix}.txt")))


def main(arguments: list[str] | None = None) -> int:
    """Command line of this module; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m preprocess.word_pieces", description=__doc__.splitlines()[0])
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="raw text, a sentence on each line")
    parser.add_argument(
        "--pieces-of", required=True, metavar="DIR", help="folder of the encoder, as save_pretrained() writes it"
    )
    parser.add_argument("--suffix", default="wp", help="suffix of the files to write (default: %(default)s)")
    args = parser.parse_args(arguments)
    return run_command("word_pieces", lambda: write_pieces(args.files, args.pieces_of, args.suffix))


if __name__ == "__main__":
    raise SystemExit(main())
