"""Moses tokenisation through sacremoses: normalise, tokenise, detokenise, lower-case, clean.

python -m preprocess.moses tokenize --lang de --lower < raw.de > tokenized.de
python -m preprocess.moses detokenize --lang de < tokenized.de > plain.de
python -m preprocess.moses clean --ratio 1.5 --min 1 --max 175 train.tok en de train.clean
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from preprocess.corpora import clean_line, keep_pair, read_pairs, write_pairs


@dataclass(frozen=True)
class TokenizerOptions:
    """Options of the tokenizer.

    Attributes:
        language: two-letter code, which selects the list of abbreviations of Moses
        lower: lower-case the tokens
        normalize: normalise punctuation and drop control characters first
        dashes: split words at hyphens (``@-@``), the option ``-a`` of the Moses tokenizer
    """

    language: str
    lower: bool = False
    normalize: bool = False
    dashes: bool = False


class Tokenizer:
    """Converts raw lines to Moses tokens with Moses' escapes (``&apos;``). Every process builds its own."""

    def __init__(self, options: TokenizerOptions):
        from sacremoses import MosesPunctNormalizer, MosesTokenizer

        self.options = options
        self._tokenizer = MosesTokenizer(lang=options.language)
        self._normalizer = None
        if options.normalize:
            self._normalizer = MosesPunctNormalizer(lang=options.language, post_remove_control_chars=True)

    def __call__(self, line: str) -> str:
        """Returns the tokens of ``line``, joined by single blanks."""
        text = clean_line(line)
        if self._normalizer is not None:
            text = clean_line(self._normalizer.normalize(text))
        text = self._tokenizer.tokenize(text, aggressive_dash_splits=self.options.dashes, return_str=True)
        return clean_line(text.lower() if self.options.lower else text)


def _tokenize_block(options: TokenizerOptions, block: list[str]) -> list[str]:
    tokenizer = Tokenizer(options)
    return [tokenizer(line) for line in block]


def _blocks(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    block: list[str] = []
    for line in lines:
        block.append(line)
        if len(block) == size:
            yield block
            block = []
    if block:
        yield block


def tokenize_lines(lines: Iterable[str], options: TokenizerOptions, workers: int = 1) -> Iterator[str]:
    """Yields the tokenised lines in order. More than one worker means that many spawned processes."""
    if workers <= 1:
        yield from map(Tokenizer(options), lines)
        return
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        for block in pool.imap(partial(_tokenize_block, options), _blocks(lines, 20_000)):
            yield from block


def _run_tokenize(args: argparse.Namespace) -> None:
    options = TokenizerOptions(args.lang, args.lower, args.normalize, args.dashes)
    for line in tokenize_lines(sys.stdin, options, args.workers):
        sys.stdout.write(line + "\n")


def _run_detokenize(args: argparse.Namespace) -> None:
    from sacremoses import MosesDetokenizer

    detokenizer = MosesDetokenizer(lang=args.lang)
    for line in sys.stdin:
        sys.stdout.write(detokenizer.detokenize(line.split()) + "\n")


def _run_clean(args: argparse.Namespace) -> None:
    languages = (args.source, args.target)
    pairs = read_pairs(f"{args.input}.{args.source}", f"{args.input}.{args.target}")
    kept = (pair for pair in pairs if keep_pair(pair, args.min, args.max, args.ratio))
    count = write_pairs(args.output, languages, kept)
    sys.stderr.write(f"kept {count} pairs in {args.output}.{{{args.source},{args.target}}}\n")


def main(arguments: list[str] | None = None) -> None:
    """Command line of this module."""
    parser = argparse.ArgumentParser(prog="python -m preprocess.moses", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)

    tokenize = commands.add_parser("tokenize", help="standard input to standard output")
    tokenize.add_argument("--lang", required=True)
    tokenize.add_argument("--lower", action="store_true", help="lower-case the tokens")
    tokenize.add_argument("--normalize", action="store_true", help="normalise punctuation, drop control characters")
    tokenize.add_argument("--dashes", action="store_true", help="split words at hyphens (the Moses tokenizer's -a)")
    tokenize.add_argument("--workers", type=int, default=1)
    tokenize.set_defaults(run=_run_tokenize)

    detokenize = commands.add_parser("detokenize", help="standard input to standard output")
    detokenize.add_argument("--lang", required=True)
    detokenize.set_defaults(run=_run_detokenize)

    clean = commands.add_parser("clean", help="drop pairs that are empty, too long or unequal")
    clean.add_argument("--min", type=int, default=1, help="fewest words of a side")
    clean.add_argument("--max", type=int, default=250, help="most words of a side")
    clean.add_argument(
        "--ratio", type=float, default=1.5, help="greatest length of the longer side divided by that of the shorter"
    )
    clean.add_argument("input", help="prefix of the two files")
    clean.add_argument("source")
    clean.add_argument("target")
    clean.add_argument("output", help="prefix of the two files to write")
    clean.set_defaults(run=_run_clean)

    args = parser.parse_args(arguments)
    args.run(args)


if __name__ == "__main__":
    for stream in (sys.stdin, sys.stdout):
        stream.reconfigure(encoding="utf-8", newline="\n")
    main()
