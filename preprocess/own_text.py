"""Converts a folder of your own parallel text into tokenised splits: ``python -m preprocess.own_text DIR --out OUT``.

DIR contains plain UTF-8 text with one sentence on each line and the same number of lines on both sides:
``train.SOURCE`` and ``train.TARGET``, and the same for ``valid`` and ``test``. If valid or test is missing, the end of
train replaces it: a twentieth of train, but at most 500 pairs. The command writes ``OUT/{split}.{language}`` as Moses
tokens and copies the untokenised target side of test to ``OUT/raw/test.TARGET``.
"""

from __future__ import annotations

import argparse
import sys
from itertools import islice
from pathlib import Path

from preprocess.command import run_command
from preprocess.corpora import Corpus, CorpusError, Pair, read_pairs, short_pairs
from preprocess.moses import Tokenizer, TokenizerOptions
from preprocess.prepare import write_corpus

SPLITS = ("train", "valid", "test")


def languages(folder: Path, source: str | None = None, target: str | None = None) -> Pair:
    """Returns the source and the target language of a folder, from the names of its files."""
    found = sorted(path.suffix[1:] for path in folder.glob("train.*") if path.suffix[1:])
    if source is None and target is None and len(found) == 2:
        return ("en", next(name for name in found if name != "en")) if "en" in found else (found[0], found[1])
    if len(found) == 2:
        source = source or next(name for name in found if name != target)
        target = target or next(name for name in found if name != source)
    if source in found and target in found and source != target:
        return source, target
    listed = ", ".join(f"train.{name}" for name in found) or "no train.* file"
    raise CorpusError(
        f"{folder} contains {listed}; it needs train.SOURCE and train.TARGET, for example train.en and train.de. "
        "If it has more than two such files, give --source and --target"
    )


def load(folder: Path, pair: Pair, subset: int | None = None, up_to: int | None = None) -> dict[str, list[Pair]]:
    """Reads the pairs of every split, untokenised.

    Args:
        subset: number of first pairs of train to keep
        up_to: words of the longest source that train keeps, where words are separated by blanks
    """
    splits = {}
    for split in SPLITS:
        paths = [folder / f"{split}.{language}" for language in pair]
        there = [path.exists() for path in paths]
        if any(there) and not all(there):
            raise CorpusError(f"{paths[there.index(False)]} is missing beside {paths[there.index(True)]}")
        if all(there):
            pairs = read_pairs(*paths)
            splits[split] = list(islice(short_pairs(pairs, up_to), subset) if split == "train" else pairs)
    train = splits["train"]
    size = max(1, min(500, len(train) // 20))
    for split in ("test", "valid"):
        if split not in splits:
            splits[split], train = train[-size:], train[:-size]
    splits["train"] = train
    return splits


def write(splits: dict[str, list[Pair]], out: Path, pair: Pair) -> dict[str, int]:
    """Tokenises and writes all splits; returns the number of pairs of each."""
    tokenizers = [Tokenizer(TokenizerOptions(language, normalize=True)) for language in pair]
    tokenized = {
        split: ((tokenizers[0](first), tokenizers[1](second)) for first, second in pairs)
        for split, pairs in splits.items()
    }
    return write_corpus(Corpus(tokenized, {"test": (second for _, second in splits["test"])}), out, pair)


def main(arguments: list[str] | None = None) -> int:
    """Command line of this module: prints the two languages on standard output and returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m preprocess.own_text", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="folder with train.SOURCE, train.TARGET, ...")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    parser.add_argument("--source", help="source language (default: en if it is one of the two)")
    parser.add_argument("--target", help="target language")
    parser.add_argument("--up-to", type=int, help="train on pairs whose sources have at most this number of words")
    parser.add_argument("--subset", type=int, help="train on this number of pairs, the first ones")
    options = parser.parse_args(arguments)

    def run() -> None:
        pair = languages(options.folder, options.source, options.target)
        counts = write(load(options.folder, pair, options.subset, options.up_to), options.out, pair)
        sys.stderr.write("; ".join(f"{split}: {count} pairs" for split, count in counts.items()) + "\n")
        print(*pair)

    return run_command("own_text", run)


if __name__ == "__main__":
    sys.exit(main())
